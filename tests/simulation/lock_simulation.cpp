// Many clients of one lock, under every fault: never two holders, and fences strictly grow.
#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "common/structures/lock/lock.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::lock_simulation {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration max_ttl = milliseconds(3500);

struct Tenure {
  Duration from, until;  // true time
  Duration asked;        // when acquire began
  std::uint64_t fence;
};

struct History {
  std::vector<Tenure> tenures;
  std::string violation;
  bool exclusive = true;  // cannot be expected where servers lose data

  std::size_t begin(Tenure tenure) {
    for (const Tenure& other : tenures) {
      if (exclusive && other.until > tenure.from) violation = "two holders";
      if ((exclusive || other.until + std::chrono::seconds(1) < tenure.asked) && other.fence >= tenure.fence)
        violation = "the fence did not grow";
    }
    tenures.push_back(tenure);
    return tenures.size() - 1;
  }
  void prolong(std::size_t index, Duration until) {
    if (exclusive && index + 1 != tenures.size() && tenures[index + 1].from < until)
      violation = "renewed into another's tenure";
    tenures[index].until = until;
  }
};

Duration some(Random& random, Duration longest) {
  return Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(longest.count()))));
}

// Holds the lock for a while, renews it now and then, and finally releases it or not.
void hold(Context& context, SimulatedClient& client, Lock& lock, Lease lease, History& history, Duration ttl,
          Duration asked) {
  const auto now = [&] { return client.simulation().time().elapsed(); };
  const auto left = [&] { return lease.deadline - client.steady(); };
  const std::size_t tenure = history.begin({now(), now() + left(), asked, *lease.fence});
  while (context.random.below(3) != 0) {
    context.clock.sleep_for(some(context.random, ttl));
    if (left() <= Duration::zero()) return;
    if (lock.renew(lease, ttl) != Lock::Renewal::renewed || left() <= Duration::zero()) return;
    history.prolong(tenure, now() + left());
  }
  if (left() <= Duration::zero()) return;
  history.tenures[tenure].until = now();
  if (context.random.below(4) != 0) lock.release(lease);
}

std::optional<std::string> schedule(std::uint64_t seed, const Faults& faults, bool exclusive,
                                    test::Spoiled::Spoil spoil = nullptr, std::size_t copies = 1) {
  Simulation simulation(seed, {.servers = copies, .faults = faults});
  History history;
  history.exclusive = exclusive;
  for (int i = 0; i < 4; ++i) {
    simulation.client([&](Context& honest, SimulatedClient& client) {
      test::Spoiled spoiled(honest.cluster, spoil);
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix, copies};
      const Duration ttl = milliseconds(500 + 1500 * context.random.below(3));
      Lock lock(context, "l", max_ttl);
      // The servers are old enough to vote after this.
      if (copies > 1) context.clock.sleep_for(seconds(12));
      for (int round = 0; round < 3; ++round) {
        Lock::AcquireOptions acquire_options{
            .ttl = ttl, .holder = {}, .fence = true, .wait = some(context.random, seconds(6))};
        const Duration asked = client.simulation().time().elapsed();
        try {
          if (auto answer = lock.acquire(acquire_options); answer.lease)
            hold(context, client, lock, *answer.lease, history, ttl, asked);
        } catch (const Failure&) {
          context.clock.sleep_for(some(context.random, seconds(2)));
        }
      }
    });
  }
  simulation.run();
  if (!history.violation.empty()) return history.violation;
  return std::nullopt;
}

}  // namespace

TEST_CASE("lock: never two holders, fences strictly grow, under every fault but loss of data") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, Faults{}, true); });
}

TEST_CASE("lock: fences strictly grow over restarts, between tenures a second apart") {
  Faults faults = Faults::none();
  faults.kills = faults.restarts = true;
  check_schedules([&](std::uint64_t seed) { return schedule(seed, faults, false); }, 0.3);
}

// Every restart loses locks, fences and sentinels, so the remaining servers must suffice.
TEST_CASE("lock copies: never two holders, fences strictly grow, under every fault and restarts") {
  Faults faults;
  faults.restarts = true;
  check_schedules([&](std::uint64_t seed) { return schedule(seed, faults, true, nullptr, 3); }, 0.3);
}

// Breaks the rule about uptimes.
void believe_every_server(Request& request) {
  if (request.op == Op::add && request.key.starts_with("lockserver:")) request.value[1] = '1';
}

TEST_CASE("lock copies: the simulation finds two holders where servers vote that may have forgotten") {
  Faults faults;
  faults.restarts = true;
  CHECK(finds_violation(
      [&](std::uint64_t seed) { return schedule(seed, faults, true, believe_every_server, 3); }));
}

TEST_CASE("lock: the simulation finds two holders where servers lose data") {
  CHECK(finds_violation([](std::uint64_t seed) { return schedule(seed, Faults::all(), true); }));
}

TEST_CASE("lock: the simulation finds two holders without the two seconds, or without comparing") {
  for (const auto spoil :
       {test::expire_with_the_ttl, test::release_without_comparing, test::renew_without_comparing}) {
    CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, Faults{}, true, spoil); }));
  }
}

}  // namespace mcds::lock_simulation
