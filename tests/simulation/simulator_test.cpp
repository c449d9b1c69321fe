// Tests the simulator itself: a seed repeats a run, its faults occur, and it finds well-known races.
#include <doctest/doctest.h>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::simulator_test {

namespace {

// Increments of one key by several clients, done in a right or a wrong way.
using Increment = bool (*)(Context& context);

bool incr_or_create(Context& context) {
  return !context.cluster.execute(Request::incr_or_create("n", 1, 1, Exptime::never())).failed();
}

bool get_then_set(Context& context) {
  const Reply found = context.cluster.execute(Request::get("n"));
  if (found.failed()) return false;
  const auto value = found.outcome == Outcome::hit ? parse_u64(found.value).value_or(0) : 0;
  return !context.cluster.execute(Request::set("n", std::to_string(value + 1), Exptime::never())).failed();
}

std::optional<std::string> count(std::uint64_t seed, Increment increment) {
  Simulation simulation(seed);
  std::uint64_t acknowledged = 0;
  std::uint64_t tried = 0;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient&) {
      for (int j = 0; j < 3; ++j) {
        ++tried;
        if (increment(context)) ++acknowledged;
      }
    });
  }
  simulation.run();
  const Reply result = simulation.observer().cluster.execute(Request::get("n"));
  const auto value = result.outcome == Outcome::hit ? parse_u64(result.value).value_or(0) : 0;
  if (value < acknowledged)
    return std::to_string(acknowledged) + " acknowledged, the value is " + std::to_string(value);
  if (value > tried) return std::to_string(tried) + " tried, the value is " + std::to_string(value);
  return std::nullopt;
}

struct Trace {
  std::string text;
  FaultCounts happened;
};

Trace trace(std::uint64_t seed) {
  Simulation simulation(seed, {.servers = 2, .faults = Faults::all()});
  Trace trace;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      for (int j = 0; j < 4; ++j) {
        const std::vector<Request> batch{Request::incr_or_create("a", 1, 1, Exptime::never()),
                                         Request::append_or_create("b", "", "x", Exptime::never()),
                                         Request::get("c" + std::to_string(context.random.below(2)))};
        for (const Reply& reply : context.cluster.execute(batch)) trace.text += name_of(reply.outcome);
        trace.text += std::to_string(client.index()) +
                      hex64(static_cast<std::uint64_t>(client.steady().time_since_epoch().count()));
        client.sleep_for(std::chrono::milliseconds(context.random.below(1000)));
      }
    });
  }
  simulation.run();
  trace.happened = simulation.happened();
  return trace;
}

}  // namespace

TEST_CASE("simulation: a seed repeats its run, another seed gives another") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) CHECK(trace(seed).text == trace(seed).text);
  CHECK(trace(1).text != trace(2).text);
}

TEST_CASE("simulation: every kind of fault happens") {
  FaultCounts all;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const FaultCounts happened = trace(seed).happened;
    all.messages += happened.messages;
    all.kills += happened.kills;
    all.losses += happened.losses;
  }
  CHECK(all.messages > 100);
  CHECK(all.kills > 50);
  CHECK(all.losses > 100);
}

TEST_CASE("simulation: atomic increments are never lost") {
  check_schedules([](std::uint64_t seed) { return count(seed, incr_or_create); });
}

TEST_CASE("simulation: the lost update of get-then-set is found") {
  CHECK(finds_violation([](std::uint64_t seed) { return count(seed, get_then_set); }, 100));
}

TEST_CASE("simulation: a dead client's cleanup reaches no server") {
  struct Cleanup {
    Context& context;
    ~Cleanup() noexcept(false) { context.cluster.execute(Request::remove("n")); }
  };
  const auto schedule = [](std::uint64_t seed) -> std::optional<std::string> {
    Simulation simulation(seed);
    bool returned = false;
    simulation.client([&](Context& context, SimulatedClient& client) {
      const Cleanup cleanup{context};
      context.cluster.execute(Request::set("n", "1", Exptime::never()));
      client.step();
      client.step();
      returned = true;
    });
    simulation.run();
    const bool killed = simulation.happened().kills != 0 && !returned;
    if (killed && simulation.happened().messages == 0 && !simulation.servers().server(0).peek("n")) {
      return "the item is gone";
    }
    return std::nullopt;
  };
  // A kill may precede the set.
  std::size_t gone = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) gone += schedule(seed) ? 1 : 0;
  CHECK(gone < 200);
}

TEST_CASE("simulation: who never ends is reported") {
  const auto endless = [](std::uint64_t seed) -> std::optional<std::string> {
    Simulation simulation(seed, {.faults = Faults::none(), .largest_step_count = 1000});
    simulation.client([](Context& context, SimulatedClient&) {
      while (true) context.cluster.execute(Request::get("n"));
    });
    simulation.run();
    return std::nullopt;
  };
  CHECK(finds_violation(endless, 1));
}

}  // namespace mcds::simulator_test
