// Locks whose keys have copies: the majority decides.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include "common/base/errors.hpp"
#include "common/structures/lock/lock.hpp"
#include "common/structures/lock/value.hpp"
#include "tests/support/world.hpp"

namespace mcds::lock_copies_test {

namespace {

using namespace std::chrono_literals;

struct VotingWorld : test::World {
  explicit VotingWorld(std::size_t servers = 3, std::size_t copies = 3) : World(servers, copies) {
    clock.advance(11min);
  }
  Lock lock() { return Lock(context, "l"); }
  // Cuts the client off from all other servers.
  void reach(std::initializer_list<std::size_t> servers) {
    faults.choose(
        [reached = std::vector<std::size_t>(servers)](const Request& request) -> std::optional<test::Mishap> {
          if (std::find(reached.begin(), reached.end(), request.server) != reached.end()) return std::nullopt;
          return test::Mishap::unreachable;
        });
  }
  Lock::Answer acquire(Duration ttl = 60s) {
    return lock().acquire({.ttl = ttl, .holder = {}, .fence = true});
  }
  std::string token_on(std::size_t server) {
    const auto item = memory.server(server).peek("lock:l");
    return item ? LockValue::parse(item->value).token : "";
  }
};

}  // namespace

TEST_CASE("lock copies: as many trips as one copy, once the servers are known to be old enough") {
  VotingWorld world;
  Lock lock = world.lock();
  std::optional<Lease> lease;
  const auto take = [&] { lease = world.acquire().lease; };
  CHECK(world.trips.trips_of(take) == 4);  // three for the first vote; the fence does not exist yet
  CHECK(world.trips.trips_of([&] { lock.renew(*lease, 60s); }) == 1);
  CHECK(world.trips.trips_of([&] { lock.release(*lease); }) == 1);
  CHECK(world.trips.trips_of(take) == 1);
  const std::vector<std::string> names{"l"};
  CHECK(world.trips.trips_of([&] { CHECK(Lock::show(world.context, names).front().held); }) == 1);
}

TEST_CASE("lock copies: a fence that begins on servers that were restarted behind their votes is not used") {
  VotingWorld world;
  Lock lock = world.lock();
  lock.release(*world.acquire().lease);
  for (const std::size_t server : {1, 2}) world.memory.server(server).evict("lock:l:fence");
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.op == Op::incr_or_create && request.server > 0)
      world.memory.server(*request.server).restart();
    return std::nullopt;
  });
  CHECK_THROWS_AS(world.acquire(), NotApplied);
  CHECK(world.token_on(0).empty());
}

TEST_CASE("lock copies: one holder, whoever it is; the ttl is counted less the drift") {
  VotingWorld world;
  const auto mine = world.acquire();
  REQUIRE(mine.lease);
  CHECK(mine.lease->deadline - world.clock.steady() <= 60s - 600ms);
  const auto other = world.acquire();
  CHECK_FALSE(other.lease);
  CHECK_FALSE(other.split);
  CHECK(other.holder.starts_with('{'));
  CHECK(world.lock().release(mine.lease->token).result == Lock::Freed::Result::released);
  for (std::size_t server = 0; server < 3; ++server) CHECK(world.token_on(server).empty());
}

TEST_CASE("lock copies: without a majority, each copy says whether it is held") {
  VotingWorld world;
  REQUIRE(world.acquire().lease);
  for (const std::size_t server : {0, 1}) world.memory.server(server).execute(Request::remove("lock:l"));
  const std::vector<std::string> names{"l"};
  const Lock::Shown shown = Lock::show(world.context, names).front();
  CHECK_FALSE(shown.held);
  for (const CopyOutcome& copy : shown.copies) CHECK(copy.yes == (copy.server == 2));
}

TEST_CASE("lock copies: two of three servers are enough, one is not, and nothing is left behind") {
  VotingWorld world;
  world.memory.kill(1);
  const auto answer = world.acquire();
  REQUIRE(answer.lease);
  std::size_t failures = 0;
  for (const CopyOutcome& copy : answer.copies) failures += copy.failure ? 1 : 0;
  CHECK(failures == 1);
  world.lock().release(*answer.lease);
  world.memory.kill(2);
  CHECK_THROWS_AS(world.acquire(), NotApplied);
  CHECK(world.token_on(0).empty());
}

