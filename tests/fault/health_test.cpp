// What the health guard tries again, and what it must not.
#include <doctest/doctest.h>

#include <set>

#include "tests/support/backends.hpp"
#include "tests/support/sockets.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

constexpr auto never = Exptime::never();

std::unique_ptr<Cluster> guarded(const std::vector<Server>& servers, const std::string& protocol) {
  ConnectOptions options = options_of(protocol, std::chrono::seconds(2));
  options.run = std::make_shared<RunLimits>();
  return connect(placement_over(servers), options);
}

// Begun while the server is dead, finished when it is back.
std::vector<Reply> begun_on_a_dead_server(const std::string& protocol, std::vector<Request> batch) {
  MemcachedProcess memcached;
  const auto cluster = guarded({memcached.server()}, protocol);
  memcached.kill();
  const auto pending = cluster->begin(std::move(batch));
  memcached.restart();
  return pending->finish();
}

}  // namespace

// Over classic alone such increments are of two requests each, and executed when they are begun.
TEST_CASE("begun increments and reads of which nothing was sent are tried again, other changes are not") {
  for (const std::string protocol : {"meta", "automatic"}) {
    for (const std::size_t increments : {3U, 2000U}) {
      CAPTURE(protocol);
      CAPTURE(increments);
      const auto counted = begun_on_a_dead_server(
          protocol, std::vector<Request>(increments, Request::incr_or_create("n", 1, 1, never)));
      REQUIRE(counted.size() == increments);
      std::set<std::uint64_t> numbers;
      for (const Reply& reply : counted) {
        CHECK(!reply.failed());
        numbers.insert(reply.number);
      }
      CHECK(numbers.size() == increments);
      CHECK(*numbers.rbegin() == increments);
    }
    const auto mixed = begun_on_a_dead_server(protocol, {Request::incr_or_create("n", 1, 1, never),
                                                         Request::set("k", "v", never), Request::get("k")});
    CHECK(mixed[0].is(ReplyFailure::Kind::unreachable));
    CHECK(mixed[1].is(ReplyFailure::Kind::unreachable));
    CHECK(mixed[2].outcome == Outcome::miss);
  }
}
