// Compares placements with libmemcached itself, called in this process, on pools that no recording has.
#include <doctest/doctest.h>
#include <libmemcached/memcached.h>

#include <algorithm>
#include <random>

#include "common/placement/profiles/profile.hpp"

namespace mcds::libmemcached_placement_test {

namespace {

// One call on the client, in the order in which an application makes them.
struct Call {
  enum class Kind { set, add_each, add_list, prefix } kind;
  memcached_behavior_t behaviour = MEMCACHED_BEHAVIOR_HASH;
  std::uint64_t value = 0;
};

constexpr Call add{Call::Kind::add_each};
constexpr Call add_list{Call::Kind::add_list};
constexpr Call prefix{Call::Kind::prefix};
constexpr Call weighted{Call::Kind::set, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1};
constexpr Call sorted{Call::Kind::set, MEMCACHED_BEHAVIOR_SORT_HOSTS, 1};
constexpr Call hash_prefix{Call::Kind::set, MEMCACHED_BEHAVIOR_HASH_WITH_PREFIX_KEY, 1};
constexpr Call hash(memcached_hash_t which) {
  return {Call::Kind::set, MEMCACHED_BEHAVIOR_HASH, which};
}
constexpr Call distribution(memcached_server_distribution_t which) {
  return {Call::Kind::set, MEMCACHED_BEHAVIOR_DISTRIBUTION, which};
}
constexpr Call consistent = distribution(MEMCACHED_DISTRIBUTION_CONSISTENT);
constexpr Call spy = distribution(MEMCACHED_DISTRIBUTION_CONSISTENT_KETAMA_SPY);

struct Oracle {
  std::string_view profile;
  std::vector<Call> calls;
};

std::vector<Oracle> oracles() {
  std::vector<Oracle> all{
      {"ketama", {weighted, add}},
      {"libmemcached-default", {add}},
      {"libmemcached-modula-sorted", {sorted, add}},
      {"libmemcached-vbucket", {distribution(MEMCACHED_DISTRIBUTION_VIRTUAL_BUCKET), add}},
      {"libmemcached-prefix", {prefix, add}},
      {"libmemcached-hash-with-prefix", {hash_prefix, prefix, add}},
      {"libmemcached-consistent", {consistent, add}},
      {"libmemcached-consistent-sorted", {sorted, consistent, add}},
      {"libmemcached-consistent-late", {add_list, consistent}},
      {"libmemcached-consistent-late-md5key", {add_list, consistent, hash(MEMCACHED_HASH_MD5)}},
      {"libmemcached-ketama", {{Call::Kind::set, MEMCACHED_BEHAVIOR_KETAMA, 1}, add}},
      {"libmemcached-ketama-weighted", {weighted, add}},
      {"libmemcached-ketama-weighted-late", {add_list, weighted}},
      {"libmemcached-ketama-weighted-default", {weighted, hash(MEMCACHED_HASH_DEFAULT), add}},
      {"libmemcached-ketama-weighted-hash-with-prefix", {weighted, hash_prefix, prefix, add}},
      {"libmemcached-ketama-spy", {hash(MEMCACHED_HASH_MD5), spy, add}},
      {"libmemcached-ketama-spy-weighted", {weighted, spy, add}},
      {"php-memcached-ketama-compatible-then-consistent", {weighted, consistent, add_list}},
      {"php-memcached-consistent-then-ketama-compatible", {consistent, weighted, add_list}}};
  const auto with = [&](std::string_view profile, memcached_hash_t which, bool is_weighted) {
    if (profile.find("modula") != std::string_view::npos)
      all.push_back({profile, {hash(which), add}});
    else if (is_weighted)
      all.push_back({profile, {weighted, hash(which), add}});
    else
      all.push_back({profile, {hash(which), consistent, add}});
  };
  with("libmemcached-modula-md5", MEMCACHED_HASH_MD5, false);
  with("libmemcached-modula-crc", MEMCACHED_HASH_CRC, false);
  with("libmemcached-modula-fnv1_64", MEMCACHED_HASH_FNV1_64, false);
  with("libmemcached-modula-fnv1a_64", MEMCACHED_HASH_FNV1A_64, false);
  with("libmemcached-modula-fnv1_32", MEMCACHED_HASH_FNV1_32, false);
  with("libmemcached-modula-fnv1a_32", MEMCACHED_HASH_FNV1A_32, false);
  with("libmemcached-modula-murmur", MEMCACHED_HASH_MURMUR, false);
  with("libmemcached-modula-murmur3", MEMCACHED_HASH_MURMUR3, false);
  with("libmemcached-modula-jenkins", MEMCACHED_HASH_JENKINS, false);
  with("libmemcached-consistent-md5", MEMCACHED_HASH_MD5, false);
  with("libmemcached-consistent-crc", MEMCACHED_HASH_CRC, false);
  with("libmemcached-consistent-fnv1_64", MEMCACHED_HASH_FNV1_64, false);
  with("libmemcached-consistent-fnv1a_64", MEMCACHED_HASH_FNV1A_64, false);
  with("libmemcached-consistent-fnv1_32", MEMCACHED_HASH_FNV1_32, false);
  with("libmemcached-consistent-fnv1a_32", MEMCACHED_HASH_FNV1A_32, false);
  with("libmemcached-consistent-murmur", MEMCACHED_HASH_MURMUR, false);
  with("libmemcached-consistent-murmur3", MEMCACHED_HASH_MURMUR3, false);
  with("libmemcached-consistent-jenkins", MEMCACHED_HASH_JENKINS, false);
  with("libmemcached-ketama-weighted-crc", MEMCACHED_HASH_CRC, true);
  with("libmemcached-ketama-weighted-fnv1a_32", MEMCACHED_HASH_FNV1A_32, true);
  with("libmemcached-ketama-weighted-fnv1a_64", MEMCACHED_HASH_FNV1A_64, true);
  with("libmemcached-ketama-weighted-murmur", MEMCACHED_HASH_MURMUR, true);
  return all;
}

// Returns the list as libmemcached keeps it: SORT_HOSTS sorts it, and answers are indices into it.
Pool as_kept(const Oracle& oracle, Pool pool) {
  if (std::none_of(oracle.calls.begin(), oracle.calls.end(),
                   [](const Call& call) { return call.behaviour == MEMCACHED_BEHAVIOR_SORT_HOSTS; }))
    return pool;
  std::stable_sort(pool.begin(), pool.end(), [](const Server& a, const Server& b) {
    return std::pair(a.is_unix() ? a.socket_path : a.host, a.port) <
           std::pair(b.is_unix() ? b.socket_path : b.host, b.port);
  });
  return pool;
}

class Libmemcached {
 public:
  Libmemcached(const Pool& pool, const Oracle& oracle) : kept_(as_kept(oracle, pool)) {
    for (const Call& call : oracle.calls) make(call, pool);
  }
  ~Libmemcached() { memcached_free(handle_); }
  Libmemcached(const Libmemcached&) = delete;
  Libmemcached& operator=(const Libmemcached&) = delete;