TEST_CASE("lock copies: servers that came back empty do not help a second holder to a majority") {
  VotingWorld world;
  const auto mine = world.acquire(5min);
  REQUIRE(mine.lease);
  world.memory.restart(0);
  world.memory.restart(1);
  CHECK_THROWS_AS(world.acquire(5min), NotApplied);
  world.clock.advance(4min);
  CHECK_THROWS_AS(world.acquire(5min), NotApplied);
  world.clock.advance(7min);
  CHECK(world.acquire(5min).lease);
}

TEST_CASE(
    "lock copies: what a majority may have taken and does not give back is not refused with certainty") {
  for (const std::size_t silent : {1U, 2U, 3U}) {
    CAPTURE(silent);
    VotingWorld world;
    REQUIRE(world.lock().release(world.acquire().lease->token).result == Lock::Freed::Result::released);
    // The other servers refuse. These execute the add, and answer nothing from then on.
    std::set<std::size_t> asked;
    world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      if (request.server >= silent) return test::Mishap::unreachable;
      const bool first = request.op == Op::add && asked.insert(*request.server).second;
      return first ? test::Mishap::lost_reply : test::Mishap::lost_request;
    });
    try {
      world.acquire();
      FAIL("nobody has answered");
    } catch (const Failure& failure) {
      const bool taken = silent >= 2;
      CHECK(failure.code() == (taken ? ErrorCode::unknown_outcome : ErrorCode::unavailable));
      CHECK((std::string(failure.what()).find("--token " + world.token_on(0)) != std::string::npos) == taken);
    }
    // The lock stays held until the ttl ends or the holder of the token releases it.
    world.faults.none();
    CHECK(world.acquire().lease.has_value() == (silent < 2));
  }
}

TEST_CASE("lock copies: a server that restarts between its uptime and its sentinel does not vote") {
  VotingWorld world;
  test::Rival rival(world.faults);
  Context context{rival, world.clock, world.random, {}, 3};
  rival.before(2, [&] {
    world.memory.restart(0);
    world.memory.restart(1);
  });
  CHECK_THROWS_AS(Lock(context, "l").acquire({.ttl = 60s, .holder = {}}), NotApplied);
  CHECK_THROWS_AS(world.acquire(), NotApplied);
}

TEST_CASE("lock copies: a server that restarts between its vote and another add does not count") {
  for (const std::size_t restarts : {1U, 2U}) {
    VotingWorld world;
    REQUIRE(world.acquire(5min).lease);
    // The item is missing as if the holder had not reached that server.
    world.memory.server(2).evict("lock:l");
    test::Rival rival(world.faults);
    Context context{rival, world.clock, world.random, {}, 3};
    rival.before(1, [&] {
      for (std::size_t server = 0; server < restarts; ++server) world.memory.restart(server);
    });
    std::optional<Lease> second;
    try {
      second = Lock(context, "l").acquire({.ttl = 5min, .holder = {}}).lease;
    } catch (const NotApplied&) {
    }
    CHECK_FALSE(second);
  }
}

TEST_CASE("lock copies: a renewal takes lost copies again, and is lost with the majority") {
  VotingWorld world;
  Lock lock = world.lock();
  auto mine = world.acquire();
  REQUIRE(mine.lease);
  world.memory.restart(0);
  CHECK(lock.renew(*mine.lease, 60s) == Lock::Renewal::renewed);
  CHECK(world.token_on(0) == mine.lease->token);
  world.memory.restart(1);
  CHECK(lock.renew(*mine.lease, 60s) == Lock::Renewal::renewed);
  CHECK(world.token_on(1) == mine.lease->token);
  world.memory.restart(0);
  world.memory.restart(2);
  CHECK(lock.renew(*mine.lease, 60s) == Lock::Renewal::not_held);
}

TEST_CASE("lock copies: a renewal that a majority does not answer leaves the lease as it was") {
  VotingWorld world;
  Lock lock = world.lock();
  auto mine = world.acquire();
  world.memory.stop(0);
  world.memory.stop(1);
  const SteadyTime before = mine.lease->deadline;
  CHECK_THROWS_AS(lock.renew(*mine.lease, 60s), Failure);
  CHECK(mine.lease->deadline == before);
}

