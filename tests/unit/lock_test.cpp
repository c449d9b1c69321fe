#include "common/structures/lock/lock.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/lock/value.hpp"
#include "tests/support/world.hpp"

namespace mcds::lock_test {

namespace {

constexpr auto lost_reply = test::Mishap::lost_reply;
constexpr auto lost_request = test::Mishap::lost_request;

using std::chrono::milliseconds;
using std::chrono::seconds;

struct World : test::World {
  World() : test::World(1) {}

  Lock lock{context, "nightly"};

  MemoryServer& server() { return memory.server(0); }
  Lock::AcquireOptions acquire_options(Duration ttl, bool fence = true) {
    return {.ttl = ttl,
            .holder = {.host = "web3", .user = "deploy", .note = "backup", .pid = 4711},
            .fence = fence};
  }
  Lease take(Duration ttl = seconds(30)) {
    auto answer = lock.acquire(acquire_options(ttl));
    REQUIRE(answer.lease);
    return *answer.lease;
  }
  std::size_t trips_of(const std::function<void()>& act) { return trips.trips_of(act); }
  // Sets an action before a trip, counted from the next one.
  void before(std::size_t trip, std::function<void()> act) {
    rival.before(rival.trips() + trip, std::move(act));
  }
  // Loses the next trips, one each.
  void lose(const std::vector<test::Mishap>& losses) {
    for (std::size_t i = 0; i < losses.size(); ++i)
      before(i, [this, loss = losses[i]] { faults.choose([loss](const Request&) { return loss; }); });
    before(losses.size(), [this] { faults.none(); });
  }
};

}  // namespace

TEST_CASE("lock: acquire is one trip, with fence once that has begun; a rival learns who holds it") {
  World world;
  Lease lease;
  CHECK(world.trips_of([&] { lease = world.take(); }) == 2);
  world.lock.release(lease);
  CHECK(world.trips_of([&] { lease = world.take(); }) == 1);
  CHECK(lease.token.size() == 16);
  CHECK(lease.deadline == world.clock.steady() + seconds(30));
  const auto item = world.server().peek("lock:nightly");
  REQUIRE(item);
  CHECK(
      item->value ==
      lease.token +
          R"( {"host":"web3","pid":4711,"user":"deploy","note":"backup","acquired_at":"2026-11-21T04:08:53.945Z","ttl_s":30})");
  CHECK(world.server().peek("lock:nightly:fence")->value == std::to_string(*lease.fence));
  Lock::Answer answer;
  CHECK(world.trips_of([&] { answer = world.lock.acquire(world.acquire_options(seconds(30))); }) == 2);
  CHECK_FALSE(answer.lease);
  CHECK(answer.holder == item->value.substr(17));
}

TEST_CASE("lock: tokens begin with a letter, so that incr refuses the value") {
  World world;
  for (int i = 0; i < 50; ++i) {
    const Lease lease = world.take();
    CHECK(lease.token.front() >= 'a');
    CHECK(world.memory.execute(Request::incr("lock:nightly", 1)).is(ReplyFailure::Kind::not_a_number));
    CHECK(world.lock.release(lease).result == Lock::Freed::Result::released);
  }
}

TEST_CASE("lock: the holder's ttl ends before the key does, whatever the server's tick") {
  for (int phase = 0; phase < 10; ++phase) {
    World world;
    world.clock.advance(milliseconds(100 * phase));
    const Lease lease = world.take(seconds(1));
    world.clock.advance(lease.deadline - world.clock.steady());
    CHECK(world.server().peek("lock:nightly"));
    world.clock.advance(seconds(2));
    CHECK_FALSE(world.server().peek("lock:nightly"));
  }
}

TEST_CASE("lock: a ttl above 30 days neither expires at once nor never") {
  World world;
  world.take(std::chrono::hours(24 * 40));
  world.clock.advance(std::chrono::hours(24 * 40));
  CHECK(world.server().peek("lock:nightly"));
  world.clock.advance(seconds(4));
  CHECK_FALSE(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: renewal moves deadline and expiry, in one trip while the cas unique is known") {
  World world;
  Lease lease = world.take(seconds(10));
  world.clock.advance(seconds(9));
  CHECK(world.trips_of([&] { CHECK(world.lock.renew(lease, seconds(10)) == Lock::Renewal::renewed); }) == 1);
  CHECK(lease.deadline == world.clock.steady() + seconds(10));
  world.clock.advance(seconds(9));
  CHECK(world.server().peek("lock:nightly"));
  lease.copies.front().cas.reset();
  CHECK(world.trips_of([&] { CHECK(world.lock.renew(lease, seconds(10)) == Lock::Renewal::renewed); }) == 2);
}

TEST_CASE("lock: a spurious exists is no loss") {
  World world;
  Lease lease = world.take();
  lease.copies.front().cas->value += 77;
  CHECK(world.lock.renew(lease, seconds(30)) == Lock::Renewal::renewed);
  lease.copies.front().cas->value += 77;
  CHECK(world.lock.release(lease).result == Lock::Freed::Result::released);
}

TEST_CASE("lock: a renewal after expiry never prolongs or takes another's lock") {
  World world;
  Lease mine = world.take(seconds(1));
  world.clock.advance(seconds(5));
  CHECK(world.lock.renew(mine, seconds(1)) == Lock::Renewal::not_held);
  const Lease other = world.take(seconds(60));
  const std::string before = world.server().peek("lock:nightly")->value;
  CHECK(world.lock.renew(mine, seconds(1)) == Lock::Renewal::not_owner);
  CHECK(world.lock.release(mine).result == Lock::Freed::Result::not_owner);
  CHECK(world.server().peek("lock:nightly")->value == before);
}

TEST_CASE("lock: a rival between the read and the compare-and-delete keeps his lock") {
  World world;
  Lease mine = world.take(seconds(1));
  mine.copies.front().cas.reset();
  world.before(1, [&] {
    world.clock.advance(seconds(5));
    Lock rival(Context{world.memory, world.clock, world.random, ""}, "nightly");
    REQUIRE(rival.acquire(world.acquire_options(seconds(60))).lease);
  });
  const auto freed = world.lock.release(mine);
  CHECK(freed.result == Lock::Freed::Result::not_owner);
  CHECK(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: an owner whose add lost its reply is not locked out of his own lock") {
  World world;
  world.lose({lost_reply});
  const SteadyTime before = world.clock.steady();
  const Lease lease = world.take();
  CHECK(lease.deadline == before + seconds(30));
  CHECK(lease.fence);
  CHECK(world.lock.release(lease).result == Lock::Freed::Result::released);
}

TEST_CASE("lock: an add that never arrived is repeated, with another token") {
  World world;
  world.lose({lost_request});
  const Lease lease = world.take();
  CHECK(LockValue::parse(world.server().peek("lock:nightly")->value).token == lease.token);
}

TEST_CASE("lock: no lease has a token whose add may still be executed, after its release") {
  World world;
  std::vector<Request> late;
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.op != Op::add || request.key != "lock:nightly" || late.size() == 2) return std::nullopt;
    late.push_back(request);
    return lost_request;
  });
  world.before(3, [&] { world.server().execute(late[0]); });
  const Lease lease = world.take();
  CHECK(world.lock.release(lease).result == Lock::Freed::Result::released);
  world.server().execute(late[1]);
  CHECK(world.lock.renew(lease.token, seconds(30)).renewal == Lock::Renewal::not_owner);
}

