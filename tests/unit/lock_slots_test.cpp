// Locks that several clients may hold.
#include <doctest/doctest.h>

#include <set>

#include "common/base/errors.hpp"
#include "common/structures/lock/slots.hpp"
#include "common/structures/lock/value.hpp"
#include "tests/support/world.hpp"

namespace mcds::lock_slots_test {

namespace {

using namespace std::chrono_literals;
using test::Mishap;

Lock::AcquireOptions acquire_options(Duration wait = {}) {
  return {.ttl = 60s, .holder = {.host = "web3", .user = "u", .note = {}}, .fence = true, .wait = wait};
}

LockSlots::Answer take(const Context& context, std::size_t slots, Duration wait = {}) {
  return LockSlots(context, "l", slots).acquire(acquire_options(wait));
}

bool refused_for(const Context& context, std::size_t slots) {
  try {
    take(context, slots, 1h);
  } catch (const Failure& failure) {
    return failure.code() == ErrorCode::bad_data;
  }
  return false;
}

}  // namespace

TEST_CASE("lock slots: as many holders as slots; a token says which slot is given back") {
  test::World world;
  std::set<std::size_t> taken;
  std::vector<std::string> tokens;
  for (int i = 0; i < 3; ++i) {
    const auto [answer, slot] = take(world.context, 3);
    REQUIRE(answer.lease);
    CHECK(slot_of(answer.lease->token) == slot);
    taken.insert(slot);
    tokens.push_back(answer.lease->token);
  }
  CHECK(taken == std::set<std::size_t>{0, 1, 2});
  const auto full = take(world.context, 3);
  CHECK_FALSE(full.lock.lease);
  CHECK(slots_of(full.lock.holder) == 3);
  for (const std::string& token : tokens) {
    Lock lock = Lock::of_slot(world.context, "l", slot_of(token), default_max_ttl);
    CHECK(lock.renew(token, 30s).renewal == Lock::Renewal::renewed);
    CHECK(lock.release(token).result == Lock::Freed::Result::released);
    const auto again = take(world.context, 3);
    REQUIRE(again.lock.lease);
    CHECK(again.slot == slot_of(token));
  }
}

TEST_CASE("lock slots: one slot costs what a lock does, several one look more") {
  test::World world;
  take(world.context, 1);  // creates its fence
  Lock(world.context, "l").force_release();
  CHECK(world.trips.trips_of([&] { take(world.context, 1); }) == 1);
  CHECK(world.stored("lock:l").find("slots") == std::string::npos);
  Lock(world.context, "l").force_release();
  CHECK(world.trips.trips_of([&] { take(world.context, 3); }) == 2);
}

TEST_CASE("lock slots: another number of slots is refused at once, not waited for") {
  test::World world;
  take(world.context, 1);
  CHECK(refused_for(world.context, 2));
  Lock(world.context, "l").force_release();
  take(world.context, 2);
  take(world.context, 2);
  CHECK(refused_for(world.context, 1));
  CHECK(refused_for(world.context, 3));
  // A value that another program stored holds a slot too.
  Lock::of_slot(world.context, "l", 1, default_max_ttl).force_release();
  world.memory.execute(Request::set("lock:l:slot:1", "mine", Exptime::never()));
  CHECK_FALSE(take(world.context, 2).lock.lease);
}

TEST_CASE(
    "lock slots: a slot lost to a rival, or on a server that does not answer, is followed by the next") {
  test::World world;
  world.rival.before(1, [&] { CHECK(take(world.others, 2).lock.lease); });
  CHECK(take(world.context, 2).lock.lease);
  CHECK_FALSE(take(world.others, 2).lock.lease);
  for (std::size_t slot = 0; slot < 2; ++slot)
    Lock::of_slot(world.others, "l", slot, default_max_ttl).force_release();
  world.faults.choose([](const Request& request) -> std::optional<Mishap> {
    return request.key.starts_with("lock:l:slot:1") ? std::optional(Mishap::unreachable) : std::nullopt;
  });
  CHECK(take(world.context, 2).slot == 0);
  // It is then unknown whether all slots are held.
  CHECK_THROWS_AS(take(world.context, 2), Failure);
}

TEST_CASE("lock slots: a slot that may have been taken is tried first, or given back when another was") {
  for (const Mishap mishap : {Mishap::lost_reply, Mishap::lost_request}) {
    test::World world;
    bool lost = true;
    world.faults.choose([&](const Request& request) -> std::optional<Mishap> {
      return lost && request.key.starts_with("lock:l") && request.op != Op::probe ? std::optional(mishap)
                                                                                  : std::nullopt;
    });
    CHECK_THROWS_AS(take(world.context, 3), UnknownOutcome);
    lost = false;
  }
  test::World world;
  int left = 3;  // the first slot's add and the read that checks it
  world.faults.choose([&](const Request& request) -> std::optional<Mishap> {
    return request.op == Op::probe || left-- <= 0 ? std::nullopt : std::optional(Mishap::lost_reply);
  });
  const auto [answer, slot] = take(world.context, 3, 10s);
  REQUIRE(answer.lease);
  std::size_t held = 0;
  for (const Lock::Shown& shown : LockSlots(world.others, "l", 3).show()) held += shown.held ? 1 : 0;
  CHECK(held == 1);
}

TEST_CASE("lock slots: with copies, on a majority each") {
  test::World world(3, 3);
  world.clock.advance(11min);
  CHECK(take(world.context, 2).lock.lease);
  world.faults.cut_off(1);
  CHECK(take(world.context, 2).lock.lease);
  CHECK_FALSE(take(world.context, 2).lock.lease);
}

TEST_CASE("lock slots: unusable numbers and names are refused") {
  test::World world;
  CHECK_THROWS_AS(LockSlots(world.context, "l", 0), InvalidInput);
  CHECK_THROWS_AS(LockSlots(world.context, "l", max_lock_slots + 1), InvalidInput);
  CHECK_THROWS_AS(LockSlots(world.context, "l:slot:1", 2), InvalidInput);
  CHECK_NOTHROW(LockSlots(world.context, "l:slot:", 2));
  CHECK(slot_of("b7c1e0f2a94d4f6e") == 0);
  CHECK(slot_of("b7c1e0f2a94d4f6e.12") == 12);
  CHECK(slot_of("b7c1e0f2a94d4f6e.9999") == 0);
}

}  // namespace mcds::lock_slots_test