  const Server& server_of(const std::string& key) const {
    return kept_[memcached_generate_hash(handle_, key.data(), key.size())];
  }

 private:
  void make(const Call& call, const Pool& pool) {
    switch (call.kind) {
      case Call::Kind::set:
        REQUIRE(memcached_behavior_set(handle_, call.behaviour, call.value) == MEMCACHED_SUCCESS);
        break;
      case Call::Kind::prefix:
        REQUIRE(memcached_callback_set(handle_, MEMCACHED_CALLBACK_PREFIX_KEY, "app1:") == MEMCACHED_SUCCESS);
        break;
      case Call::Kind::add_each:
        for (const Server& server : pool) add_one(server);
        break;
      case Call::Kind::add_list: add_all(pool); break;
    }
  }
  void add_one(const Server& server) {
    if (server.is_unix())
      memcached_server_add_unix_socket_with_weight(handle_, server.socket_path.c_str(), server.weight);
    else
      memcached_server_add_with_weight(handle_, server.host.c_str(), server.port, server.weight);
  }
  void add_all(const Pool& pool) {
    memcached_return_t result = MEMCACHED_SUCCESS;
    memcached_server_st* list = nullptr;
    for (const Server& server : pool) {
      const auto& name = server.is_unix() ? server.socket_path : server.host;
      list = memcached_server_list_append_with_weight(list, name.c_str(), server.is_unix() ? 0 : server.port,
                                                      server.weight, &result);
    }
    REQUIRE(memcached_server_push(handle_, list) == MEMCACHED_SUCCESS);
    memcached_server_list_free(list);
  }

