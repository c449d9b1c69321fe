// Tests which requests the health guard retries, and which it must not retry.
#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "tests/support/backends.hpp"
#include "tests/support/fault_proxy.hpp"
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

// Begins a batch while the server is dead, and finishes it when the server is back.
std::vector<Reply> begun_on_a_dead_server(const std::string& protocol, std::vector<Request> batch) {
  MemcachedProcess memcached;
  const auto cluster = guarded({memcached.server()}, protocol);
  memcached.kill();
  const auto pending = cluster->begin(std::move(batch));
  memcached.restart();
  return pending->finish();
}

}  // namespace

// The classic protocol is left out: its increments are two requests each, executed when they begin.
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

// The read may be sent although the write before it was cut off: it is another request, and the unknown
// outcome of the write was reported.
TEST_CASE("after a reply that was cut off the server is asked once more, on a new connection") {
  for (const std::string protocol : {"classic", "meta", "automatic"}) {
    for (const Fault fault : {Fault::cut_reply, Fault::hang_up}) {
      CAPTURE(protocol);
      CAPTURE(static_cast<int>(fault));
      MemcachedProcess memcached;
      FaultProxy proxy(memcached.server());
      const auto cluster = guarded({proxy.server()}, protocol);
      // A new connection's first request has a reply of its own, which would be the one that is cut.
      CHECK(cluster->execute(Request::get("first")).outcome == Outcome::miss);
      for (int time = 0; time < 3; ++time) {
        const std::string key = "k" + std::to_string(time);
        proxy.after(0, fault);
        CHECK(cluster->execute(Request::set(key, "v", never)).unknown());
        CHECK(cluster->execute(Request::get(key)).outcome ==
              (fault == Fault::cut_reply ? Outcome::hit : Outcome::miss));
      }
    }
  }
}

TEST_CASE("a server that closes one connection after the other is sent nothing more") {
  MemcachedProcess memcached;
  FaultProxy proxy(memcached.server());
  const auto cluster = guarded({proxy.server()}, "meta");
  CHECK(cluster->execute(Request::set("k", "v", never)).outcome == Outcome::stored);
  proxy.always(Fault::hang_up);
  CHECK(cluster->execute(Request::set("k", "w", never)).unknown());
  CHECK(cluster->execute(Request::set("k", "x", never)).unknown());
  for (int i = 0; i < 20; ++i)
    CHECK(cluster->execute(Request::set("k", "y", never)).is(ReplyFailure::Kind::unreachable));
  CHECK(proxy.received().find(" 1\r\ny") == std::string::npos);
  proxy.always(Fault::none);
  while (cluster->execute(Request::get("k")).failed()) std::this_thread::yield();
  CHECK(cluster->execute(Request::get("k")).value == "v");
}
