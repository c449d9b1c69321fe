// Parts that the pairs of every structure share: a run's bounds, the verdict's line, and a failure's story.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/exploration.hpp"

namespace mcds::exhaustive {

// Returns true with MCDS_TEST_FULL (`tests/run --full`): pairs get one more fault and a third client, as far
// as max_steps() steps of each pair reach. MCDS_TEST_STEPS sets another number of steps.
inline bool full() {
  return std::getenv("MCDS_TEST_FULL") != nullptr;
}

inline std::uint64_t max_steps() {
  const char* steps = std::getenv("MCDS_TEST_STEPS");
  return steps == nullptr ? 5'000'000 : std::strtoull(steps, nullptr, 10);
}

// Returns true if the name contains MCDS_TEST_PAIR, or if that is not set.
inline bool chosen(const std::string& name) {
  const char* wanted = std::getenv("MCDS_TEST_PAIR");
  return wanted == nullptr || name.find(wanted) != std::string::npos;
}

// Checks that the exploration completes within a million schedules without a violation.
inline void holds(const std::string& name, const Scenario& scenario, Bounds bounds, int more_faults = 1) {
  if (!chosen(name)) return;
  if (full()) {
    bounds.faults += more_faults;
    bounds.effort = max_steps();
  }
  const Verdict verdict = explore(scenario, bounds);
  std::printf("%-64s %s: %s\n", name.c_str(), bounds.reported().c_str(), verdict.line().c_str());
  std::fflush(stdout);
  INFO(name, ": ", verdict.reported());
  CHECK(!verdict.violation);
  if (!full()) CHECK(verdict.complete);
}

// Checks three clients and long cases, only under `tests/run --full`.
inline void holds_in_full(const std::string& name, const Scenario& scenario, const Bounds& bounds) {
  if (full()) holds(name, scenario, bounds, 0);
}

// Checks that a deliberate mistake is found, with the shortest story.
inline void caught(const std::string& name, const Scenario& scenario, const Bounds& bounds) {
  if (!chosen(name)) return;
  const Verdict verdict = explore(scenario, bounds);
  std::printf("%-64s %s after %llu schedules: %s\n", name.c_str(),
              verdict.violation ? "caught" : "NOT CAUGHT", static_cast<unsigned long long>(verdict.schedules),
              verdict.reported().c_str());
  INFO(name, ": ", verdict.line());
  CHECK(verdict.violation);
}

}  // namespace mcds::exhaustive
