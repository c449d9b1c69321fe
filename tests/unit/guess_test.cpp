#include "common/placement/guess.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "common/base/errors.hpp"

using namespace mcds;

namespace {

Pool pool_of_three() {
  return parse_pool("10.0.0.1,10.0.0.2,10.0.0.3");
}

std::vector<KeyLocation> placed_by(const char* profile, std::size_t count) {
  const auto placement = make_placement(profile, pool_of_three());
  std::vector<KeyLocation> locations;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "user:" + std::to_string(i);
    locations.push_back({key, {placement->server_of(key)}});
  }
  return locations;
}

bool contains(const Candidate& candidate, std::string_view profile) {
  return std::count(candidate.profiles.begin(), candidate.profiles.end(), profile) == 1;
}

}  // namespace

TEST_CASE("guess: each client is found by its keys, and distinguished from all that place otherwise") {
  for (const char* profile : {"ketama", "gomemcache", "dalli", "pymemcache-rendezvous", "twemproxy-default",
                              "libmemcached-default", "php-memcached-consistent", "mcrouter-ch3"}) {
    CAPTURE(profile);
    const auto candidates = guess_profiles(pool_of_three(), {}, placed_by(profile, 300));
    const Candidate& best = candidates.front();
    CHECK(best.explained == 300);
    CHECK(contains(best, profile));
    REQUIRE(best.keys_needed);
    CHECK(*best.keys_needed < 300);
    CHECK(candidates[1].explained < 300);
    CHECK(*candidates[1].keys_needed <= *best.keys_needed);
  }
}

TEST_CASE("guess: profiles that place alike are one candidate") {
  const auto best = guess_profiles(pool_of_three(), {}, placed_by("ketama", 300)).front();
  CHECK(contains(best, "libmemcached-ketama-weighted"));
  CHECK(contains(best, "twemproxy-ketama-md5"));
}

TEST_CASE("guess: too few keys tell nothing apart") {
  const auto candidates = guess_profiles(pool_of_three(), {}, placed_by("gomemcache", 1));
  CHECK(candidates.size() <= 9);
  CHECK(candidates.front().explained == 1);
  CHECK(contains(candidates.front(), "gomemcache"));
  CHECK(!candidates.front().keys_needed);
}

TEST_CASE("guess: leftovers of another client lower the agreement, not the answer") {
  auto locations = placed_by("dalli", 300);
  for (std::size_t i = 0; i < 300; i += 10) locations[i].servers = {(locations[i].servers.front() + 1) % 3};
  const auto best = guess_profiles(pool_of_three(), {}, locations).front();
  CHECK(contains(best, "dalli"));
  CHECK(best.explained == 270);
}

TEST_CASE("guess: a key on two servers is explained by either") {
  auto locations = placed_by("gomemcache", 200);
  for (auto& location : locations) location.servers.push_back((location.servers.front() + 1) % 3);
  const auto best = guess_profiles(pool_of_three(), {}, locations).front();
  CHECK(best.explained == 200);
}

TEST_CASE(
    "guess: copies that a second client wrote again elsewhere are found, though the first explains every "
    "key") {
  auto locations = placed_by("dalli", 400);
  const auto second = make_placement("gomemcache", pool_of_three());
  std::size_t elsewhere = 0;
  for (std::size_t i = 0; i < 400; i += 2) {
    const std::size_t server = second->server_of(locations[i].key);
    if (server == locations[i].servers.front()) continue;
    locations[i].servers.push_back(server);
    ++elsewhere;
  }
  const auto candidates = guess_profiles(pool_of_three(), {}, locations);
  CHECK(contains(candidates.front(), "dalli"));
  CHECK(candidates.front().explained == 400);
  const auto others = other_copies(candidates.front(), pool_of_three(), {}, locations);
  CHECK(others.size() == elsewhere);
  const auto of_others = guess_profiles(pool_of_three(), {}, others);
  CHECK(is_certain(of_others));
  CHECK(contains(of_others.front(), "gomemcache"));
  CHECK(other_copies(candidates.front(), pool_of_three(), {}, placed_by("dalli", 400)).empty());
}

TEST_CASE("guess: a tie is never distinguished") {
  auto locations = placed_by("gomemcache", 2);
  locations[0].servers = {0, 1, 2};
  locations[1].servers = {0, 1, 2};
  const auto candidates = guess_profiles(pool_of_three(), {}, locations);
  CHECK(candidates.size() > 1);
  CHECK(!candidates.front().keys_needed);
}

TEST_CASE("guess: the namespace is placed as each client does") {
  const auto placement = make_placement("libmemcached-prefix", pool_of_three(), {{}, "shop:"});
  std::vector<KeyLocation> locations;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "shop:user:" + std::to_string(i);
    locations.push_back({key, {placement->server_of(key)}});
  }
  CHECK(contains(guess_profiles(pool_of_three(), {{}, "shop:"}, locations).front(), "libmemcached-prefix"));
}

