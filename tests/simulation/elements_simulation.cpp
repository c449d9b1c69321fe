// Tables and hashes in random schedules: a few names in few shards, so that clients meet, and one of each
// client alone.
#include <doctest/doctest.h>

#include "tests/models/elements_model.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::elements_simulation {

using namespace elements_model;

namespace {

struct Plan {
  Setting setting{};
  bool lose_shards = false;  // a client removes index shards
};

// Returns the faults that the header allows in each plan.
Faults faults_of(const Plan& plan, bool reachable) {
  // An add that is executed after the grace period is found by has, but not by fetch.
  if (plan.setting.slow) return {.unreachable = !reachable, .ghosts = false};
  // An element that was created, not listed, and then lost cannot be detected.
  if (plan.lose_shards)
    return {.unreachable = false,
            .lost_requests = false,
            .lost_replies = false,
            .ghosts = false,
            .kills = false,
            .server_stalls = false};
  return {.unreachable = !reachable};
}

std::optional<std::string> schedule(std::uint64_t seed, const Plan& plan) {
  Setting setting = plan.setting;
  setting.random = true;
  const bool broken = setting.mistake != Mistake::none;
  std::vector<std::string> alphabets(3, broken ? "ssrccgf" : "ssssebrtcgf");
  if (plan.lose_shards) alphabets.emplace_back("l");
  // Clocks differ by up to 28 s, less than half of the grace period.
  const SimulationOptions options{.servers = 2,
                                  .faults = faults_of(plan, seed % 2 == 0),
                                  .max_skew = 14s,
                                  .server = {.item_size = 16384}};
  return simulate(seed, options, users(random_letters(seed, alphabets, 5), setting), 60s);
}

void check(const Plan& plan, double share) {
  check_schedules([&](std::uint64_t seed) { return schedule(seed, plan); }, share);
}

}  // namespace

TEST_CASE("elements: what is acknowledged is listed, and read as it was written") {
  check({}, 0.5);
}

TEST_CASE("elements: an add that is slower than the grace is still listed") {
  check({.setting = {.slow = true}}, 0.3);
}

TEST_CASE("elements: a lost shard is reported, or nothing is missing") {
  check({.lose_shards = true}, 0.2);
}

TEST_CASE("elements: the simulation catches what is broken") {
  for (const Mistake mistake : {Mistake::listed_after, Mistake::compaction_without_grace,
                                Mistake::compaction_without_cas, Mistake::never_listed_again}) {
    CAPTURE(static_cast<int>(mistake));
    const Plan plan{.setting = {.mistake = mistake, .slow = mistake == Mistake::never_listed_again}};
    CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, plan); }));
  }
}

}  // namespace mcds::elements_simulation