  memcached_st* handle_ = memcached_create(nullptr);
  Pool kept_;
};

std::string many_servers(int count, const char* weight) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    list += (i == 0 ? "10.1.0." : ",10.1.0.") + std::to_string(i + 1) +
            (i % 3 == 0 ? "" : ":1121" + std::to_string(i % 7));
    if (*weight != '\0') list += "/?" + std::to_string((i * 37 + 1) % std::stoi(weight));
  }
  return list;
}

std::vector<std::string> own_pools() {
  std::vector<std::string> pools{"cache-a,cache-b,Cache-C:11212",
                                 "[::1]:11211,[::1]:11212,[fe80::1]:11211",
                                 "10.0.0.1,10.0.0.2:22122,10.0.0.3/?7",
                                 "z,y,x,w/?3,v",
                                 "10.0.0.9:11211",
                                 "a/?0,b/?1,c/?0",
                                 "a/?0,b/?2,c/?100",
                                 "unix:/run/m1.sock,unix:/run/m2.sock/?2,unix:/run/m10.sock",
                                 "10.0.1.1/?600,10.0.1.2/?300,10.0.1.3/?200,10.0.1.4/?350,10.0.1.5/"
                                 "?1000,10.0.1.6/?800,10.0.1.7/?950,10.0.1.8/?100"};
  for (const int size : {2, 7, 12, 25, 50}) {
    pools.push_back(many_servers(size, ""));
    pools.push_back(many_servers(size, "101"));
  }
  return pools;
}

std::vector<std::string> own_keys() {
  std::vector<std::string> keys{"a", std::string(250, 'k'), "ключ", "\xff\xfe", "\x80"};
  std::mt19937 random(20);
  for (std::size_t size = 1; size <= 250; ++size) {
    std::string key(size, ' ');
    for (char& byte : key) byte = static_cast<char>(33 + random() % 94);
    if (size % 4 == 0) key.back() = static_cast<char>(128 + random() % 128);
    keys.push_back(key);
  }
  return keys;
}

Pool shuffled(Pool pool) {
  std::shuffle(pool.begin(), pool.end(), std::mt19937(7));
  return pool;
}

std::size_t disagreements(const Oracle& oracle, const Pool& pool) {
  const bool has_prefix = oracle.profile.find("prefix") != std::string_view::npos;
  const std::string put_before = has_prefix ? "app1:" : "";
  const Libmemcached client(pool, oracle);
  const auto placement = make_placement(oracle.profile, pool, {{}, put_before, ""});
  std::size_t count = 0;
  for (const std::string& key : own_keys()) {
    if (put_before.size() + key.size() > 250) continue;
    count += pool[placement->server_of(put_before + key)] == client.server_of(key) ? 0 : 1;
  }
  return count;
}

}  // namespace

TEST_CASE(
    "placement: pools with names, the default port, IPv6, sockets, weights and many servers, as libmemcached "
    "itself places them") {
  for (const Oracle& oracle : oracles()) {
    CAPTURE(oracle.profile);
    for (const std::string& list : own_pools()) {
      CAPTURE(list);
      CHECK(disagreements(oracle, parse_pool(list)) == 0);
      CHECK(disagreements(oracle, shuffled(parse_pool(list))) == 0);
    }
  }
}

}  // namespace mcds::libmemcached_placement_test