TEST_CASE("lock copies: fences strictly grow, whichever servers lose theirs or are not reached") {
  VotingWorld world;
  std::uint64_t last = 0;
  for (int round = 0; round < 60; ++round) {
    const std::size_t away = world.random.below(3);
    world.reach({(away + 1) % 3, (away + 2) % 3});
    const auto answer = world.acquire();
    REQUIRE(answer.lease);
    CHECK(*answer.lease->fence > last);
    last = *answer.lease->fence;
    world.faults.none();
    world.lock().release(answer.lease->token);
    world.clock.advance(1s);
    if (round % 10 == 0) {
      world.memory.restart(world.random.below(3));
      world.clock.advance(11min);
    }
  }
}

TEST_CASE(
    "lock copies: a fence that a slow clock began again on a young server does not come after a higher one") {
  VotingWorld world;
  world.acquire(1s);
  for (std::size_t server = 0; server < 3; ++server) world.memory.server(server).evict("lock:l:fence");
  world.clock.advance(5s);
  world.reach({0, 1});
  const auto high = world.acquire(1s);
  REQUIRE(high.lease);
  world.clock.advance(5s);
  world.memory.restart(0);
  world.clock.set_skew(-1min);
  for (const std::size_t server : std::array<std::size_t, 2>{0, 2}) {
    world.reach({server});
    CHECK_THROWS_AS(world.acquire(1s), NotApplied);
  }
  world.clock.advance(11min);
  world.reach({0, 2});
  const auto next = world.acquire(1s);
  REQUIRE(next.lease);
  CHECK(*next.lease->fence > *high.lease->fence);
}

TEST_CASE("lock copies: no ttl above the longest") {
  VotingWorld world;
  CHECK_THROWS_AS(world.acquire(11min), InvalidInput);
}

TEST_CASE(
    "lock copies: a lock in another number of copies is refused and named, whoever came first, and stays") {
  for (const std::size_t held : {1U, 2U, 3U}) {
    for (const std::size_t asked : {1U, 2U, 3U}) {
      if (held == asked) continue;
      CAPTURE(held);
      CAPTURE(asked);
      VotingWorld world;
      Context first = world.context;
      first.copies = held;
      Lock holder(first, "l");
      const auto mine = holder.acquire({.ttl = 60s, .holder = {}});
      REQUIRE(mine.lease);
      Context second = world.context;
      second.copies = asked;
      Lock other(second, "l");
      const std::string named = "the lock has " + std::to_string(held) + (held == 1 ? " copy;" : " copies;");
      const auto refused = [&](const auto& act) {
        const auto failure = attempt(act).failure();
        return failure && failure->code() == ErrorCode::bad_data &&
               std::string(failure->what()).find(named) != std::string::npos;
      };
      CHECK(refused([&] { other.acquire({.ttl = 60s, .holder = {}}); }));
      CHECK(refused([&] { other.renew(mine.lease->token, 60s); }));
      const std::vector<std::string> names{"l"};
      CHECK(refused([&] { raise(*Lock::show(second, names).front().failure); }));
      for (std::size_t server = 0; server < 3; ++server)
        CHECK((world.token_on(server).empty() || world.token_on(server) == mine.lease->token));
      if (held > 1) {
        CHECK(refused([&] { other.release(mine.lease->token); }));
        CHECK(refused([&] { other.force_release(); }));
      } else {
        CHECK(other.release(mine.lease->token).result == Lock::Freed::Result::released);
      }
      Lease lease = *mine.lease;
      CHECK(holder.renew(lease, 60s) == (held > 1 ? Lock::Renewal::renewed : Lock::Renewal::not_held));
    }
  }
}

TEST_CASE(
    "lock copies: a holder before 0.3, which does not say how many copies there are, is busy, not refused") {
  VotingWorld world;
  for (const std::size_t server : copy_servers(world.context, "lock:l"))
    world.context.cluster.execute(
        Request::set("lock:l", R"(babe {"host":"h","ttl_s":60})", Exptime::never()).on(server));
  CHECK_FALSE(world.acquire().lease);
  Lock lock = world.lock();
  CHECK(lock.renew("babe", 60s).renewal == Lock::Renewal::renewed);
  CHECK(lock.release("babe").result == Lock::Freed::Result::released);
}

}  // namespace mcds::lock_copies_test
