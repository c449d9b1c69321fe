#include "common/placement/ring/continuum.hpp"

#include <doctest/doctest.h>

using namespace mcds;

namespace {

std::uint32_t found(Search search, std::uint64_t hash) {
  return Continuum({{100, 1}, {50, 0}, {200, 2}}, search, Ties::first_server, 32).server_of(hash);
}

}  // namespace

TEST_CASE("every way of searching wraps around as its client does") {
  struct Case {
    Search search;
    std::uint32_t below, at, between, above;
  };
  for (const Case& c : {Case{Search::at_or_after, 0, 1, 2, 0}, Case{Search::after, 0, 2, 2, 0},
                        Case{Search::at_or_before, 2, 1, 1, 2}, Case{Search::enyim, 2, 1, 2, 0}}) {
    CAPTURE(static_cast<int>(c.search));
    CHECK(found(c.search, 10) == c.below);
    CHECK(found(c.search, 100) == c.at);
    CHECK(found(c.search, 150) == c.between);
    CHECK(found(c.search, 0xffffffff) == c.above);
  }
}

TEST_CASE("of equal points one stays: the first server's or the last added") {
  const std::vector<Point> points{{7, 2}, {7, 0}, {7, 1}};
  CHECK(Continuum(points, Search::at_or_after, Ties::first_server, 32).server_of(7) == 0);
  CHECK(Continuum(points, Search::at_or_after, Ties::last_added, 32).server_of(7) == 1);
}

TEST_CASE("points at the ends of a 64-bit circle are found") {
  const Continuum ring({{0, 0}, {~std::uint64_t{0}, 1}}, Search::at_or_after, Ties::first_server, 64);
  CHECK(ring.server_of(0) == 0);
  CHECK(ring.server_of(1) == 1);
  CHECK(ring.server_of(~std::uint64_t{0}) == 1);
}
