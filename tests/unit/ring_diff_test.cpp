#include <doctest/doctest.h>

#include "common/placement/ring/shares.hpp"

using namespace mcds;

namespace {

std::shared_ptr<const Placement> placement_on(std::string_view profile, std::string_view servers) {
  return make_placement(profile, parse_pool(servers));
}

std::string servers(int count) {
  std::string list = "10.0.0.1";
  for (int i = 2; i <= count; ++i) list += ",10.0.0." + std::to_string(i);
  return list;
}

void add_samples(RingDiff& diff) {
  SampleKeys keys("");
  for (int i = 0; i < 20'000; ++i) diff.add(keys.next(), 10);
}

}  // namespace

TEST_CASE("nothing moves between a pool and itself, whatever the order the client does not care for") {
  const auto before = placement_on("ketama", "10.0.0.1,10.0.0.2,10.0.0.3"),
             after = placement_on("ketama", "10.0.0.3,10.0.0.1,10.0.0.2");
  RingDiff diff(*before, *after);
  add_samples(diff);
  CHECK(diff.all().keys == 20'000);
  CHECK(diff.all().bytes == 200'000);
  CHECK(diff.moved().keys == 0);
  CHECK(diff.pairs().empty());
  CHECK(diff.ideal_share() == 0);
}

TEST_CASE(
    "one server more moves about 1/(n+1) of the keys under ketama, all of them to it; n/(n+1) by division") {
  for (const int n : {3, 7, 24}) {
    CAPTURE(n);
    const auto before = placement_on("ketama", servers(n)), after = placement_on("ketama", servers(n + 1));
    RingDiff diff(*before, *after);
    add_samples(diff);
    CHECK(diff.ideal_share() == doctest::Approx(1.0 / (n + 1)).epsilon(1e-9));
    CHECK(diff.moved_share() == doctest::Approx(1.0 / (n + 1)).epsilon(0.35));
    std::uint64_t to_new = 0, sum = 0;
    for (const RingDiff::Pair& pair : diff.pairs()) {
      sum += pair.moved.keys;
      if (pair.to == "10.0.0." + std::to_string(n + 1) + ":11211") to_new += pair.moved.keys;
    }
    CHECK(sum == diff.moved().keys);
    // The rounding of libmemcached also takes 4 points from each of 24 servers when a 25th is added.
    CHECK(static_cast<double>(to_new) >= (n == 24 ? 0.5 : 1.0) * static_cast<double>(sum));
    const auto divided = placement_on("gomemcache", servers(n)),
               more = placement_on("gomemcache", servers(n + 1));
    RingDiff division(*divided, *more);
    add_samples(division);
    CHECK(division.moved_share() == doctest::Approx(static_cast<double>(n) / (n + 1)).epsilon(0.02));
  }
}

TEST_CASE("a server that takes over another's name moves its keys all the same") {
  const auto before = placement_on("ketama", "x=10.0.0.1,y=10.0.0.2"),
             after = placement_on("ketama", "x=10.0.0.9,y=10.0.0.2");
  RingDiff diff(*before, *after);
  add_samples(diff);
  REQUIRE(diff.pairs().size() == 1);
  CHECK(diff.pairs().front().from == "10.0.0.1:11211");
  CHECK(diff.pairs().front().to == "10.0.0.9:11211");
  CHECK(diff.ideal_share() == doctest::Approx(0.5));
}

TEST_CASE("a key found off its place is astray: neither kept nor moved") {
  const auto before = placement_on("ketama", "10.0.0.1,10.0.0.2"),
             after = placement_on("ketama", "10.0.0.1,10.0.0.3");
  RingDiff diff(*before, *after);
  const std::size_t owner = before->server_of("k");
  diff.add("k", 5, 1 - owner);
  CHECK(diff.misplaced().keys == 1);
  CHECK(diff.misplaced().bytes == 5);
  CHECK(diff.all().keys == 0);
  CHECK(diff.moved_share() == 0);
  diff.add("k", 5, owner);
  CHECK(diff.all().keys == 1);
}

TEST_CASE("the ideal counts weights: growing one of two servers from 1 to 3 moves a quarter") {
  const auto before = placement_on("ketama", "a/?1,b/?1"), after = placement_on("ketama", "a/?1,b/?3");
  CHECK(RingDiff(*before, *after).ideal_share() == doctest::Approx(0.25));
}
