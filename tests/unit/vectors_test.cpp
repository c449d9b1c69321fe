// Placements against the truth: what running clients did (tests/vectors), and libmemcached itself on pools of our own.
#include <doctest/doctest.h>
#include <libmemcached/memcached.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "common/base/bytes.hpp"
#include "common/placement/profile.hpp"

namespace mcds {

namespace {

const std::string folder = MCDS_TEST_VECTORS;

std::map<std::string, std::vector<std::string>> key_sets() {
  std::ifstream file(folder + "/keys.txt");
  std::map<std::string, std::vector<std::string>> sets;
  std::string current;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('@')) {
      current = line.substr(1);
    } else if (!line.starts_with('#') || !current.empty()) {
      sets[current].push_back(line);
    }
  }
  return sets;
}

Pool pool_named(const std::string& name) {
  const std::map<std::string, std::string> lists{
      {"equal3", "127.0.0.1:22201,127.0.0.1:22202,127.0.0.1:22203"},
      {"equal5", "127.0.0.1:22201,127.0.0.1:22202,127.0.0.1:22203,127.0.0.1:22204,127.0.0.1:22205"},
      {"weighted5", "127.0.0.1:22201/?1,127.0.0.1:22202/?2,127.0.0.1:22203/?3,127.0.0.1:22204/?1,127.0.0.1:22205/?5"}};
  return parse_pool(lists.at(name));
}

const Resolver test_resolver{[](const std::string& name) { return name == "localhost" ? std::optional<std::string>("127.0.0.1") : std::nullopt; },
                             [](const std::string& address) {
                               return address == "127.0.0.1" ? std::optional<std::string>("localhost") : std::nullopt;
                             }};

// What the recording client put before the keys that are listed.
std::string prefix_of(const std::string& profile) {
  if (profile == "php-memcached-session") return "memc.sess.key.";
  const bool has_one = profile.find("prefix") != std::string::npos || profile.find("namespace") != std::string::npos;
  return has_one ? "app1:" : "";
}

// How libmemcached itself places keys, with the behaviours a profile stands for.
class Libmemcached {
 public:
  Libmemcached(const Pool& pool, const std::vector<std::pair<memcached_behavior_t, std::uint64_t>>& behaviours) {
    for (const auto& [behaviour, value] : behaviours) REQUIRE(memcached_behavior_set(handle_, behaviour, value) == MEMCACHED_SUCCESS);
    for (const Server& server : pool) memcached_server_add_with_weight(handle_, server.host.c_str(), server.port, server.weight);
  }
  ~Libmemcached() { memcached_free(handle_); }
  Libmemcached(const Libmemcached&) = delete;
  Libmemcached& operator=(const Libmemcached&) = delete;
  std::size_t server_of(const std::string& key) const { return memcached_generate_hash(handle_, key.data(), key.size()); }

 private:
  memcached_st* handle_ = memcached_create(nullptr);
};

std::vector<std::string> own_pools() {
  std::vector<std::string> pools{"cache-a,cache-b,cache-c:11212", "[::1]:11211,[::1]:11212,[fe80::1]:11211", "10.0.0.1,10.0.0.2:22122,10.0.0.3/?7",
                                 "z,y,x,w/?3,v", "10.0.0.9:11211"};
  for (const int size : {7, 12, 25, 50}) {
    std::string list;
    for (int i = 0; i < size; ++i) list += (i == 0 ? "10.1.0." : ",10.1.0.") + std::to_string(i + 1) + (i % 3 == 0 ? "" : ":1121" + std::to_string(i % 7));
    pools.push_back(list);
  }
  return pools;
}

std::vector<std::string> own_keys() {
  std::vector<std::string> keys{"a", std::string(250, 'k'), "ключ", "\xff\xfe"};
  for (int i = 0; i < 400; ++i) keys.push_back("user:" + std::to_string(i * 7919));
  return keys;
}

}  // namespace

TEST_CASE("placement: every profile agrees with the running client on every key of its vectors") {
  const auto sets = key_sets();
  std::ifstream file(folder + "/profiles.txt");
  std::set<std::string> checked;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.empty()) continue;
    std::istringstream words(line);
    std::string profile, pool, set, indexes;
    words >> profile >> pool >> set >> indexes;
    const std::string prefix = prefix_of(profile);
    const auto placement = make_placement(profile, pool_named(pool), {test_resolver, prefix});
    const auto& keys = sets.at(set);
    REQUIRE(keys.size() == indexes.size());
    std::size_t agreed = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) agreed += placement->server_of(prefix + keys[i]) == static_cast<std::size_t>(indexes[i] - '0') ? 1 : 0;
    CAPTURE(profile);
    CAPTURE(pool);
    CHECK(agreed == keys.size());
    checked.insert(profile);
  }
  CHECK(checked.size() == 205);
}

TEST_CASE("placement: every profile but two is checked by vectors") {
  std::ifstream file(folder + "/profiles.txt");
  std::set<std::string, std::less<>> recorded;
  for (std::string profile, rest; file >> profile && std::getline(file, rest);) recorded.insert(profile);
  for (const Profile& profile : all_profiles()) {
    if (recorded.contains(profile.name)) continue;
    CAPTURE(profile.name);
    CHECK((profile.name == "ketama" || profile.name == "libmemcached-vbucket"));
  }
}

TEST_CASE("placement: pools with names, the default port, IPv6, weights and many servers, as libmemcached itself places them") {
  for (const std::string& list : own_pools()) {
    CAPTURE(list);
    const Pool pool = parse_pool(list);
    const Libmemcached weighted(pool, {{MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1}});
    const Libmemcached modulo(pool, {});
    const Libmemcached crc(pool, {{MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_CRC}});
    const auto ketama = make_placement("ketama", pool);
    const auto standard = make_placement("libmemcached-default", pool);
    const auto modula_crc = make_placement("libmemcached-modula-crc", pool);
    const auto gomemcache = make_placement("gomemcache", pool);
    std::size_t disagreed = 0;
    for (const std::string& key : own_keys()) {
      disagreed += ketama->server_of(key) != weighted.server_of(key) ? 1 : 0;
      disagreed += standard->server_of(key) != modulo.server_of(key) ? 1 : 0;
      disagreed += modula_crc->server_of(key) != crc.server_of(key) ? 1 : 0;
      disagreed += gomemcache->server_of(key) != crc32(key) % pool.size() ? 1 : 0;
    }
    CHECK(disagreed == 0);
  }
}

}  // namespace mcds