TEST_CASE("guess: one server tells nothing") {
  CHECK_THROWS_AS(static_cast<void>(guess_profiles(parse_pool("10.0.0.1"), {}, {})), InvalidInput);
}

namespace {

// Returns keys on random servers, which no profile explains.
std::vector<KeyLocation> thrown(std::mt19937& random, std::size_t keys, std::size_t servers) {
  std::vector<KeyLocation> locations;
  for (std::size_t i = 0; i < keys; ++i)
    locations.push_back({"user:" + std::to_string(random()), {random() % servers}});
  return locations;
}

Pool pool_of(std::size_t servers) {
  Pool pool;
  for (std::size_t i = 0; i < servers; ++i) pool.push_back({.host = "10.0.0." + std::to_string(i + 1)});
  return pool;
}

std::vector<KeyLocation> mixed(std::mt19937& random, const Pool& pool, const char* one, const char* other,
                               std::size_t keys, double share) {
  const auto first = make_placement(one, pool), second = make_placement(other, pool);
  std::vector<KeyLocation> locations;
  for (std::size_t i = 0; i < keys; ++i) {
    const std::string key = "user:" + std::to_string(random());
    const bool by_first = static_cast<double>(i) < share * static_cast<double>(keys);
    locations.push_back({key, {(by_first ? first : second)->server_of(key)}});
  }
  std::shuffle(locations.begin(), locations.end(), random);
  return locations;
}

}  // namespace

TEST_CASE("guess: keys that lie anywhere make no profile certain, however few they are") {
  std::mt19937 random(1);
  for (std::size_t servers = 2; servers <= 5; ++servers) {
    for (std::size_t keys = 3; keys <= 12; ++keys) {
      for (int again = 0; again < 3; ++again)
        CHECK_FALSE(is_certain(guess_profiles(pool_of(servers), {}, thrown(random, keys, servers))));
    }
  }
}

TEST_CASE("guess: fewer than 12 keys are never enough, many are") {
  CHECK_FALSE(is_certain(guess_profiles(pool_of_three(), {}, placed_by("gomemcache", 11))));
  CHECK(is_certain(guess_profiles(pool_of_three(), {}, placed_by("gomemcache", 200))));
}

TEST_CASE("guess: the best known of those that place alike is named first") {
  CHECK(
      guess_profiles(pool_of_three(), {}, placed_by("twemproxy-ketama-md5", 300)).front().profiles.front() ==
      "ketama");
  CHECK(guess_profiles(pool_of_three(), {}, placed_by("php-memcached-modula-md5", 300))
            .front()
            .profiles.front() == "libmemcached-modula-md5");
}

TEST_CASE(
    "guess: profiles that are one on this pool only are distinguished from those that are one everywhere") {
  const auto best = guess_profiles(pool_of_three(), {}, placed_by("ketama", 300)).front();
  const auto here = [&](std::string_view name) {
    return std::count(best.alike_here.begin(), best.alike_here.end(), name) == 1;
  };
  CHECK_FALSE(here("php-memcached-ketama-compatible"));
  CHECK(here("node-memcached"));
}

TEST_CASE("guess: two writers are told with their shares") {
  std::mt19937 random(2);
  for (const double share : {0.5, 0.7, 0.9}) {
    CAPTURE(share);
    const auto candidates =
        guess_profiles(pool_of(5), {}, mixed(random, pool_of(5), "dalli", "gomemcache", 1000, share));
    const auto writers = writers_of(candidates);
    REQUIRE(writers.size() == 2);
    const bool first_is_dalli = candidates[writers[0].candidate].profiles.front() == "dalli";
    CHECK(candidates[writers[first_is_dalli ? 0 : 1].candidate].profiles.front() == "dalli");
    CHECK(candidates[writers[first_is_dalli ? 1 : 0].candidate].profiles.front() == "gomemcache");
    CHECK(std::abs(writers[first_is_dalli ? 0 : 1].share - share) < 0.05);
  }
  CHECK(writers_of(guess_profiles(pool_of(5), {}, placed_by("dalli", 300))).empty());
  CHECK(writers_of(guess_profiles(pool_of(3), {}, thrown(random, 500, 3))).empty());
}

TEST_CASE("guess: a prefix that the client does not hash is found, and named") {
  const auto placement = make_placement("pymemcache-rendezvous-prefix", pool_of_three(), {{}, "shop"});
  std::vector<KeyLocation> locations;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "shopuser:" + std::to_string(i);
    locations.push_back({key, {placement->server_of(key)}});
  }
  const auto best = guess_profiles(pool_of_three(), {}, locations).front();
  CHECK(best.explained == 300);
  CHECK(best.prefix == "shop");
  CHECK(contains(best, "pymemcache-rendezvous-prefix"));
}

