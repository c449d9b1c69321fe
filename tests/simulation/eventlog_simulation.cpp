// Event logs in random schedules, with late events, further parts and every fault.
#include <doctest/doctest.h>

#include "tests/models/eventlog_model.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::eventlog_simulation {

using namespace eventlog_model;

namespace {

struct Plan {
  std::string reader = "f";
  Faults faults{};
  Setting setting{};
};

std::optional<std::string> schedule(std::uint64_t seed, const Plan& plan) {
  SimulationOptions options{.servers = 2, .faults = plan.faults, .max_skew = 2400ms};
  // Some schedules use small items, so that chunks continue in further parts.
  if (seed % 2 == 1) options.server.item_size = 500;
  Setting setting = plan.setting;
  setting.shape = {10, 4};
  setting.faulty = true;
  const std::string cursor = plain_ring(setting.mistake) ? "f" : "d";
  const std::vector<std::string> alphabets{"pppl", "pppl", "pppl", cursor, cursor, plan.reader};
  return simulate(seed, options, parties(random_letters(seed, alphabets, 5), setting), 10s);
}

void check(const Plan& plan, double share) {
  check_schedules([&](std::uint64_t seed) { return schedule(seed, plan); }, share);
}

bool caught(const std::string& reader, Mistake mistake) {
  const Plan plan{.reader = reader, .setting = {.mistake = mistake}};
  return finds_violation([&](std::uint64_t seed) { return schedule(seed, plan); });
}

Faults calm() {
  Faults faults = Faults::none();
  faults.late_ticks = true;
  faults.client_skew = true;
  return faults;
}

}  // namespace

TEST_CASE(
    "eventlog: every acknowledged event is fetched once and delivered once, whatever gets lost on the way") {
  check({}, 0.5);
}

TEST_CASE("eventlog: an evicted part is reported to a cursor, whatever else goes wrong") {
  check({.reader = "e"}, 0.3);
}

TEST_CASE("eventlog: no gap is reported where nothing went wrong, however writers and readers interleave") {
  check({.faults = calm(), .setting = {.quiet = true}}, 0.1);
}

TEST_CASE("eventlog: restarts, flushes and evictions of anything lead to no error and no repetition") {
  check({.reader = "d", .faults = Faults::all(), .setting = {.loss = Loss::of_anything}}, 0.1);
}

TEST_CASE("eventlog: the simulation catches what is broken") {
  for (const Mistake mistake : {Mistake::slot_modulo_n, Mistake::exptime_from_creation,
                                Mistake::cursor_by_time, Mistake::blind_repetition}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(caught("f", mistake));
  }
  for (const Mistake mistake : {Mistake::article, Mistake::cursor_without_incarnation}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(caught("e", mistake));
  }
}

}  // namespace mcds::eventlog_simulation
