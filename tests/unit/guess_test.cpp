#include "common/placement/guess.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "common/base/errors.hpp"

using namespace mcds;

namespace {

Pool pool_of_three() {
  return parse_pool("10.0.0.1,10.0.0.2,10.0.0.3");
}

std::vector<Sighting> placed_by(const char* profile, std::size_t count) {
  const auto placement = make_placement(profile, pool_of_three());
  std::vector<Sighting> sightings;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "user:" + std::to_string(i);
    sightings.push_back({key, {placement->server_of(key)}});
  }
  return sightings;
}

bool contains(const Candidate& candidate, std::string_view profile) {
  return std::count(candidate.profiles.begin(), candidate.profiles.end(), profile) == 1;
}

}  // namespace

TEST_CASE("guess: each client is found by its keys, and told apart from all that place otherwise") {
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
  CHECK(candidates.size() <= 3);
  CHECK(candidates.front().explained == 1);
  CHECK(contains(candidates.front(), "gomemcache"));
  CHECK(!candidates.front().keys_needed);
}

TEST_CASE("guess: leftovers of another client lower the agreement, not the answer") {
  auto sightings = placed_by("dalli", 300);
  for (std::size_t i = 0; i < 300; i += 10) sightings[i].servers = {(sightings[i].servers.front() + 1) % 3};
  const auto best = guess_profiles(pool_of_three(), {}, sightings).front();
  CHECK(contains(best, "dalli"));
  CHECK(best.explained == 270);
}

TEST_CASE("guess: a key on two servers is explained by either") {
  auto sightings = placed_by("gomemcache", 200);
  for (auto& sighting : sightings) sighting.servers.push_back((sighting.servers.front() + 1) % 3);
  const auto best = guess_profiles(pool_of_three(), {}, sightings).front();
  CHECK(best.explained == 200);
}

TEST_CASE("guess: a tie is never told apart") {
  auto sightings = placed_by("gomemcache", 2);
  sightings[0].servers = {0, 1, 2};
  sightings[1].servers = {0, 1, 2};
  const auto candidates = guess_profiles(pool_of_three(), {}, sightings);
  CHECK(candidates.size() > 1);
  CHECK(!candidates.front().keys_needed);
}

TEST_CASE("guess: the namespace is placed as each client does") {
  const auto placement = make_placement("libmemcached-prefix", pool_of_three(), {{}, "shop:"});
  std::vector<Sighting> sightings;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "shop:user:" + std::to_string(i);
    sightings.push_back({key, {placement->server_of(key)}});
  }
  CHECK(contains(guess_profiles(pool_of_three(), {{}, "shop:"}, sightings).front(), "libmemcached-prefix"));
}

TEST_CASE("guess: one server tells nothing") {
  CHECK_THROWS_AS(static_cast<void>(guess_profiles(parse_pool("10.0.0.1"), {}, {})), InvalidInput);
}
