// Counters under every interleaving and fault: acknowledged increments <= value <= acknowledged + unknown,
// and the results of take plus the remaining value equal the sum of the increments.
#include <doctest/doctest.h>

#include <map>

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/record.hpp"
#include "tests/support/counters.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::counter_simulation {

namespace {

using namespace std::chrono_literals;

// The totals that one counter's history must match.
struct Ledger {
  std::uint64_t acknowledged = 0;
  std::uint64_t unknown = 0;
  std::uint64_t taken = 0;
  int unknown_takes = 0;

  std::optional<std::string> violation(std::uint64_t left) const {
    const std::uint64_t total = taken + left;
    if (total > acknowledged + unknown) {
      return std::to_string(total) + " counted, at most " + std::to_string(acknowledged + unknown) + " added";
    }
    if (total < acknowledged && unknown_takes == 0) {
      return std::to_string(total) + " counted, " + std::to_string(acknowledged) + " acknowledged";
    }
    return std::nullopt;
  }
};

// Adds 1 … 4 and records the outcome.
template <typename Increment>
void add(Ledger& ledger, Context& context, Increment increment) {
  const std::uint64_t delta = 1 + context.random.below(4);
  // The outcome is unknown until an answer arrives, and stays unknown if this client dies.
  ledger.unknown += delta;
  try {
    increment(delta);
    ledger.unknown -= delta;
    ledger.acknowledged += delta;
  } catch (const UnknownOutcome&) {
  } catch (const Failure&) {
    ledger.unknown -= delta;
  }
}

void take(Ledger& ledger, Counter& counter) {
  ++ledger.unknown_takes;
  try {
    ledger.taken += counter.take("n").value;
    --ledger.unknown_takes;
  } catch (const UnknownOutcome&) {
  } catch (const Failure&) {
    --ledger.unknown_takes;
  }
}

std::uint64_t value_left(Simulation& simulation) {
  const std::vector<std::string> names{"n"};
  const auto reading = Counter(simulation.observer()).get(names).front();
  REQUIRE(!reading.failure);
  return reading.value;
}

enum class Kind { plain, exact };

std::optional<std::string> increments(std::uint64_t seed, Kind kind, bool takes) {
  Simulation simulation(seed);
  Ledger ledger;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient&) {
      Counter counter(context);
      const IncrOptions options{.ttl = {}, .exact = kind == Kind::exact};
      for (int j = 0; j < 3; ++j) {
        if (takes && context.random.below(3) == 0) take(ledger, counter);
        add(ledger, context, [&](std::uint64_t delta) { counter.incr("n", delta, options); });
      }
    });
  }
  simulation.run();
  return ledger.violation(value_left(simulation));
}

// Checks a counter that may lose its data: its value never exceeds the sum of all increments.
std::optional<std::string> increments_with_loss(std::uint64_t seed, Kind kind) {
  Simulation simulation(seed, {.faults = Faults::all()});
  Ledger ledger;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient&) {
      Counter counter(context);
      for (int j = 0; j < 3; ++j) {
        add(ledger, context, [&](std::uint64_t delta) {
          counter.incr("n", delta, {.ttl = {}, .exact = kind == Kind::exact});
        });
      }
    });
  }
  simulation.run();
  const std::uint64_t left = value_left(simulation);
  if (left > ledger.acknowledged + ledger.unknown) return "counted more than was added";
  if (simulation.happened().losses == 0) return ledger.violation(left);
  return std::nullopt;
}

std::optional<std::string> limits(std::uint64_t seed) {
  Simulation simulation(seed, {.max_skew = std::chrono::milliseconds(0)});
  std::map<std::int64_t, std::uint64_t> allowed;
  constexpr std::uint64_t max = 5;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      for (int j = 0; j < 4; ++j) {
        const std::uint64_t cost = 1 + context.random.below(3);
        const auto window = client.wall().time_since_epoch() / 10s;
        try {
          if (test::limited(Counter(context), "n", max, 10s, cost).allowed) allowed[window] += cost;
        } catch (const Failure&) {
        }
        client.sleep_for(std::chrono::milliseconds(context.random.below(3000)));
      }
    });
  }
  simulation.run();
  for (const auto& [window, cost] : allowed) {
    if (cost > max) return std::to_string(cost) + " allowed in window " + std::to_string(window);
  }
  return std::nullopt;
}

// Mutations: the same history with a wrong increment.
using BrokenIncrement = void (*)(Context& context, std::uint64_t delta);

