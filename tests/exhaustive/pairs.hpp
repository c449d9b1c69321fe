// What the pairs of every structure share: the bounds of a run of the tests, the verdict's line, the story when it fails.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/exploration.hpp"

namespace mcds::exhaustive {

// MCDS_TEST_FULL (`tests/run --full`): one fault more, as far as so many schedules reach.
inline bool full() {
  return std::getenv("MCDS_TEST_FULL") != nullptr;
}

// Complete within a million schedules, and no violation.
inline void holds(const std::string& name, const Scenario& scenario, Bounds bounds) {
  if (full()) {
    ++bounds.faults;
    bounds.most_schedules = 300'000;
  }
  const Verdict verdict = explore(scenario, bounds);
  std::printf("%-64s faults %d, pauses %d: %s\n", name.c_str(), bounds.faults, bounds.most_pauses,
              verdict.line().c_str());
  INFO(name, ": ", verdict.told());
  CHECK(!verdict.violation);
  if (!full()) CHECK(verdict.complete);
}

// Broken on purpose: found, with the shortest story.
inline void caught(const std::string& name, const Scenario& scenario, const Bounds& bounds) {
  const Verdict verdict = explore(scenario, bounds);
  std::printf("%-64s %s after %llu schedules: %s\n", name.c_str(),
              verdict.violation ? "caught" : "NOT CAUGHT", static_cast<unsigned long long>(verdict.schedules),
              verdict.told().c_str());
  INFO(name, ": ", verdict.line());
  CHECK(verdict.violation);
}

}  // namespace mcds::exhaustive