TEST_CASE("guess: one client under several prefixes is named under each, with its share") {
  std::vector<KeyLocation> locations;
  for (const char* prefix : {"staging:", "prod:", "test/1/"}) {
    const auto placement = make_placement("pymemcache-rendezvous-prefix", pool_of(4), {{}, prefix});
    for (int i = 0; i < 100; ++i) {
      const std::string key = prefix + ("user:" + std::to_string(i));
      locations.push_back({key, {placement->server_of(key)}});
    }
  }
  const auto candidates = guess_profiles(pool_of(4), {}, locations);
  CHECK_FALSE(is_certain(candidates));
  const auto writers = writers_of(candidates);
  REQUIRE(writers.size() == 3);
  std::vector<std::string> prefixes;
  for (const Writer& writer : writers) {
    CHECK(contains(candidates[writer.candidate], "pymemcache-rendezvous-prefix"));
    CHECK(std::abs(writer.share - 1.0 / 3) < 0.01);
    prefixes.push_back(candidates[writer.candidate].prefix);
  }
  std::ranges::sort(prefixes);
  CHECK(prefixes == std::vector<std::string>{"prod:", "staging:", "test/1/"});
}

TEST_CASE("guess: a client that sorts its list, and one whose list has that order, are not distinguished") {
  const auto placement = make_placement("libmemcached-default", pool_of(3));
  const Pool shuffled = parse_pool("10.0.0.3,10.0.0.1,10.0.0.2");
  std::vector<KeyLocation> locations;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "user:" + std::to_string(i);
    locations.push_back({key, {(placement->server_of(key) + 1) % 3}});
  }
  const auto candidates = guess_profiles(shuffled, {}, locations);
  CHECK(contains(candidates.front(), "libmemcached-modula-sorted"));
  const auto other = other_order(candidates.front(), shuffled);
  REQUIRE(other);
  CHECK(other->profile == "libmemcached-default");
  CHECK(other->servers == pool_of_three());
  CHECK_FALSE(other_order(guess_profiles(pool_of(3), {}, placed_by("libmemcached-default", 300)).front(),
                          pool_of(3)));
}

TEST_CASE("guess: sessions in several copies are explained by the profile that keeps several") {
  const auto placement = make_placement("php-memcache-session", pool_of(5));
  std::vector<KeyLocation> locations;
  for (int i = 0; i < 300; ++i) {
    KeyLocation location{"s" + std::to_string(i), {}};
    for (const Owner& owner : placement->owners_of(location.key).list)
      location.servers.push_back(owner.server);
    locations.push_back(location);
  }
  const auto candidates = guess_profiles(pool_of(5), {}, locations);
  CHECK(candidates.front().explained == 300);
  CHECK(contains(candidates.front(), "php-memcache-session"));
  CHECK(is_certain(candidates));
}

TEST_CASE("guess: what another client explains as well with this number of servers alone is not certain") {
  for (const char* profile : {"libmemcached-modula-md5", "node-memcache-modula-md5"}) {
    const std::string other = profile[0] == 'l' ? "node-memcache-modula-md5" : "libmemcached-modula-md5";
    for (const int servers : {3, 5, 10}) {
      CAPTURE(profile);
      CAPTURE(servers);
      const Pool pool = pool_of(static_cast<std::size_t>(servers));
      const auto placement = make_placement(profile, pool);
      std::vector<KeyLocation> locations;
      for (int i = 0; i < 1000; ++i) {
        const std::string key = "user:" + std::to_string(i);
        locations.push_back({key, {placement->server_of(key)}});
      }
      const auto candidates = guess_profiles(pool, {}, locations);
      CHECK(candidates.front().explained == 1000);
      CHECK(contains(candidates.front(), profile));
      CHECK(contains(candidates.front(), other) == (servers != 10));
      CHECK(is_certain(candidates) == (servers == 10));
    }
  }
}

TEST_CASE("guess: keys that are on every server were put there by a client that does so") {
  for (const std::size_t servers : {2U, 3U, 5U}) {
    CAPTURE(servers);
    std::vector<KeyLocation> locations;
    for (int i = 0; i < 200; ++i) {
      KeyLocation location{"user:" + std::to_string(i), {}};
      for (std::size_t server = 0; server < servers; ++server) location.servers.push_back(server);
      locations.push_back(location);
    }
    locations.back().servers.pop_back();  // one copy was evicted
    const auto candidates = guess_profiles(pool_of(servers), {}, locations);
    CHECK(contains(candidates.front(), "bmemcached-replicating"));
    CHECK(candidates.front().explained == 199);
    // Clients that keep two copies use both of two servers too.
    CHECK(is_certain(candidates) == (servers > 2));
  }
}