TEST_CASE("lock: who waits knows its own add, although it is executed behind a hundred later ones") {
  World world;
  std::vector<Request> adds;
  std::optional<SteadyTime> executed;
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (executed) return std::nullopt;
    if (request.op == Op::add) adds.push_back(request);
    if (adds.size() <= 100) return lost_request;
    executed = world.clock.steady();
    world.server().execute(adds.front());
    return std::nullopt;
  });
  auto acquire_options = world.acquire_options(seconds(60));
  acquire_options.wait = seconds(600);
  const auto answer = world.lock.acquire(acquire_options);
  REQUIRE(answer.lease);
  CHECK(world.clock.steady() - executed.value() < seconds(5));
  CHECK(world.lock.release(*answer.lease).result == Lock::Freed::Result::released);
  CHECK_FALSE(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: what stays unknown is said") {
  World world;
  world.lose({lost_reply, lost_reply});
  CHECK_THROWS_AS(world.lock.acquire(world.acquire_options(seconds(30))), UnknownOutcome);
}

TEST_CASE("lock: a single copy with an unknown outcome is not tried again") {
  World world;
  world.lose({lost_reply, lost_reply});
  CHECK(world.trips_of([&] {
    CHECK_THROWS_AS(world.lock.acquire(world.acquire_options(seconds(30))), UnknownOutcome);
  }) == 2);
  world.lose({lost_request});
  CHECK(world.trips_of([&] { CHECK_FALSE(world.lock.acquire(world.acquire_options(seconds(30))).lease); }) ==
        2);
}

TEST_CASE("lock: a holder who leaves between the add and the look is followed at once") {
  World world;
  const Lease other = world.take();
  const SteadyTime start = world.clock.steady();
  world.before(1, [&] { Lock(world.others, "nightly").release(other); });
  CHECK(world.trips_of([&] { CHECK(world.lock.acquire(world.acquire_options(seconds(30))).lease); }) == 3);
  CHECK(world.clock.steady() == start);
}

