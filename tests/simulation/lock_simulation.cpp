// Many clients of one lock, and of one with slots, in random schedules with every fault.
#include <doctest/doctest.h>

#include "tests/models/lock_model.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::lock_simulation {

using namespace lock_model;

namespace {

std::optional<std::string> schedule(std::uint64_t seed, const Faults& faults, Setting setting = {}) {
  setting.max_ttl = 3500ms;
  setting.random = true;
  const std::size_t servers = setting.copies > 1 ? setting.copies : setting.slots;
  const std::vector<std::string> alphabets(setting.slots == 1 ? 4 : 5, "wwwarrtfF");
  return simulate(seed, {.servers = servers, .faults = faults},
                  incarnations(random_letters(seed, alphabets, 8), setting), 3s);
}

void check(const Faults& faults, const Setting& setting, double share) {
  check_schedules([&](std::uint64_t seed) { return schedule(seed, faults, setting); }, share);
}

bool caught(const Faults& faults, const Setting& setting) {
  return finds_violation([&](std::uint64_t seed) { return schedule(seed, faults, setting); });
}

const Faults restarting{.restarts = true};

}  // namespace

TEST_CASE("lock: never two holders, fences strictly grow, under every fault but loss of data") {
  check({}, {}, 1);
}

TEST_CASE("lock: fences strictly grow over restarts, between tenures a second apart") {
  Faults faults = Faults::none();
  faults.kills = faults.restarts = true;
  check(faults, {.exclusive = false}, 0.3);
}

// Every restart loses locks, fences and sentinels, so the remaining servers must suffice.
TEST_CASE("lock copies: never two holders, fences strictly grow, under every fault and restarts") {
  check(restarting, {.copies = 3}, 0.3);
}

TEST_CASE("lock slots: never more holders than slots, under every fault but loss of data") {
  check({}, {.slots = 2}, 0.5);
}

TEST_CASE("lock slots: callers that disagree on the number never exceed the largest") {
  check({}, {.slots = 2, .agreed = false}, 0.1);
}

TEST_CASE("lock slots copies: never more holders than slots, under every fault and restarts") {
  check(restarting, {.copies = 3, .slots = 2}, 0.1);
}

TEST_CASE("lock: the simulation finds a holder too many where servers lose data, or vote too young") {
  for (const std::size_t slots : {1U, 2U}) CHECK(caught(Faults::all(), {.slots = slots}));
  CHECK(caught(restarting, {.spoil = believe_every_server, .copies = 3}));
}

TEST_CASE("lock: the simulation finds a holder too many without the two seconds, or without comparing") {
  for (const auto spoil :
       {test::expire_with_the_ttl, test::release_without_comparing, test::write_without_comparing}) {
    for (const std::size_t slots : {1U, 2U}) CHECK(caught({}, {.spoil = spoil, .slots = slots}));
  }
}

}  // namespace mcds::lock_simulation
