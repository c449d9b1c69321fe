// Visitors in random schedules, over the ends of periods, with every fault.
#include <doctest/doctest.h>

#include "tests/models/visitors_model.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::visitors_simulation {

using namespace visitors_model;

namespace {

std::optional<std::string> hits(std::uint64_t seed, Mistake mistake) {
  // Half a period is 5 s. Clocks that are up to 2.4 s off either way differ by less than that.
  const SimulationOptions options{.servers = 2, .max_skew = 2400ms};
  return simulate(seed, options, guests(random_letters(seed, {"h", "h", "h", "v"}, 6), {.mistake = mistake}),
                  12s);
}

std::optional<std::string> ids(std::uint64_t seed) {
  return simulate(seed, {.servers = 2, .faults = {.client_skew = false}},
                  guests({"iii", "iii", "iii"}, {.ids = 4, .period = 3600s * 24}));
}

}  // namespace

TEST_CASE("visitors: every acknowledged hit of a period is in its value, none is counted twice") {
  check_schedules([](std::uint64_t seed) { return hits(seed, Mistake::none); }, 0.7);
}

TEST_CASE("visitors: an id counts once per period although replies are lost and clients die") {
  check_schedules(ids, 0.3);
}

TEST_CASE("visitors: the simulation catches what is broken") {
  for (const Mistake mistake :
       {Mistake::two_alternating_keys, Mistake::exptime_from_the_hit, Mistake::no_guard}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(finds_violation([&](std::uint64_t seed) { return hits(seed, mistake); }));
  }
}

}  // namespace mcds::visitors_simulation
