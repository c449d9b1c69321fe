// Arrays in random schedules, with segments and every fault.
#include <doctest/doctest.h>

#include "tests/models/array_model.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::array_simulation {

using namespace array_model;

namespace {

using namespace std::chrono_literals;

struct Plan {
  std::vector<std::string> alphabets{"nnnna", "nnnna", "nnnma", "c", "f"};
  std::size_t operations = 4;
  Faults faults{};
  Setting setting{};
};

std::optional<std::string> schedule(std::uint64_t seed, const Plan& plan) {
  SimulationOptions options{.servers = 2, .faults = plan.faults};
  // Items hold one or two dozen lines, so that roots fill up and there are many segments.
  options.server.item_size = 1800;
  Setting setting = plan.setting;
  setting.exists = seed % 2 == 0;
  setting.max_padding = 150;
  if (setting.options.segment_size == 300) setting.options = {.segment_size = 500, .max_padding = 1024};
  return simulate(seed, options, writers(random_letters(seed, plan.alphabets, plan.operations), setting),
                  200ms);
}

void check(const Plan& plan, double share) {
  check_schedules([&](std::uint64_t seed) { return schedule(seed, plan); }, share);
}

bool caught(const Plan& plan) {
  return finds_violation([&](std::uint64_t seed) { return schedule(seed, plan); });
}

}  // namespace

TEST_CASE("array: every view is a serial order of whole changes, and compaction drops none") {
  check({}, 0.55);
}

TEST_CASE("array: rival compactions lose nothing") {
  check({.alphabets = {"nnma", "nnka", "c", "c", "f"}}, 0.1);
}

TEST_CASE("array: what is lost is reported, and nothing comes twice") {
  check({.faults = Faults::all(), .setting = {.may_mix = true}}, 0.15);
}

TEST_CASE("array: the JSON encoding is as atomic") {
  check({.alphabets = {"nnma", "nnma", "nnmp", "f"}, .setting = {.encoding = ArrayEncoding::json}}, 0.1);
}

TEST_CASE("array: a replacement is whole, and what it replaced does not come back") {
  for (const auto encoding : {ArrayEncoding::journal, ArrayEncoding::json}) {
    // Changes that are too large for one append are written as segments, one line in each.
    for (const std::size_t max_change : {std::size_t{50}, Journal::Options{}.max_change}) {
      Setting setting{.encoding = encoding};
      if (max_change == 50) setting.options = {.segment_size = 50, .max_padding = 1024, .max_change = 50};
      check({.alphabets = {"pf", "pf", "pfz", "c"}, .setting = setting}, 0.02);
    }
  }
}

TEST_CASE("array: the schedules reach full roots, segments and compactions") {
  std::size_t compactions = 0;
  std::size_t segments = 0;
  Plan plan;
  plan.setting.compact = [&](Context& context) {
    const Journal::Options options{.segment_size = 500, .max_padding = 1024};
    compactions += Journal(context, key, options).compact(compacted) ? 1 : 0;
    segments += Array(context, "x", options).keys().size() - 1;
  };
  for (std::uint64_t seed = 0; seed < 500; ++seed) CHECK(schedule(seed, plan) == std::nullopt);
  CHECK(compactions > 250);
  CHECK(segments > 250);
}

TEST_CASE("array: the simulation catches what is broken") {
  Plan compacts{.operations = 3};
  for (const auto compact : {compact_without_cas, compact_and_forget}) {
    compacts.setting.compact = compact;
    CHECK(caught(compacts));
  }
  const std::vector<std::string> writers{"na", "na", "f"};
  for (const auto change : {change_in_two_steps, repeat_blindly})
    CHECK(caught({.alphabets = writers, .setting = {.change = change}}));
  CHECK(caught({.alphabets = writers, .setting = {.encoding = ArrayEncoding::json, .change = get_and_set}}));
}

}  // namespace mcds::array_simulation
