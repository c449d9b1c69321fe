// Compares placements with recordings of running clients.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "common/placement/profiles/profile.hpp"
#include "tests/support/folder.hpp"

namespace mcds::vectors_test {

namespace {

const std::string vectors = test::folder("vectors");

std::map<std::string, std::vector<std::string>> key_sets() {
  std::ifstream file(vectors + "/keys.txt");
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

// A line of words about a profile and a pool.
struct Record {
  std::string profile, pool, about, answer;
};

std::vector<Record> records(const std::string& name) {
  std::ifstream file(vectors + '/' + name);
  std::vector<Record> found;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.empty()) continue;
    Record& one = found.emplace_back();
    std::istringstream(line) >> one.profile >> one.pool >> one.about >> one.answer;
  }
  REQUIRE(!found.empty());
  return found;
}

Pool pool_named(const std::string& name) {
  const std::map<std::string, std::string> lists{
      {"hosts5", "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5"},
      {"equal3", "127.0.0.1:22201,127.0.0.1:22202,127.0.0.1:22203"},
      {"equal5", "127.0.0.1:22201,127.0.0.1:22202,127.0.0.1:22203,127.0.0.1:22204,127.0.0.1:22205"},
      {"equal10",
       "127.0.0.1:22201,127.0.0.1:22202,127.0.0.1:22203,127.0.0.1:22204,127.0.0.1:22205,127.0.0.1:22206,"
       "127.0.0.1:22207,127.0.0.1:22208,127.0.0.1:22209,127.0.0.1:22210"},
      {"weighted5",
       "127.0.0.1:22201/?1,127.0.0.1:22202/?2,127.0.0.1:22203/?3,127.0.0.1:22204/?1,127.0.0.1:22205/?5"}};
  return parse_pool(lists.at(name));
}

const Resolver test_resolver{
    [](const std::string& name) {
      return name == "localhost" ? std::optional<std::string>("127.0.0.1") : std::nullopt;
    },
    [](const std::string& address) {
      return address == "127.0.0.1" ? std::optional<std::string>("localhost") : std::nullopt;
    }};

// Returns the prefix that the recording client put in front of the listed keys.
std::string prefix_of(const std::string& profile) {
  if (profile.starts_with("php-memcached-session") ||
      profile == "php-memcached-ketama-compatible-prefix:copies=3")
    return "memc.sess.key.";
  const bool has_one =
      profile.find("prefix") != std::string::npos || profile.find("namespace") != std::string::npos;
  return has_one ? "app1:" : "";
}

}  // namespace

TEST_CASE("placement: every profile agrees with the running client on every key of its vectors") {
  const auto sets = key_sets();
  for (const auto& [profile, pool, set, indexes] : records("profiles.txt")) {
    const std::string prefix = prefix_of(profile);
    const auto placement = make_placement(profile, pool_named(pool), {test_resolver, prefix});
    const auto& keys = sets.at(set);
    REQUIRE(keys.size() == indexes.size());
    std::size_t agreed = 0;
    for (std::size_t i = 0; i < keys.size(); ++i)
      agreed += placement->server_of(prefix + keys[i]) == static_cast<std::size_t>(indexes[i] - '0') ? 1 : 0;
    CAPTURE(profile);
    CAPTURE(pool);
    CHECK(agreed == keys.size());
  }
}

TEST_CASE("placement: every profile but four is checked by vectors") {
  std::set<std::string, std::less<>> recorded;
  for (const Record& record : records("profiles.txt")) recorded.insert(record.profile);
  for (const Profile& profile : all_profiles()) {
    if (recorded.contains(profile.name)) continue;
    CAPTURE(profile.name);
    CHECK((profile.name == "ketama" || profile.name == "libmemcached-vbucket" ||
           needs_source(profile.rule.distribution)));
  }
}

TEST_CASE("placement: all servers on which running clients kept a key") {
  const auto sets = key_sets();
  for (const auto& [profile, pool, set, recorded] : records("copies.txt")) {
    const std::string prefix = prefix_of(profile);
    const auto placement = make_placement(profile, pool_named(pool), {test_resolver, prefix});
    std::string found;
    for (const std::string& key : sets.at(set)) {
      std::size_t bits = 0;
      for (const Owner& owner : placement->owners_of(prefix + key).list)
        bits |= std::size_t{1} << owner.server;
      found += "0123456789abcdefghijklmnopqrstuv"[bits];
    }
    CAPTURE(profile);
    CAPTURE(pool);
    CHECK(placement->profile() == profile);
    CHECK(found == recorded);
  }
}

TEST_CASE("placement: where keys go while servers are down, as running clients went") {
  for (const auto& [profile, pool, dead, indexes] : records("failover.txt")) {
    const auto placement = make_placement(profile, pool_named(pool), {test_resolver});
    std::vector<bool> down;
    for (const char mark : dead) down.push_back(mark == '1');
    std::string found;
    for (std::size_t i = 0; i < indexes.size(); ++i) {
      const auto server = placement->server_of_when_down("user:" + std::to_string(i), down);
      found += server ? static_cast<char>('0' + *server) : '-';
    }
    CAPTURE(profile);
    CHECK(found == indexes);
  }
}

}  // namespace mcds::vectors_test
