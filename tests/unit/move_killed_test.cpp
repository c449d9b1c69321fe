// Moves that are killed and continued.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "common/operations/move/move.hpp"
#include "tests/support/move_world.hpp"

namespace mcds::move_killed_test {

using namespace std::chrono_literals;

// Once, a run ended when only the journal had the new expiry. The next run found the same bytes in the item
// and left the old expiry.
TEST_CASE("move: an item's end is kept wherever a run that touches it is killed") {
  for (int trips = 0; trips < 10; ++trips) {
    for (const bool copied_whole : {false, true}) {
      CAPTURE(trips);
      CAPTURE(copied_whole);
      test::MoveWorld world;
      const std::string key = world.moving_key(1);
      const auto in = [&](std::chrono::seconds ttl) { return Exptime::after(ttl, world.clock.wall()); };
      const auto run = [&](bool again, std::chrono::seconds ttl, int trips_left) {
        int left = test::never_killed;
        test::Killing from(world.memory, left), to(world.after, left);
        const Context context{from, world.clock, world.random, {}, 1};
        try {
          Move move(context, to, {.journal = world.journal.path, .again = again});
          move.list([&](const TakeLiveKey& take) {
            const auto now = floor<std::chrono::seconds>(world.clock.wall()).time_since_epoch().count();
            take({.key = key,
                  .server = world.memory.placement().server_of(key),
                  .size_bytes = 60,
                  .expires_at = now + ttl.count()});
            return std::vector<LiveKeysOfServer>(3, {{.complete = true}, nullptr});
          });
          left = trips_left;
          move.copy({[](const KeptItem&) {}, [](std::uint64_t) {}});
        } catch (const test::Killed&) {
        }
      };
      world.set(key, "session", 0, in(100s));
      run(false, 100s, copied_whole ? test::never_killed : trips);
      CHECK(world.memory.execute(Request::touch(key, in(3000s))).outcome == Outcome::stored);
      if (copied_whole) run(true, 3000s, trips);
      run(false, 3000s, test::never_killed);
      run(true, 3000s, test::never_killed);
      const Reply reply = world.after.execute(Request::probe(key, world.after.placement().server_of(key)));
      REQUIRE(reply.age.ttl);
      CHECK(std::abs(reply.age.ttl->count() - 3000) <= 2);
    }
  }
}

// Once, the journal had one record for all copies of a key: a continued run skipped the unsettled ones.
TEST_CASE("move: both copies of a key go, wherever a run is killed") {
  for (int trips = 0; trips < 60; ++trips) {
    CAPTURE(trips);
    test::MoveWorld world;
    MemoryCluster other{world.clock.time(), 7};
    std::string key = "key";
    std::vector<std::size_t> before, after;
    do {
      before = world.memory.placement().servers_of(key += '+', 2);
      after = other.placement().servers_of(key, 2);
    } while (*std::min_element(after.begin(), after.end()) < 3);
    for (const std::size_t server : before)
      world.memory.execute(Request::set(key, "value", Exptime::never()).on(server));
    for (int i = 0; i < 10; ++i) world.set("other" + std::to_string(i), "value");
    const auto run = [&](int trips_left) {
      int left = test::never_killed;
      test::Killing from(world.memory, left), to(other, left);
      const Context context{from, world.clock, world.random, {}, 2};
      try {
        Move move(context, to, {.rate = 1, .journal = world.journal.path});
        move.list([&](const TakeLiveKey& take) { return world.read(take); });
        left = trips_left;
        move.copy({[](const KeptItem&) {}, [](std::uint64_t) {}});
      } catch (const test::Killed&) {
      }
    };
    run(trips);
    run(test::never_killed);
    for (const std::size_t server : after) CHECK(other.server(server).peek(key));
  }
}

// Once, a second run overwrote a digest and ended before it had replaced the item, which the third run then
// mistook for another client's.
TEST_CASE("move: killed at any trip, with writes in between, and nothing is lost or left") {
  for (int first = 0; first < 12; ++first) {
    for (int second = 0; second < 12; ++second) {
      test::MoveWorld world;
      std::vector<std::string> keys;
      for (int i = 0; i < 5; ++i) keys.push_back(world.moving_key(i));
      const auto write = [&](const std::string& value) {
        for (const std::string& key : keys) world.set(key, value + key);
      };
      write("first ");
      world.run(false, first);
      write("second ");
      world.run(false, second);
      write("third ");
      CHECK(world.run(false));
      write("fourth ");
      world.run(true, second);
      CHECK(world.run(true));
      CAPTURE(first);
      CAPTURE(second);
      CHECK(world.left.empty());
      for (const std::string& key : keys) CHECK(world.there(key)->value == "fourth " + key);
    }
  }
}

}  // namespace mcds::move_killed_test
