// Callers and invalidations of one entry, in random schedules with every fault.
#include <doctest/doctest.h>

#include "tests/models/cache_model.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::cache_simulation {

using namespace cache_model;

namespace {

std::optional<std::string> schedule(std::uint64_t seed, const Faults& faults, Setting setting) {
  setting.before = Before::nothing;
  setting.random = true;
  const std::vector<std::string> alphabets(4, "aawwwkklufer");
  return simulate(seed, {.servers = 2, .faults = faults},
                  callers(random_letters(seed, alphabets, 4), setting), 1500ms);
}

void check(const Faults& faults, const Setting& setting, double share) {
  check_schedules([&](std::uint64_t seed) { return schedule(seed, faults, setting); }, share);
}

// Returns faults after which all clients see the servers alike.
Faults calm() {
  Faults faults = Faults::none();
  faults.pauses = faults.late_ticks = true;
  return faults;
}

}  // namespace

TEST_CASE("cache: one rebuild at a time, no invalidation undone, under every fault but loss of data") {
  check({}, {}, 1);
}

TEST_CASE("cache: no invalidation is undone where servers lose data, too") {
  check(Faults::all(), {.exclusive = false}, 0.5);
}

TEST_CASE("cache: nobody rebuilds what was fresh when it had the lock") {
  check(calm(), {.needed = true}, 0.3);
}

TEST_CASE(
    "cache: the simulation finds a store by set, a lock that is no lock, a placeholder like any other") {
  for (const auto spoil : {test::store_by_set, test::lock_by_set, test::placeholder_of_nobody})
    CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, {}, {.spoil = spoil}); }));
}

}  // namespace mcds::cache_simulation
