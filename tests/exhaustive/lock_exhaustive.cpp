// Locks in every interleaving.
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/lock_model.hpp"

namespace mcds::lock_exhaustive {

using namespace lock_model;

namespace {

// Longer than a lease plus the extra lifetime of its key.
constexpr Duration lapse = 4s;

// Returns a server whose clock ticks just before the clients' second ends.
MemoryServerOptions ticking_late() {
  return {.tick_phase = 999ms};
}

}  // namespace

TEST_CASE("exhaustive lock: acquire, renew, release against each other") {
  using exhaustive::holds;
  const Bounds bounds{.faults = 1, .pauses = {lapse}, .max_pauses = 1};
  holds("lock: acquire release | acquire release", incarnations({"af", "af"}), bounds);
  holds("lock: acquire renew release | acquire release", incarnations({"arf", "af"}), bounds);
  holds("lock: acquire | acquire renew by token", incarnations({"a", "at"}), bounds);
  holds("lock: acquire release by token | acquire renew", incarnations({"aF", "ar"}), bounds);
  holds("lock: acquire waiting | acquire release", incarnations({"wf", "af"}), {.faults = 1});
  holds("lock: force | acquire renew release", incarnations({"x", "arf"}), bounds);
}

TEST_CASE("exhaustive lock: three clients") {
  using exhaustive::holds_in_full;
  for (const std::vector<std::string>& three :
       {std::vector<std::string>{"a", "a", "a"}, {"af", "af", "a"}, {"ar", "a", "a"}, {"aF", "at", "a"}}) {
    const std::string name = "lock: " + three[0] + " | " + three[1] + " | " + three[2];
    holds_in_full(name, incarnations(three), {.faults = 1});
    holds_in_full(name + ", a lapse anywhere", incarnations(three), {.pauses = {lapse}, .max_pauses = 1});
  }
}

TEST_CASE("exhaustive lock: a lease that lapsed, between two others") {
  using exhaustive::holds;
  // The request arrives long after its client got another answer.
  Bounds delayed{.faults = 1, .kinds = Happenings::none(), .pauses = {lapse}, .max_pauses = 2};
  delayed.kinds.delayed = true;
  holds("lock: acquire renew | acquire, twice a lapse", incarnations({"ar", "a"}), delayed);
  holds("lock: acquire renew by token | acquire, twice a lapse", incarnations({"at", "a"}), delayed);
  holds("lock: acquire renew release | acquire release, standing still", incarnations({"atF", "af"}),
        {.pauses = {lapse}, .max_pauses = 2, .stalls = true});
  holds("lock: acquire release | acquire, around the deadline and the tick", incarnations({"af", "a"}),
        {.pauses = {1ms, 998ms, 1s}, .max_pauses = 3, .server = ticking_late()});
}

// Two clients may then hold it. The fence distinguishes them if a second lies between.
TEST_CASE("exhaustive lock: fences grow although data is lost") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none(), .pauses = {lapse}, .max_pauses = 1};
  losing.kinds.evictions = losing.kinds.restarts = true;
  holds("lock, data lost: acquire release | acquire release",
        incarnations({"af", "af"}, {.exclusive = false}), losing);
  holds("lock, data lost: acquire renew | acquire", incarnations({"ar", "a"}, {.exclusive = false}), losing);
}

// A client that loses a vote releases its copies and retries, up to eight times, after a back-off.
TEST_CASE("exhaustive lock: two copies") {
  using exhaustive::holds;
  const auto pair = [](const std::string& one, const std::string& other, int faults, int hasty) {
    holds("lock, 2 copies: " + one + " | " + other, incarnations({one, other}, {.copies = 2}),
          {.faults = faults, .hasty_attempts = hasty, .servers = 2});
  };
  pair("a", "a", 1, 0);
  pair("a", "x", 1, 0);
  pair("af", "a", 1, 0);
  pair("ar", "a", 1, 0);
  for (const char* one : {"a", "af", "ar", "aF", "at"}) pair(one, "a", 0, 1);
  // A server that restarts after its vote, and then gets another request for the lock, has lost the holder.
  Bounds restarting{.faults = 1, .kinds = Happenings::none(), .servers = 3};
  restarting.kinds.restarts = true;
  for (const char* one : {"a", "aa", "w"})
    holds(std::string("lock, 3 copies, held on two, a server restarts: ") + one,
          incarnations({one}, {.copies = 3, .held = true}), restarting, 0);  // with two, no majority knows it
}

// A client that finds a holder with another copy count is refused. No cut hides the holder here (lock.hpp).
TEST_CASE("exhaustive lock: two clients that give different numbers of copies") {
  for (const std::vector<std::size_t>& numbers :
       std::vector<std::vector<std::size_t>>{{1, 2}, {1, 3}, {2, 3}}) {
    for (const std::vector<std::string>& both :
         std::vector<std::vector<std::string>>{{"a", "a"}, {"af", "a"}, {"ar", "af"}}) {
      exhaustive::holds("lock, " + std::to_string(numbers[0]) + " and " + std::to_string(numbers[1]) +
                            " copies: " + both[0] + " | " + both[1],
                        incarnations(both, {.copies = 3, .numbers = numbers}),
                        {.hasty_attempts = 0, .servers = 3}, 0);
    }
  }
}

TEST_CASE("exhaustive lock: caught when broken") {
  using exhaustive::caught;
  const Bounds two_lapses{.pauses = {lapse}, .max_pauses = 2, .stalls = true};
  caught("lock, broken: the key expires with the ttl",
         incarnations({"a", "a"}, {.spoil = test::expire_with_the_ttl}),
         {.pauses = {1ms, 998ms}, .max_pauses = 2, .server = ticking_late()});
  Bounds restarting{.faults = 1, .kinds = Happenings::none()};
  restarting.kinds.restarts = true;
  caught("lock, one copy, on a server that restarts", incarnations({"a", "a"}), restarting);
  Bounds twice = restarting;
  twice.faults = twice.servers = 2;
  twice.hasty_attempts = 0;
  caught("lock, 2 copies, broken: servers vote that may have forgotten",
         incarnations({"a", "a"}, {.spoil = believe_every_server, .copies = 2}), twice);
  caught("lock, broken: release without comparing",
         incarnations({"aF", "a", "a"}, {.spoil = test::release_without_comparing}), two_lapses);
  caught("lock, broken: renew without comparing",
         incarnations({"at", "a"}, {.spoil = test::write_without_comparing}), two_lapses);
}

}  // namespace mcds::lock_exhaustive
