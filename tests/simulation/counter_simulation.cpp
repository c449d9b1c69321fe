// Counters in random schedules with every fault.
#include <doctest/doctest.h>

#include "tests/models/counter_model.hpp"
#include "tests/support/counters.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::counter_simulation {

using namespace counter_model;

namespace {

std::optional<std::string> schedule(std::uint64_t seed, const std::string& alphabet, const Setting& setting,
                                    const Faults& faults = {}) {
  return simulate(seed, {.faults = faults},
                  tellers(random_letters(seed, {alphabet, alphabet, alphabet}, 4), setting));
}

void check(const std::string& alphabet, const Setting& setting, double share, const Faults& faults = {}) {
  check_schedules([&](std::uint64_t seed) { return schedule(seed, alphabet, setting, faults); }, share);
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

}  // namespace

TEST_CASE("counter: all increments are counted, and at most once") {
  check("iiig", {.kind = Kind::plain}, 0.4);
  check("iiig", {.kind = Kind::exact}, 0.3);
}

TEST_CASE("counter: takes answer exactly what was added") {
  for (const Kind kind : {Kind::plain, Kind::exact}) check("iiit", {.kind = kind}, 0.2);
}

TEST_CASE("counter: every change is made as answered, in an order that explains the answers") {
  for (const Kind kind : {Kind::plain, Kind::exact}) check("iitdg", {.kind = kind, .before = 5}, 0.1);
}

TEST_CASE("counter: eviction, restart and flush lose counts but never add any") {
  for (const Kind kind : {Kind::plain, Kind::exact})
    check("i", {.kind = kind, .may_mix = true}, 0.1, Faults::all());
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
    for (int i = 0; i < 3; ++i) {
      simulation.client([&](Context& context, SimulatedClient&) {
        for (int j = 0; j < 3; ++j) {
          const auto failure =
              attempt([&] { Counter(context).incr("n", 1, {.ttl = {}, .exact = true}); }).failure();
          unknown += failure && failure->code() == ErrorCode::unknown_outcome ? 1 : 0;
        }
      });
    }
    simulation.run();
    lost += simulation.happened().messages;
  }
  CHECK(lost > 500);
  CHECK(unknown < lost / 20);
}

TEST_CASE("counter: the simulation catches what is broken") {
  for (const auto increment : {get_then_set_first, repeated_after_unknown, unknown_called_failed,
                               cas_loop_repeating_after_unknown, get_and_set}) {
    CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, "i", {.increment = increment}); },
                          1000));
  }
}

}  // namespace mcds::counter_simulation
