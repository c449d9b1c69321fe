// The servers that clients use while others are down, computed a second time from the rules' description.
#include <doctest/doctest.h>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/placement/placement.hpp"
#include "common/placement/profiles/profile.hpp"

using namespace mcds;

namespace {

Pool pool_of_five() {
  return parse_pool("10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5");
}

std::string key(int number) {
  return "user:" + std::to_string(number);
}

std::uint64_t crc15(const std::string& text) {
  return crc32(text) >> 16 & 0x7fff;
}

using Down = std::vector<bool>;

// Checks `rule(key)`, the servers it tries in order, against the profile with servers 1 and 3 down.
template <typename Rule>
void check(const char* profile, Rule rule) {
  CAPTURE(profile);
  const auto placement = make_placement(profile, pool_of_five());
  const Down down{false, true, false, true, false};
  for (int i = 0; i < 500; ++i) {
    const std::vector<std::size_t> tries = rule(key(i));
    REQUIRE(tries.front() == placement->server_of(key(i)));
    std::optional<std::size_t> expected;
    for (const std::size_t server : tries) {
      if (!expected && !down[server]) expected = server;
    }
    REQUIRE(placement->server_of_when_down(key(i), down) == expected);
  }
}

}  // namespace

TEST_CASE("failover: gomemcache loses the keys of a dead server and keeps the others") {
  check("gomemcache", [](const std::string& key) { return std::vector<std::size_t>{crc32(key) % 5}; });
}

TEST_CASE("failover: python-memcached hashes its hash and the number of the try as text, ten times") {
  check("python-memcached", [](const std::string& key) {
    std::vector<std::size_t> tries;
    std::uint64_t hash = crc15(key);
    for (int i = 0; i < 10; ++i) {
      hash = hash == 0 ? 1 : hash;
      tries.push_back(hash % 5);
      hash = crc15(std::to_string(hash) + std::to_string(i));
    }
    return tries;
  });
}

TEST_CASE("failover: Cache::Memcached and nginx add the hash of the number of the try and the key") {
  for (const char* profile : {"perl-cache-memcached", "nginx-hash"}) {
    check(profile, [](const std::string& key) {
      std::vector<std::size_t> tries;
      std::uint64_t hash = crc15(key);
      for (int i = 1; i <= 20; ++i) {
        tries.push_back(hash % 5);
        hash += crc15(std::to_string(i) + key);
      }
      return tries;
    });
  }
}

TEST_CASE("failover: memjs and spymemcached's array take the next server") {
  for (const char* profile : {"memjs", "spymemcached-default"}) {
    const auto placement = make_placement(profile, pool_of_five());
    check(profile, [&](const std::string& key) {
      const std::size_t home = placement->server_of(key);
      return std::vector<std::size_t>{home, (home + 1) % 5, (home + 2) % 5, (home + 3) % 5, (home + 4) % 5};
    });
  }
}

TEST_CASE("failover: dalli, PECL memcache and spymemcached place another text: each try is a placement") {
  const auto numbered = [](const char* profile, auto text_of) {
    const auto placement = make_placement(profile, pool_of_five());
    check(profile, [&](const std::string& key) {
      std::vector<std::size_t> tries{placement->server_of(key)};
      for (int i = 0; i < 19; ++i) tries.push_back(placement->server_of(text_of(key, i)));
      return tries;
    });
  };
  numbered("dalli", [](const std::string& key, int i) { return std::to_string(i) + key; });
  for (const char* profile : {"php-memcache-default", "php-memcache-standard-crc32"}) {
    numbered(profile, [](const std::string& key, int i) { return key + '-' + std::to_string(i); });
  }
}

TEST_CASE("failover: twemproxy and pymemcache place on the pool without the dead servers") {
  for (const char* profile :
       {"twemproxy-ketama-md5:eject=yes", "twemproxy-modula-crc32:eject=yes", "pymemcache-rendezvous"}) {
    const auto whole = make_placement(profile, pool_of_five());
    const auto rest = make_placement(profile, parse_pool("10.0.0.1,10.0.0.3,10.0.0.5"));
    const std::vector<std::size_t> indexes{0, 2, 4};
    for (int i = 0; i < 200; ++i) {
      CHECK(whole->server_of_when_down(key(i), {false, true, false, true, false}) ==
            indexes[rest->server_of(key(i))]);
    }
  }
}

TEST_CASE("failover: whatever the rule, nobody is sent to a dead server and nobody leaves one that lives") {
  for (const Profile& profile : all_profiles()) {
    CAPTURE(profile.name);
    if (profile.rule.failover == Failover::unknown || needs_source(profile.rule.distribution)) continue;
    const auto placement =
        make_placement(profile.name, pool_of_five(),
                       {{[](const std::string& name) { return std::optional(name); }, {}}, {}});
    for (int i = 0; i < 50; ++i) {
      const std::size_t home = placement->server_of(key(i));
      Down down(5);
      CHECK(placement->server_of_when_down(key(i), down) == home);
      down[home] = true;
      CHECK(placement->server_of_when_down(key(i), down) != home);
      CHECK(placement->server_of_when_down(key(i), Down(5, true)) == std::nullopt);
      if (profile.rule.failover == Failover::rebuilt) continue;
      down[home] = false;
      down[(home + 1) % 5] = true;
      CHECK(placement->server_of_when_down(key(i), down) == home);
    }
  }
}

TEST_CASE("failover: a client whose rule is not known refuses to answer") {
  for (const Profile& profile : all_profiles()) {
    if (profile.rule.failover != Failover::unknown || needs_source(profile.rule.distribution)) continue;
    const auto placement =
        make_placement(profile.name, pool_of_five(),
                       {{[](const std::string& name) { return std::optional(name); }, {}}, {}});
    CHECK_THROWS_AS(static_cast<void>(placement->server_of_when_down("k", Down(5))), InvalidInput);
  }
}
