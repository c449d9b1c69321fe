// A lock behind a faulty network, on a real server with each transport.
#include <doctest/doctest.h>

#include <array>

#include "common/base/errors.hpp"
#include "common/structures/lock/lock.hpp"
#include "common/structures/lock/value.hpp"
#include "tests/support/fault_proxy.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/sockets.hpp"

namespace mcds::lock_fault_test {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fault;
using Protocol = ConnectOptions::Protocol;

constexpr std::array faults{Fault::lose_request,  Fault::lose_reply, Fault::cut_request,
                            Fault::cut_reply,     Fault::hang_up,    Fault::truncate_reply,
                            Fault::answer_garbage};

struct World {
  explicit World(Protocol protocol)
      : cluster(connect(
            make_placement("ketama", test::pool_of({proxy.server()})),
            {.timeout = milliseconds(60), .connect_timeout = milliseconds(200), .protocol = protocol})),
        lock(Context{*cluster, clock, random, ""}, "l") {
    // The transport knows its server already: the following trips are the lock's own.
    proxy.garbage("garbage\r\n");
    lock.release("none");
  }

  std::string stored() {
    const std::string answer = test::talk(server.server(), "get lock:l\r\n", "END\r\n");
    const std::size_t line = answer.find("\r\n");
    return answer.starts_with("VALUE") ? LockValue::parse(std::string_view(answer).substr(line + 2)).token
                                       : "";
  }
  std::optional<Lease> acquire() {
    try {
      auto answer = lock.acquire({.ttl = seconds(30), .holder = {}, .fence = true});
      CHECK(answer.lease);
      return answer.lease;
    } catch (const Failure&) {
      return std::nullopt;
    }
  }

  test::MemcachedProcess server;
  test::FaultProxy proxy{server.server()};
  SystemClock clock;
  SystemRandom random;
  std::unique_ptr<Cluster> cluster;
  Lock lock;
};

template <typename Test>
void for_each_fault(const Test& test) {
  for (const Protocol protocol : {Protocol::classic, Protocol::meta}) {
    World world(protocol);
    for (const Fault fault : faults) {
      for (std::size_t trip = 0; trip < 3; ++trip) {
        CAPTURE(static_cast<int>(protocol));
        CAPTURE(static_cast<int>(fault));
        CAPTURE(trip);
        test(world, [&] { world.proxy.after(trip, fault); });
        world.proxy.always(Fault::none);
        world.lock.force_release();
      }
    }
  }
}

}  // namespace

TEST_CASE("lock: one fault never locks an owner out, nor makes an owner of who is not") {
  for_each_fault([](World& world, const auto& inject) {
    inject();
    const auto lease = world.acquire();
    world.proxy.always(Fault::none);
    if (lease) {
      CHECK(world.stored() == lease->token);
      CHECK(lease->fence);
    }
  });
}

TEST_CASE("lock: one fault never loses a renewal of a lock that is held") {
  for_each_fault([](World& world, const auto& inject) {
    auto lease = world.acquire();
    REQUIRE(lease);
    inject();
    CHECK(world.lock.renew(*lease, seconds(30)) == Lock::Renewal::renewed);
    CHECK(world.stored() == lease->token);
  });
}

TEST_CASE("lock: one fault never removes another's lock, and a release that says so has happened") {
  for_each_fault([](World& world, const auto& inject) {
    const auto lease = world.acquire();
    REQUIRE(lease);
    inject();
    CHECK(world.lock.release(*lease).result == Lock::Freed::Result::released);
    CHECK(world.stored().empty());
    world.proxy.always(Fault::none);
    const auto next = world.acquire();
    REQUIRE(next);
    CHECK(world.lock.release(*lease).result == Lock::Freed::Result::not_owner);
    CHECK(world.stored() == next->token);
  });
}

TEST_CASE("lock: a cas unique remembered over a restart removes nobody's lock") {
  for (const Protocol protocol : {Protocol::classic, Protocol::meta}) {
    World world(protocol);
    const auto mine = world.acquire();
    REQUIRE(mine);
    world.server.restart();
    // The new server counts cas tokens from 1 again: the concurrent writer's value gets our token.
    test::talk(world.server.server(), "add lock:l 0 60 6\r\nrival \r\n");
    CHECK(world.lock.release(*mine).result == Lock::Freed::Result::not_owner);
    CHECK(world.stored() == "rival");
  }
}

}  // namespace mcds::lock_fault_test
