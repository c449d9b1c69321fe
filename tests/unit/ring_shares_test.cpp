#include <doctest/doctest.h>

#include <numeric>

#include "common/placement/ring/continuum.hpp"
#include "common/placement/ring/shares.hpp"

using namespace mcds;

namespace {

double sum(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

std::shared_ptr<const Placement> place(std::string_view profile, std::string_view servers) {
  return make_placement(profile, parse_pool(servers));
}

}  // namespace

TEST_CASE("arcs end where each way of searching ends them") {
  const std::uint64_t top = 0xffffffff;
  struct Case {
    Search search;
    std::vector<Arc> arcs;
  };
  for (const Case& c : {Case{Search::at_or_after, {{0, 50, 0}, {51, 100, 1}, {101, top, 0}}},
                        Case{Search::after, {{0, 49, 0}, {50, 99, 1}, {100, top, 0}}},
                        Case{Search::at_or_before, {{0, 49, 1}, {50, 99, 0}, {100, top, 1}}},
                        Case{Search::enyim, {{0, 49, 1}, {50, 50, 0}, {51, 100, 1}, {101, top, 0}}}}) {
    CAPTURE(static_cast<int>(c.search));
    const std::vector<Arc> arcs = arcs_of(Continuum({{100, 1}, {50, 0}}, c.search, Ties::first_server, 32));
    REQUIRE(arcs.size() == c.arcs.size());
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      CHECK(arcs[i].first == c.arcs[i].first);
      CHECK(arcs[i].last == c.arcs[i].last);
      CHECK(arcs[i].server == c.arcs[i].server);
    }
  }
}

TEST_CASE("one point is the whole circle, of 32 bits or of 64") {
  for (const unsigned bits : {32U, 64U}) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{0xffffffff}}) {
      const Continuum ring({{value, 0}}, Search::at_or_after, Ties::first_server, bits);
      const std::vector<Arc> arcs = arcs_of(ring);
      REQUIRE(arcs.size() == 1);
      CHECK(length_of(arcs.front(), ring) == 1.0);
    }
  }
}

TEST_CASE("half a circle is a half") {
  const Continuum ring({{0x7fffffff, 0}, {0xffffffff, 1}}, Search::at_or_after, Ties::first_server, 32);
  const std::vector<Arc> arcs = arcs_of(ring);
  REQUIRE(arcs.size() == 2);
  CHECK(length_of(arcs[0], ring) == 0.5);
  CHECK(length_of(arcs[1], ring) == 0.5);
}

TEST_CASE("shares sum to 1 whatever the client and the weights") {
  for (const char* profile : {"ketama", "gomemcache", "libmemcached-default"}) {
    for (const char* servers :
         {"a", "a,b,c", "a/?3,b/?1,c/?7", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y"}) {
      CAPTURE(profile);
      CAPTURE(servers);
      const RingShares shares = ring_shares(*place(profile, servers), "");
      CHECK(sum(shares.shares) == doctest::Approx(1).epsilon(1e-12));
      CHECK(sum(shares.fair) == doctest::Approx(1).epsilon(1e-12));
    }
  }
}

TEST_CASE(
    "ketama's arcs are what keys see, and follow the weights; gomemcache has none and keys are counted") {
  const auto ketama = place("ketama", "10.0.0.1/?1,10.0.0.2/?3");
  const RingShares exact = ring_shares(*ketama, "");
  CHECK(exact.exact);
  CHECK(exact.fair == std::vector{0.25, 0.75});
  CHECK(exact.shares[1] == doctest::Approx(0.75).epsilon(0.1));
  CHECK(exact.shares[1] == doctest::Approx(counted_shares(*ketama, "")[1]).epsilon(0.01));
  CHECK(exact.points == std::vector<std::size_t>{80, 240});
  const RingShares counted = ring_shares(*place("gomemcache", "a,b"), "");
  CHECK_FALSE(counted.exact);
  CHECK(counted.points.empty());
  CHECK(counted.shares[0] == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("a weight of 0 is no share, but 1 for the clients that read it so") {
  CHECK(fair_shares(*place("gomemcache", "a/?0,b/?3")) == std::vector{0.0, 1.0});
  CHECK(fair_shares(*place("ketama", "a/?0,b/?3")) == std::vector{0.25, 0.75});
}