std::optional<std::string> broken(std::uint64_t seed, BrokenIncrement increment) {
  Simulation simulation(seed);
  Ledger ledger;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient&) {
      for (int j = 0; j < 3; ++j)
        add(ledger, context, [&](std::uint64_t delta) { increment(context, delta); });
    });
  }
  simulation.run();
  return ledger.violation(value_left(simulation));
}

constexpr const char* key = "counter:n";

void get_then_set_first(Context& context, std::uint64_t delta) {
  if (expect_read(context.cluster, context.cluster.execute(Request::get(key))).outcome == Outcome::miss) {
    expect(context.cluster, context.cluster.execute(Request::set(key, "0", Exptime::never())));
  }
  expect(context.cluster, context.cluster.execute(Request::incr(key, delta)));
}

void repeated_after_unknown(Context& context, std::uint64_t delta) {
  const auto request = Request::incr_or_create(key, delta, delta, Exptime::never());
  Reply reply = context.cluster.execute(request);
  for (int i = 0; i < 3 && reply.unknown(); ++i) reply = context.cluster.execute(request);
  expect(context.cluster, reply);
}

void unknown_called_failed(Context& context, std::uint64_t delta) {
  const Reply reply = context.cluster.execute(Request::incr_or_create(key, delta, delta, Exptime::never()));
  expect_read(context.cluster, reply);
}

void cas_loop_repeating_after_unknown(Context& context, std::uint64_t delta) {
  cas_update(context, key, [&](const Observed& observed) -> std::optional<Write> {
    return Write{std::to_string(parse_padded_u64(observed.value).value_or(0) + delta)};
  });
}

}  // namespace

TEST_CASE("counter: plain increments are all counted, and at most once") {
  check_schedules([](std::uint64_t seed) { return increments(seed, Kind::plain, false); }, 0.4);
}

TEST_CASE("counter: exact increments are all counted, and at most once") {
  check_schedules([](std::uint64_t seed) { return increments(seed, Kind::exact, false); }, 0.3);
}

TEST_CASE("counter: takes answer exactly what was added") {
  check_schedules([](std::uint64_t seed) { return increments(seed, Kind::plain, true); }, 0.2);
  check_schedules([](std::uint64_t seed) { return increments(seed, Kind::exact, true); }, 0.2);
}

TEST_CASE("counter: eviction, restart and flush lose counts but never add any") {
  check_schedules([](std::uint64_t seed) { return increments_with_loss(seed, Kind::plain); }, 0.1);
  check_schedules([](std::uint64_t seed) { return increments_with_loss(seed, Kind::exact); }, 0.1);
}

TEST_CASE("counter: a limit never allows more than its maximum in a window") {
  check_schedules(limits, 0.1);
}

TEST_CASE("counter: an exact increment with lost replies is hardly ever unknown") {
  std::uint64_t unknown = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Faults faults = Faults::none();
    faults.lost_replies = faults.ghosts = faults.lost_requests = true;
    Simulation simulation(seed, {.faults = faults});
    Ledger ledger;
    for (int i = 0; i < 3; ++i) {
      simulation.client([&](Context& context, SimulatedClient&) {
        for (int j = 0; j < 3; ++j) {
          add(ledger, context,
              [&](std::uint64_t) { Counter(context).incr("n", 1, {.ttl = {}, .exact = true}); });
        }
      });
    }
    simulation.run();
    unknown += ledger.unknown != 0 ? 1 : 0;
    lost += simulation.happened().messages;
  }
  CHECK(lost > 500);
  CHECK(unknown < lost / 20);
}

TEST_CASE("counter: the simulation catches get-then-set initialisation") {
  CHECK(finds_violation([](std::uint64_t seed) { return broken(seed, get_then_set_first); }, 1000));
}

TEST_CASE("counter: the simulation catches an increment repeated after a lost reply") {
  CHECK(finds_violation([](std::uint64_t seed) { return broken(seed, repeated_after_unknown); }, 1000));
}

TEST_CASE("counter: the simulation catches an unknown outcome reported as a failure") {
  CHECK(finds_violation([](std::uint64_t seed) { return broken(seed, unknown_called_failed); }, 1000));
}

TEST_CASE("counter: the simulation catches a cas loop that goes on blindly after a lost reply") {
  CHECK(finds_violation([](std::uint64_t seed) { return broken(seed, cas_loop_repeating_after_unknown); },
                        1000));
}

}  // namespace mcds::counter_simulation
