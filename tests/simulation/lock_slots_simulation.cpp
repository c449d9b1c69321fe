// A lock with slots, under every fault: never more holders than slots, and fences grow in each slot.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/base/errors.hpp"
#include "common/structures/lock/slots.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::lock_slots_simulation {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Tenure {
  std::size_t slot;
  Duration from, until;  // true time
  std::uint64_t fence;
};

struct History {
  std::vector<Tenure> tenures;

  std::optional<std::string> violation(std::size_t most) const {
    for (const Tenure& one : tenures) {
      std::size_t holders = 0;
      for (const Tenure& other : tenures) {
        if (other.from <= one.from && one.from < other.until) ++holders;
        if (other.slot == one.slot && other.from < one.from && other.fence >= one.fence)
          return "the fence of a slot did not grow";
      }
      if (holders > most) return "more holders than slots";
    }
    return std::nullopt;
  }
};

Duration some(Random& random, Duration longest) {
  return Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(longest.count()))));
}

void hold(Context& context, SimulatedClient& client, Lock& lock, std::size_t slot, Lease lease,
          History& history, Duration ttl) {
  const auto now = [&] { return client.simulation().time().elapsed(); };
  const auto left = [&] { return lease.deadline - client.steady(); };
  if (left() <= Duration::zero()) return;
  const std::size_t tenure = history.tenures.size();
  history.tenures.push_back({slot, now(), now() + left(), *lease.fence});
  while (context.random.below(3) != 0) {
    context.clock.sleep_for(some(context.random, ttl));
    if (left() <= Duration::zero()) return;
    if (lock.renew(lease, ttl) != Lock::Renewal::renewed || left() <= Duration::zero()) return;
    history.tenures[tenure].until = now() + left();
  }
  if (left() <= Duration::zero()) return;
  history.tenures[tenure].until = now();
  if (context.random.below(4) != 0) lock.release(lease);
}

struct Plan {
  Faults faults = {};
  test::Spoiled::Spoil spoil = nullptr;
  std::size_t copies = 1;
  bool agreed = true;  // all clients use the right number of slots, 2
};

std::optional<std::string> schedule(std::uint64_t seed, const Plan& plan) {
  Simulation simulation(seed, {.servers = plan.copies > 1 ? plan.copies : 2, .faults = plan.faults});
  History history;
  for (int i = 0; i < 5; ++i) {
    simulation.client([&](Context& honest, SimulatedClient& client) {
      test::Spoiled spoiled(honest.cluster, plan.spoil);
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix, plan.copies};
      const Duration ttl = milliseconds(500 + 1500 * context.random.below(3));
      // The servers are old enough to vote after this.
      if (plan.copies > 1) context.clock.sleep_for(seconds(12));
      for (int round = 0; round < 3; ++round) {
        LockSlots slots(context, "l", plan.agreed ? 2 : 1 + context.random.below(2), milliseconds(3500));
        try {
          auto [answer, slot] = slots.acquire(
              {.ttl = ttl, .holder = {}, .fence = true, .wait = some(context.random, seconds(6))});
          if (answer.lease) hold(context, client, slots.at(slot), slot, *answer.lease, history, ttl);
        } catch (const Failure&) {
          context.clock.sleep_for(some(context.random, seconds(2)));
        }
      }
    });
  }
  simulation.run();
  return history.violation(2);
}

}  // namespace

TEST_CASE("lock slots: never more holders than slots, under every fault but loss of data") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {}); }, 0.5);
}

TEST_CASE("lock slots: callers that disagree on the number never exceed the largest") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.agreed = false}); }, 0.1);
}

TEST_CASE("lock slots copies: never more holders than slots, under every fault and restarts") {
  Plan plan{.copies = 3};
  plan.faults.restarts = true;
  check_schedules([&](std::uint64_t seed) { return schedule(seed, plan); }, 0.1);
}

TEST_CASE("lock slots: the simulation finds a holder too many where servers lose data") {
  CHECK(finds_violation([](std::uint64_t seed) { return schedule(seed, {.faults = Faults::all()}); }));
}

TEST_CASE(
    "lock slots: the simulation finds a holder too many without the two seconds, or without comparing") {
  for (const auto spoil :
       {test::expire_with_the_ttl, test::release_without_comparing, test::renew_without_comparing}) {
    CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, {.spoil = spoil}); }));
  }
}

}  // namespace mcds::lock_slots_simulation
