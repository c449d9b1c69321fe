// What the pairs of every structure share: the bounds of a run of the tests, the verdict's line, the story
// when it fails.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/exploration.hpp"

namespace mcds::exhaustive {

// MCDS_TEST_FULL (`tests/run --full`): one fault more, and pairs that meet a third client, as far as so many
// steps of each pair reach. MCDS_TEST_STEPS: another number of them.
inline bool full() {
  return std::getenv("MCDS_TEST_FULL") != nullptr;
}

inline std::uint64_t most_steps() {
  const char* steps = std::getenv("MCDS_TEST_STEPS");
  return steps == nullptr ? 5'000'000 : std::strtoull(steps, nullptr, 10);
}

// MCDS_TEST_PAIR: only those whose line has this in its name.
inline bool chosen(const std::string& name) {
  const char* wanted = std::getenv("MCDS_TEST_PAIR");
  return wanted == nullptr || name.find(wanted) != std::string::npos;
}

// Of each structure with several copies, its clients' Contexts.
inline Context in_copies(Context context, std::size_t copies) {
  context.copies = copies;
  return context;
}

// Complete within a million schedules, and no violation.
inline void holds(const std::string& name, const Scenario& scenario, Bounds bounds, int more_faults = 1) {
  if (!chosen(name)) return;
  if (full()) {
    bounds.faults += more_faults;
    bounds.effort = most_steps();
  }
  const Verdict verdict = explore(scenario, bounds);
  std::printf("%-64s %s: %s\n", name.c_str(), bounds.told().c_str(), verdict.line().c_str());
  std::fflush(stdout);
  INFO(name, ": ", verdict.told());
  CHECK(!verdict.violation);
  if (!full()) CHECK(verdict.complete);
}

// Three clients, and what takes long: under `tests/run --full` only.
inline void holds_in_full(const std::string& name, const Scenario& scenario, const Bounds& bounds) {
  if (full()) holds(name, scenario, bounds, 0);
}

// Broken on purpose: found, with the shortest story.
inline void caught(const std::string& name, const Scenario& scenario, const Bounds& bounds) {
  if (!chosen(name)) return;
  const Verdict verdict = explore(scenario, bounds);
  std::printf("%-64s %s after %llu schedules: %s\n", name.c_str(),
              verdict.violation ? "caught" : "NOT CAUGHT", static_cast<unsigned long long>(verdict.schedules),
              verdict.told().c_str());
  INFO(name, ": ", verdict.line());
  CHECK(verdict.violation);
}

}  // namespace mcds::exhaustive