TEST_CASE("lock: a found token of an earlier attempt counts from its renewal, not from this attempt's add") {
  World world;
  auto acquire_options = world.acquire_options(seconds(5));
  acquire_options.wait = seconds(20);
  world.lose({lost_reply, lost_reply});
  world.before(2, [&] { world.clock.advance(seconds(4)); });
  const auto answer = world.lock.acquire(acquire_options);
  REQUIRE(answer.lease);
  world.clock.advance(answer.lease->deadline - world.clock.steady());
  CHECK(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: lost replies of renewals and releases are settled by reading") {
  World world;
  Lease lease = world.take();
  world.lose({lost_reply});
  CHECK(world.lock.renew(lease, seconds(30)) == Lock::Renewal::renewed);
  world.lose({lost_request});
  CHECK(world.lock.renew(lease, seconds(30)) == Lock::Renewal::renewed);
  world.lose({lost_reply});
  CHECK(world.lock.release(lease).result == Lock::Freed::Result::released);
  CHECK_FALSE(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: a lease that ended before its reply came is no lease") {
  World world;
  world.before(0, [&] { world.clock.advance(seconds(40)); });
  CHECK_THROWS_AS(world.lock.acquire(world.acquire_options(seconds(30))), NotApplied);
  CHECK_FALSE(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: fences grow over release, expiry and the loss of the counter") {
  World world;
  std::uint64_t last = 0;
  for (int i = 0; i < 6; ++i) {
    const Lease lease = world.take();
    CHECK(*lease.fence > last);
    last = *lease.fence;
    world.clock.advance(seconds(1));
    if (i == 2)
      world.memory.restart(0);
    else
      world.lock.release(lease);
  }
}

TEST_CASE("lock: who asked before a fence began that is lost by now begins none below it") {
  World world;
  test::Rival rival(world.memory);
  const Context late{rival, world.clock, world.random, ""};
  std::uint64_t lost = 0;
  rival.before(0, [&] {
    world.clock.advance(milliseconds(1));
    lost = *world.take().fence;
    world.clock.advance(milliseconds(1));
    world.server().flush();
  });
  const Lock::Answer answer = Lock(late, "nightly").acquire(world.acquire_options(seconds(30)));
  REQUIRE(answer.lease);
  CHECK(*answer.lease->fence > lost);
}

TEST_CASE("lock: a fence that is not a number frees the lock again and says so") {
  World world;
  world.memory.execute(Request::set("lock:nightly:fence", "text", Exptime::never()));
  CHECK_THROWS_AS(world.lock.acquire(world.acquire_options(seconds(30))), CorruptData);
  auto snapshot = world.acquire_options(seconds(30));
  snapshot.wait = Duration::max();
  CHECK_THROWS_AS(world.lock.acquire(snapshot), CorruptData);
  CHECK_FALSE(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: a refused add does not hide the holder, and without one it is refused") {
  World world;
  const Lease lease = world.take();
  const auto refuse_adds = [](const Request& request) {
    return request.op == Op::add ? std::optional(test::Mishap::refused) : std::nullopt;
  };
  world.faults.choose(refuse_adds);
  CHECK(world.trips_of([&] {
    const auto answer = world.lock.acquire(world.acquire_options(seconds(30)));
    CHECK_FALSE(answer.lease);
    CHECK(answer.holder == LockValue::parse(lease.value).holder);
  }) == 2);
  world.lock.release(lease);
  const auto refused = attempt([&] { world.lock.acquire(world.acquire_options(seconds(30))); });
  CHECK(refused.failure()->code() == ErrorCode::refused);
}

TEST_CASE("lock: waiting ends when the lock is free, or when the time is over") {
  World world;
  world.take(seconds(5));
  auto acquire_options = world.acquire_options(seconds(5));
  acquire_options.wait = seconds(2);
  const SteadyTime start = world.clock.steady();
  CHECK_FALSE(world.lock.acquire(acquire_options).lease);
  CHECK(world.clock.steady() - start == seconds(2));
  acquire_options.wait = Duration::max();
  CHECK(world.lock.acquire(acquire_options).lease);
}

TEST_CASE("lock: waiting outlasts a server that is down") {
  World world;
  world.memory.kill(0);
  CHECK_THROWS_AS(world.lock.acquire(world.acquire_options(seconds(5))), NotApplied);
  auto acquire_options = world.acquire_options(seconds(5));
  acquire_options.wait = seconds(60);
  world.before(3, [&] { world.memory.restart(0); });
  CHECK(world.lock.acquire(acquire_options).lease);
}

TEST_CASE("lock: left to expire, it stays at least as long and says that it is finished") {
  World world;
  const Lease lease = world.take(seconds(5));
  CHECK(world.lock.leave(lease, seconds(100)) == Lock::Renewal::renewed);
  world.clock.advance(seconds(100));
  const auto item = world.server().peek("lock:nightly");
  REQUIRE(item);
  const LockValue value = LockValue::parse(item->value);
  CHECK(value.token == lease.token);
  CHECK(value.holder.ends_with(R"(,"finished_at":"2026-11-21T04:08:53.945Z"})"));
  world.clock.advance(seconds(3));
  CHECK_FALSE(world.server().peek("lock:nightly"));
}

TEST_CASE("lock: renew, release by token; force; foreign values hold the lock") {
  World world;
  const Lease lease = world.take();
  CHECK(world.lock.renew("bbbb", seconds(9)).renewal == Lock::Renewal::not_owner);
  CHECK(world.lock.renew(lease.token, seconds(9)).renewal == Lock::Renewal::renewed);
  CHECK(world.lock.release("bbbb").result == Lock::Freed::Result::not_owner);
  CHECK(world.lock.release(lease.token).result == Lock::Freed::Result::released);
  CHECK(world.lock.release(lease.token).result == Lock::Freed::Result::not_held);
  for (const std::string foreign : {"", " ", "5", "abc", "abc {", "abc [1]", "\xff\xfe 1"}) {
    world.memory.execute(Request::set("lock:nightly", foreign, Exptime::never()));
    const auto answer = world.lock.acquire(world.acquire_options(seconds(5)));
    CHECK_FALSE(answer.lease);
    CHECK(answer.holder.empty());
    CHECK(world.lock.force_release().result == Lock::Freed::Result::released);
  }
  CHECK(world.lock.force_release().result == Lock::Freed::Result::not_held);
}

TEST_CASE("lock: a renewal by token without a ttl keeps the one it was last given") {
  World world;
  const Lease lease = world.take(seconds(600));
  const auto renewed = [&](std::optional<Duration> ttl) {
    const auto answer = world.lock.renew(lease.token, ttl);
    CHECK(answer.renewal == Lock::Renewal::renewed);
    CHECK(answer.lease.deadline == world.clock.steady() + answer.ttl);
    return answer.ttl;
  };
  CHECK(renewed(std::nullopt) == seconds(600));
  CHECK(renewed(std::chrono::milliseconds(90500)) == std::chrono::milliseconds(90500));
  CHECK(renewed(std::nullopt) == std::chrono::milliseconds(90500));
  CHECK(world.trips_of([&] { renewed(std::nullopt); }) == 2);
  // A holder of another program, or of an earlier version, has no ttl.
  for (const std::string holder : {"", " x", " {}", R"( {"ttl_s":"long"})", R"( {"ttl_s":1e99})"}) {
    world.memory.execute(Request::set("lock:nightly", lease.token + holder, Exptime::never()));
    CHECK(renewed(std::nullopt) == usual_lock_ttl);
  }
}

TEST_CASE("lock: show answers many names in one trip") {
  World world;
  world.take();
  const std::vector<std::string> names{"nightly", "other"};
  std::vector<Lock::Shown> shown;
  CHECK(world.trips_of([&] { shown = Lock::show(world.context, names); }) == 1);
  CHECK(shown[0].held);
  CHECK(shown[0].holder.starts_with(R"({"host":"web3")"));
  CHECK_FALSE(shown[1].held);
}

TEST_CASE("lock: no lock's key is another's fence") {
  World world;
  CHECK_THROWS_AS(Lock(world.context, "a:fence"), InvalidInput);
  CHECK_THROWS_AS(Lock(world.context, ":fence"), InvalidInput);
  CHECK_NOTHROW(Lock(world.context, "a:fence:b"));
  CHECK_NOTHROW(Lock(world.context, "fence"));
  CHECK_THROWS_AS(Lock(world.context, ""), InvalidInput);
  CHECK_THROWS_AS(Lock(world.context, "a b"), InvalidInput);
}

TEST_CASE("lock: a ttl of zero and an endless note are refused before anything is sent") {
  World world;
  CHECK_THROWS_AS(world.lock.acquire(world.acquire_options(seconds(0))), InvalidInput);
  auto acquire_options = world.acquire_options(seconds(5));
  acquire_options.holder.note = std::string(2000, 'x');
  CHECK_THROWS_AS(world.lock.acquire(acquire_options), InvalidInput);
  CHECK(world.trips.trips() == 0);
}

}  // namespace mcds::lock_test
