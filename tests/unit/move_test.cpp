// Moves the contents of a pool to another placement.
#include "common/operations/move/move.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "common/base/bounds.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/map.hpp"
#include "common/operations/move/move_journal.hpp"
#include "tests/support/move_world.hpp"

namespace mcds::move_test {

namespace {

using namespace std::chrono_literals;
using moving::Copied;
using moving::hash_of;
using moving::Kind;
using moving::MoveDecision;
using moving::MoveJournal;
using test::Killed;
using test::MoveWorld;
using test::TemporaryFile;

std::string word_of(const MoveDecision& decision) {
  static constexpr const char* words[] = {"stays", "arrived", "moves", "astray", "lock"};
  return words[static_cast<int>(decision.what)];
}

}  // namespace

TEST_CASE("move: value, flags and ttl are kept; what is there stays; what stays is not copied") {
  MoveWorld world;
  const std::string plain = world.moving_key(1), timed = world.moving_key(2), taken = world.moving_key(3);
  world.set(plain, "value", 7);
  world.set(timed, "timed", 1, Exptime::after(100s, world.clock.wall()));
  world.set(taken, "old");
  CHECK(world.after.execute(Request::set(taken, "new", Exptime::never())).outcome == Outcome::stored);
  world.clock.advance(40s);
  CHECK(world.run(false));
  CHECK(world.there(plain)->value == "value");
  CHECK(world.there(plain)->flags == 7);
  const Reply reply = world.after.execute(Request::probe(timed, world.after.placement().server_of(timed)));
  CHECK(std::abs(reply.age.ttl->count() - 60) <= 1);
  CHECK(world.there(taken)->value == "new");
  REQUIRE(world.left.size() == 1);
  CHECK(world.left.front().key == taken);
  CHECK(std::string(world.left.front().reason) == "differs");
}

// Once, such keys were refused, though they were counted as moving.
TEST_CASE("move: keys with spaces and control characters are copied, and found there by the next run") {
  MoveWorld world;
  std::string key = "a b\x01";
  while (world.memory.placement().server_of(key) == world.after.placement().server_of(key)) key += '.';
  world.set(key, "value", 7);
  for (const bool again : {false, true}) {
    CHECK(world.run(again));
    CHECK(world.left.empty());
    REQUIRE(world.there(key));
    CHECK(world.there(key)->value == "value");
    CHECK(world.there(key)->flags == 7);
  }
}

// Once, they were counted as changed, which means written.
TEST_CASE("move: old copies that clients delete before they are removed are not counted") {
  MoveWorld world;
  const std::string key = world.moving_key(1);
  world.set(key, "value");
  CHECK(world.run(false));
  OldPlaces places({world.memory, world.clock, world.random, {}, 1}, world.after, {});
  CHECK(places.list([&](const Pool&, const TakeLiveKey& take) { return world.read(take); }).on_old == 1);
  CHECK(world.memory.execute(Request::remove(key)).outcome == Outcome::deleted);
  const auto& report = places.remove(false, {[](const KeptItem&) {}, [](std::uint64_t) {}});
  CHECK(report.removed + report.only_there + report.differs + report.changed + report.failed == 0);
}

// Once, an old copy stayed for ever if a client of the new list had shortened the new one's ttl; the advice,
// to move again, copied nothing.
TEST_CASE("move: an old copy that outlasts the new one goes if the journal shows that nobody touched it") {
  MoveWorld world;
  const std::string shortened = world.moving_key(1), extended = world.moving_key(2),
                    written = world.moving_key(3), forever = world.moving_key(4);
  const auto in = [&](std::chrono::seconds ttl) { return Exptime::after(ttl, world.clock.wall()); };
  const auto touch = [](Cluster& cluster, const std::string& key, Exptime exptime) {
    CHECK(cluster.execute(Request::touch(key, exptime)).outcome == Outcome::stored);
  };
  for (const std::string& key : {shortened, extended, written}) world.set(key, "value", 0, in(3600s));
  world.set(forever, "value");
  CHECK(world.run(false));
  world.clock.advance(100s);
  touch(world.after, shortened, in(600s));
  touch(world.after, forever, in(600s));
  touch(world.memory, extended, in(7200s));
  world.set(written, "value", 0, in(7200s));
  const auto removed = [&](const std::string& journal) {
    OldPlaces places({world.memory, world.clock, world.random, {}, 1}, world.after, {.journal = journal});
    places.list([&](const Pool&, const TakeLiveKey& take) { return world.read(take); });
    const auto& report = places.remove(false, {[](const KeptItem&) {}, [](std::uint64_t) {}});
    CHECK(report.removed + report.differs == report.on_old);
    return report.removed;
  };
  CHECK(removed("") == 0);
  CHECK(removed(world.journal.path) == 2);
  for (const std::string& key : {extended, written}) CHECK(world.memory.server_for(key).peek(key));
  CHECK(world.run(true));
  CHECK(removed("") == 2);
}

// Once, an item was copied seconds after its ttl was read, and each server's clock tick shortened the ttl, by
// 2 s and more after a move and back.
TEST_CASE(
    "move: items end when they would have ended, however late they are copied and whatever the servers' "
    "clocks show") {
  for (const auto skew : {0s, 1s, -100s, 5000s}) {
    for (const auto phase : {0ms, 900ms}) {
      test::World world(3);
      MemoryCluster after{world.clock.time(), 4, {.tick_phase = phase, .clock_skew = skew}};
      const Context context{world.memory, world.clock, world.random, {}, 1};
      std::vector<std::string> keys;
      for (int i = 0; keys.size() < 20; ++i) {
        const std::string key = "key" + std::to_string(i);
        if (world.memory.placement().server_of(key) != after.placement().server_of(key)) keys.push_back(key);
      }
      const WallTime end = world.clock.wall() + 100s;
      for (const std::string& key : keys) {
        const Request request = Request::set(key, "v", Exptime::after(100s, world.clock.wall()));
        CHECK(world.memory.execute(request).outcome == Outcome::stored);
      }
      world.clock.advance(10s);
      Move move(context, after, {.rate = 10});
      move.list([&](const TakeLiveKey& take) {
        for (const std::string& key : keys) {
          const auto ends = std::chrono::floor<std::chrono::seconds>(end).time_since_epoch().count();
          take({.key = key,
                .server = world.memory.placement().server_of(key),
                .size_bytes = 60,
                .expires_at = ends});
        }
        return std::vector<LiveKeysOfServer>(3, {{.complete = true}, nullptr});
      });
      move.copy({[](const KeptItem&) { FAIL("left"); }, [](std::uint64_t) {}});
      for (const std::string& key : keys) {
        const Reply reply = after.execute(Request::probe(key, after.placement().server_of(key)));
        REQUIRE(reply.age.ttl);
        const Duration off = world.clock.wall() + *reply.age.ttl - end;
        CAPTURE(std::chrono::duration<double>(off).count());
        CHECK(off < 2s);
        CHECK(off > -2s);
      }
    }
  }
}

namespace {

WallTime at_second(double second) {
  return WallTime(std::chrono::round<std::chrono::microseconds>(std::chrono::duration<double>(second)));
}

}  // namespace

// Once, the time that a reply was in flight, or that its reader was stopped, was added to every ttl.
TEST_CASE("move: a ttl agrees with the listed end however late it was read, unless the item was touched") {
  using moving::ClockLook;
  const auto agrees = [](std::int64_t listed, std::optional<std::chrono::seconds> ttl, double asked,
                         double answered, const ClockLook& clock = {}) {
    return moving::agrees({listed, ttl, at_second(asked), at_second(answered)}, clock);
  };
  CHECK(agrees(10'500, 500s, 10'000, 10'000.1));
  CHECK(agrees(10'500, 499s, 10'000, 10'000.1));
  CHECK(agrees(10'500, 501s, 10'000, 10'000.1));
  CHECK_FALSE(agrees(10'500, 497s, 10'000, 10'000.1));
  CHECK_FALSE(agrees(10'500, 503s, 10'000, 10'000.1));
  CHECK(agrees(10'500, 496s, 10'000, 10'008));  // stopped, or slow
  CHECK_FALSE(agrees(10'500, 100s, 10'000, 10'004));
  CHECK_FALSE(agrees(10'500, -1s, 10'000, 10'000.1));
  CHECK_FALSE(agrees(0, 60s, 10'000, 10'000.1));
  CHECK(agrees(0, -1s, 10'000, 10'000.1));
  CHECK(agrees(0, std::nullopt, 10'000, 10'000.1));
  CHECK(agrees(9'000, std::nullopt, 10'000, 10'000.1));
  // The expiry is by its server's clock, which is independent of ours.
  CHECK(agrees(110'500, 500s, 10'000, 10'000.1, {.ahead = 100'000s}));
  CHECK_FALSE(agrees(10'500, 500s, 10'000, 10'000.1, {.ahead = 100'000s}));
}

// An item may be touched between its listing and its copying, which is hours later at a low rate.
TEST_CASE("move: what is touched between listing and copying ends as touched") {
  for (const auto skew : {0s, 7s, -5000s}) {
    CAPTURE(skew.count());
    test::World world(3, 1, {.clock_skew = skew});
    MemoryCluster after{world.clock.time(), 4};
    const Context context{world.memory, world.clock, world.random, {}, 1};
    const auto moving_key = [&](std::string key) {
      while (world.memory.placement().server_of(key) == after.placement().server_of(key)) key += '+';
      return key;
    };
    const std::string later = moving_key("later"), forever = moving_key("forever"), soon = moving_key("soon"),
                      same = moving_key("same");
    const auto in = [&](std::chrono::seconds ttl) { return Exptime::after(ttl, world.clock.wall()); };
    const auto run = [&](const Request& request) {
      CHECK(world.memory.execute(request).outcome == Outcome::stored);
    };
    for (const std::string& key : {later, forever, same}) run(Request::set(key, key, in(100s)));
    run(Request::set(soon, soon, Exptime::never()));
    Move move(context, after, {});
    move.list([&](const TakeLiveKey& take) {
      const auto end =
          floor<std::chrono::seconds>(world.clock.wall() + skew).time_since_epoch().count() + 100;
      for (const std::string& key : {later, forever, soon, same})
        take({.key = key,
              .server = world.memory.placement().server_of(key),
              .size_bytes = 60,
              .expires_at = key == soon ? -1 : end});
      return std::vector<LiveKeysOfServer>(3, {{.complete = true}, nullptr});
    });
    run(Request::touch(later, in(1000s)));
    run(Request::touch(forever, Exptime::never()));
    run(Request::touch(soon, in(60s)));
    move.copy({[](const KeptItem&) { FAIL("left"); }, [](std::uint64_t) {}});
    const auto ttl = [&](const std::string& key) {
      return after.execute(Request::probe(key, after.placement().server_of(key))).age.ttl.value().count();
    };
    CHECK(std::abs(ttl(later) - 1000) <= 1);
    CHECK(ttl(forever) == -1);
    CHECK(std::abs(ttl(soon) - 60) <= 1);
    CHECK(std::abs(ttl(same) - 100) <= 1);
  }
}

TEST_CASE(
    "move: servers' clocks differ by what is beyond the seconds they show and the time it took to ask") {
  using moving::ClockLook;
  using moving::seconds_ahead;
  const auto look = [](std::int64_t shown, double before, double after) {
    return ClockLook::of(shown, at_second(before), at_second(after));
  };
  const ClockLook here = look(1000, 1000.2, 1000.3);
  CHECK(seconds_ahead(here, here) == 0);
  CHECK(seconds_ahead(here, look(1001, 1000.2, 1000.3)) == 0);
  CHECK(seconds_ahead(here, look(999, 1000.2, 1000.3)) == 0);
  CHECK(seconds_ahead(here, look(1003, 1000.2, 1000.3)) == 3);
  CHECK(seconds_ahead(look(1003, 1000.2, 1000.3), here) == -3);
  CHECK(seconds_ahead(here, look(4600, 1000.2, 1000.3)) == 3600);
  CHECK(seconds_ahead(here, look(2000, 2000.1, 2000.2)) == 0);  // read later
  CHECK(seconds_ahead(here, look(1004, 1000.2, 1006.2)) == 0);  // so slowly that the clocks may be equal
}

TEST_CASE("move: a server's own time is one only if it is no number of seconds, and one it can hold") {
  CHECK_FALSE(Exptime::absolute(0));
  CHECK_FALSE(Exptime::absolute(2'592'000));
  CHECK(Exptime::absolute(1'800'000'000)->wire() == 1'800'000'000);
  CHECK(Exptime::absolute(0x7fffffff)->wire() == 0x7fffffff);
  CHECK_FALSE(Exptime::absolute(0x80000000));
}

TEST_CASE("move: a pace is kept against its beginning, and a stall is made up for by a second's worth") {
  const SteadyTime start(1000s);
  RateLimiter limiter(100, start);
  SteadyTime now = start;
  for (int i = 0; i < 50; ++i) {
    now += std::max(Duration{}, limiter.take(10, now)) + 90ms;  // of the 100 ms that ten take
    CHECK(now - start <= 100ms * (i + 1));
  }
  CHECK(now - start >= 4900ms);
  now += 60s;
  int burst = 0;
  while (limiter.take(10, now) <= Duration{}) burst += 10;
  CHECK(burst >= 100);
  CHECK(burst <= 110);
  CHECK(RateLimiter({}, start).take(1000, start) == Duration{});
}

TEST_CASE("move: again copies what has changed, and nothing that the new servers changed or removed") {
  MoveWorld world;
  const std::string changed = world.moving_key(1), both = world.moving_key(2), removed = world.moving_key(3);
  const std::string touched = world.moving_key(4);
  for (const std::string& key : {changed, both, removed, touched}) world.set(key, "first");
  CHECK(world.run(false));
  world.set(changed, "second");
  world.set(both, "here");
  CHECK(world.after.execute(Request::set(both, "there", Exptime::never())).outcome == Outcome::stored);
  CHECK(world.after.execute(Request::remove(removed)).outcome == Outcome::deleted);
  const std::string fresh = world.moving_key(5);
  world.set(fresh, "fresh");
  CHECK(world.run(true));
  CHECK(world.there(changed)->value == "second");
  CHECK(world.there(both)->value == "there");
  CHECK_FALSE(world.there(removed));
  CHECK(world.there(touched)->value == "first");
  CHECK(world.there(fresh)->value == "fresh");
  REQUIRE(world.left.size() == 1);
  CHECK(world.left.front().key == both);
}

// Once, a copy was known by its bytes alone: an older value overwrote what a client of the new list had set
// last, if that was what had been copied.
TEST_CASE("move: again overwrites no write of the new list that has the bytes of the copy") {
  MoveWorld world;
  const std::string key = world.moving_key(1);
  const auto set_there = [&](const std::string& value) {
    CHECK(world.after.execute(Request::set(key, value, Exptime::never())).outcome == Outcome::stored);
  };
  const auto stays = [&](const std::string& value) {
    CHECK(world.run(true));
    CHECK(world.there(key)->value == value);
    REQUIRE(world.left.size() == 1);
    CHECK(std::string(world.left.front().reason) == "differs");
  };
  world.set(key, "first");
  CHECK(world.run(false));
  world.set(key, "on");
  CHECK(world.run(true));
  CHECK(world.there(key)->value == "on");
  CHECK(world.left.empty());
  world.set(key, "off");
  set_there("on");
  stays("on");
  stays("on");
  // An item that was left was never copied: the same bytes there are a client's.
  set_there("off");
  world.set(key, "later");
  stays("off");
  // A copy that was removed and set again is a client's, too, although the item was only touched meanwhile.
  const std::string removed = world.moving_key(2);
  world.set(removed, "first");
  CHECK(world.run(false));
  CHECK(world.after.execute(Request::remove(removed)).outcome == Outcome::deleted);
  const auto in_an_hour = Exptime::after(1h, world.clock.wall());
  CHECK(world.memory.execute(Request::touch(removed, in_an_hour)).outcome == Outcome::stored);
  CHECK(world.run(true));
  CHECK_FALSE(world.there(removed));
  CHECK(world.after.execute(Request::set(removed, "first", Exptime::never())).outcome == Outcome::stored);
  world.set(removed, "second");
  CHECK(world.run(true));
  CHECK(world.there(removed)->value == "first");
  // An item that the new list's clients had stored before the first run is theirs, whatever its bytes.
  const std::string earlier = world.moving_key(3);
  world.set(earlier, "on");
  CHECK(world.after.execute(Request::set(earlier, "on", Exptime::never())).outcome == Outcome::stored);
  CHECK(world.run(false));
  world.set(earlier, "off");
  CHECK(world.run(true));
  CHECK(world.there(earlier)->value == "on");
}

namespace {

// Ends a run once its copies are stored, before the journal says so.
struct Ending final : Decorator {
  explicit Ending(Cluster& inner) : Decorator(inner) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies = inner().execute(batch);
    if (std::ranges::count(batch, Op::add_and_get, &Request::op) > 0) throw Killed();
    return replies;
  }
};

}  // namespace

// Once, a touch by the old list shortened what a client of the new list had touched for longer, and items of
// an ended run were counted as updated although nothing had changed.
TEST_CASE("move: again extends a copy's lifetime, and shortens only one that the new list left alone") {
  for (const bool ended : {false, true}) {
    CAPTURE(ended);
    MoveWorld world;
    const std::string longer = world.moving_key(1), extended = world.moving_key(2),
                      shortened = world.moving_key(3), forever = world.moving_key(4),
                      same = world.moving_key(5);
    const auto in = [&](std::chrono::seconds ttl) { return Exptime::after(ttl, world.clock.wall()); };
    const auto touch = [](Cluster& cluster, const std::string& key, Exptime exptime) {
      CHECK(cluster.execute(Request::touch(key, exptime)).outcome == Outcome::stored);
    };
    const auto ttl = [&](const std::string& key) {
      return world.after.execute(Request::probe(key, world.after.placement().server_of(key)))
          .age.ttl->count();
    };
    for (const std::string& key : {longer, extended, shortened, forever, same})
      world.set(key, key, 0, in(3600s));
    Ending to(world.after);
    const Context from{world.memory, world.clock, world.random, {}, 1};
    const auto run = [&](Cluster& after, bool again) {
      Move move(from, after, {.journal = world.journal.path, .again = again});
      move.list([&](const TakeLiveKey& take) { return world.read(take); });
      return move.copy({[](const KeptItem&) { FAIL("left"); }, [](std::uint64_t) {}});
    };
    if (ended)
      CHECK_THROWS_AS(run(to, false), Killed);
    else
      run(world.after, false);
    touch(world.memory, longer, in(7200s));
    touch(world.after, longer, in(36000s));
    touch(world.memory, extended, in(7200s));
    touch(world.memory, shortened, in(600s));
    touch(world.memory, forever, in(7200s));
    touch(world.after, forever, Exptime::never());
    std::uint64_t already = 0, updated = 0;
    for (const auto& [servers, pair] : run(world.after, true).pairs)
      already += pair.already, updated += pair.updated;
    CHECK(ttl(longer) == 36000);
    CHECK(std::abs(ttl(extended) - 7200) <= 2);
    CHECK(std::abs(ttl(shortened) - 600) <= 2);
    CHECK(ttl(forever) == -1);
    CHECK(std::abs(ttl(same) - 3600) <= 2);
    CHECK(already == 3);
    CHECK(updated == 2);
  }
}

// A session whose ttl is extended by every read: its copy had expired before the second run, which once
// assumed that clients of the new list had removed it.
TEST_CASE("move: again copies what lives on by touches although its copy has ended") {
  for (const auto passed : {95s, 98s, 99s, 100s, 101s, 1000s}) {
    CAPTURE(passed.count());
    MoveWorld world;
    const std::string key = world.moving_key(1), removed = world.moving_key(2);
    const auto in = [&](std::chrono::seconds ttl) { return Exptime::after(ttl, world.clock.wall()); };
    const auto run = [&](bool again, std::chrono::seconds ttl) {
      const Context context{world.memory, world.clock, world.random, {}, 1};
      Move move(context, world.after, {.journal = world.journal.path, .again = again});
      move.list([&](const TakeLiveKey& take) {
        const auto now = floor<std::chrono::seconds>(world.clock.wall()).time_since_epoch().count();
        for (const std::string& one : {key, removed})
          take({.key = one,
                .server = world.memory.placement().server_of(one),
                .size_bytes = 60,
                .expires_at = now + (one == key ? ttl : 5000s).count()});
        return std::vector<LiveKeysOfServer>(3, {{.complete = true}, nullptr});
      });
      return move.copy({[](const KeptItem&) { FAIL("left"); }, [](std::uint64_t) {}});
    };
    world.set(key, "session", 0, in(100s));
    world.set(removed, "other", 0, in(5000s));
    run(false, 100s);
    CHECK(world.after.execute(Request::remove(removed)).outcome == Outcome::deleted);
    CHECK(world.memory.execute(Request::touch(key, in(3000s))).outcome == Outcome::stored);
    CHECK(world.memory.execute(Request::touch(removed, in(6000s))).outcome == Outcome::stored);
    world.clock.advance(passed);
    std::uint64_t already = 0, gone = 0;
    for (const auto& [servers, pair] : run(true, 3000s - passed).pairs)
      already += pair.already, gone += pair.gone;
    CHECK(already == 0);
    CHECK(gone == 1);
    REQUIRE(world.there(key));
    const Reply reply = world.after.execute(Request::probe(key, world.after.placement().server_of(key)));
    CHECK(std::abs((*reply.age.ttl + passed).count() - 3000) <= 2);
    CHECK_FALSE(world.there(removed));
  }
}

TEST_CASE("move: where each key goes is known by its name") {
  const VirtualTime time;
  MemoryCluster from(time, 3), to(time, 4);
  const moving::Map map(from.placement(), to.placement(), "", 1);
  const auto decision = [&](const std::string& key) { return map.of(key, from.placement().server_of(key)); };
  CHECK(word_of(decision("lock:nightly")) == "lock");
  CHECK(word_of(decision("lock:nightly:fence")) == "lock");
  CHECK(word_of(decision("cache:report:rebuild")) == "lock");
  CHECK(word_of(decision("array:jobs:s:0000000000000000")) == "lock");
  CHECK(decision("app:lock:door").kind == Kind::locklike);
  CHECK(decision("array:jobs").kind == Kind::journal);
  CHECK(decision("array:jobs").pass == 1);
  CHECK(decision("app:array:jobs").kind == Kind::journal);
  CHECK(decision("hash:cfg:v:a:i:3").kind == Kind::plain);
  CHECK(decision("table:t:i:3").pass == 1);
  CHECK(decision("table:t:i").pass == 2);
  CHECK(decision("eventlog:log:60x60:29920568").kind == Kind::log_part);
  CHECK(decision("eventlog:log:60x60:29920568").pass == 1);
  CHECK(decision("eventlog:log:60x60:29920568.1").pass == 0);
  CHECK(decision("eventlog:log:60x60:dir:935017").kind == Kind::directory);
  CHECK(decision("page:1").kind == Kind::plain);
  // A part moves to the same server as its root.
  const std::size_t root = from.placement().server_of("array:jobs");
  const MoveDecision part = map.of("array:jobs:s:00000000000000af", root);
  CHECK(part.what != MoveDecision::What::misplaced);
  if (part.what == MoveDecision::What::moves) CHECK(part.to == to.placement().server_of("array:jobs"));
  CHECK(word_of(map.of("page:1", (from.placement().server_of("page:1") + 1) % 3)) != "moves");
}

TEST_CASE(
    "move: of several copies those go whose servers are no more among the key's, each to one that has none") {
  const VirtualTime time;
  MemoryCluster from(time, 3), to(time, 5);
  const moving::Map map(from.placement(), to.placement(), "", 1);
  for (int i = 0; i < 50; ++i) {
    const std::string key = "hash2:cfg:v:" + std::to_string(i);
    std::set<std::size_t> holders;
    for (const std::size_t server : from.placement().servers_of(key, 2)) {
      const MoveDecision decision = map.of(key, server);
      CHECK((decision.what == MoveDecision::What::moves || decision.what == MoveDecision::What::stays));
      holders.insert(decision.what == MoveDecision::What::moves ? decision.to : server);
    }
    const auto wanted = to.placement().servers_of(key, 2);
    CHECK(holders == std::set<std::size_t>(wanted.begin(), wanted.end()));
  }
}

TEST_CASE("move: a journal knows what is settled, and what ended runs may have stored") {
  TemporaryFile file;
  {
    MoveJournal move_journal(file.path, "move");
    CHECK_FALSE(move_journal.has_history());
    move_journal.add(hash_of("a"), {.digest = 1});
    move_journal.add(hash_of("b"), {.digest = 2});
    move_journal.write();
    move_journal.settle(hash_of("a"), 0, 9);
    move_journal.write();
    CHECK_THROWS_AS(MoveJournal(file.path, "move"), Failure);  // in use
  }
  {
    MoveJournal move_journal(file.path, "move");
    move_journal.add(hash_of("b"), {.digest = 3});
    move_journal.add(hash_of("c"), {.digest = 4});
    move_journal.write();
    move_journal.settle(hash_of("c"), 3, 8);
    move_journal.add(hash_of("d"), {.digest = 5});
    move_journal.write();
    move_journal.decline(hash_of("d"), 4);
    move_journal.write();
  }
  std::ofstream(file.path, std::ios::app) << "half a record";
  MoveJournal move_journal(file.path, "move");
  CHECK(move_journal.has_history());
  move_journal.load(0);
  const Copied* a = move_journal.find(hash_of("a"));
  CHECK(a->settled);
  CHECK((a->may_be(1, 9) && !a->may_be(1, 7) && !a->may_be(2, 9)));
  const Copied* b = move_journal.find(hash_of("b"));
  CHECK_FALSE(b->settled);
  CHECK((b->may_be(2, 7) && b->may_be(3) && !b->may_be(4)));
  CHECK(move_journal.find(hash_of("c"))->settled);
  CHECK((!move_journal.find(hash_of("d"))->settled && !move_journal.find(hash_of("d"))->may_be(5)));
  CHECK(move_journal.find(hash_of("e")) == nullptr);
}

TEST_CASE("move: a journal of another move, and a file that is none, are refused and left alone") {
  TemporaryFile file;
  { const MoveJournal move_journal(file.path, "move"); }
  CHECK_THROWS_AS(MoveJournal(file.path, "another"), Failure);
  std::ofstream(file.path) << "my shopping list";
  CHECK_THROWS_AS(MoveJournal(file.path, "move"), Failure);
  std::ifstream left(file.path);
  CHECK(std::string(std::istreambuf_iterator<char>(left), {}) == "my shopping list");
}

}  // namespace mcds::move_test
