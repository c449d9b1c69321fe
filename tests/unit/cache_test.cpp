#include "common/structures/cache/cache.hpp"

#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "tests/support/world.hpp"

namespace mcds::cache_test {

using namespace std::chrono_literals;

namespace {

using Kind = Cache::Answer::Kind;
using Stored = CacheRebuild::Stored;

struct World : test::World {
  CacheTerms terms{.ttl = 60s, .stale = 600s, .rebuild_ttl = 30s};

  Cache cache() { return Cache(context, "report"); }
  // Returns the cache as another client, without faults.
  Cache theirs() { return Cache(others, "report"); }
  Cache::Answer ask() { return cache().ask(terms); }
  Cache::Answer they_ask() { return theirs().ask(terms); }
  std::string raw(const std::string& key = "cache:report") { return memory.execute(Request::get(key)).value; }
};

CacheRecord printed(std::string out) {
  CacheRecord record;
  record.out = std::move(out);
  record.err = "note\n";
  record.exit_code = 3;
  return record;
}

// Runs a whole rebuild.
Stored build(Cache::Answer answer, const std::string& out) {
  REQUIRE(answer.kind == Kind::rebuild);
  const Stored stored = answer.rebuild->store(printed(out));
  answer.rebuild->end(true);
  return stored;
}

}  // namespace

TEST_CASE("cache: what was stored comes back byte for byte while it is fresh") {
  World world;
  const std::string out("a\0b\r\n\xff", 6);
  CHECK(build(world.ask(), out) == Stored::stored);
  world.clock.advance(59s);
  const auto hit = world.ask();
  REQUIRE(hit.kind == Kind::fresh);
  CHECK(hit.record->out == out);
  CHECK(hit.record->err == "note\n");
  CHECK(hit.record->exit_code == 3);
  world.clock.advance(2s);
  CHECK(world.ask().kind == Kind::rebuild);
}

TEST_CASE("cache: an entry is fresh only while its tags are as they were before it was begun") {
  test::World plain;
  const Context& context = plain.context;
  CacheTerms terms{.ttl = 60s, .stale = 600s, .rebuild_ttl = 30s};
  terms.tags = {"a", "b"};
  const auto ask = [&] { return Cache(context, "report").ask(terms); };
  const auto expire = [&](const char* tag) { return CacheTags(context, {tag}).expire().front(); };
  CHECK(!expire("a").found);
  CHECK(build(ask(), "1") == Stored::stored);
  CHECK(plain.trips.trips_of([&] { CHECK(ask().kind == Kind::fresh); }) == 1);
  terms.tags = {"a"};
  CHECK(plain.trips.trips_of([&] { CHECK(ask().kind == Kind::fresh); }) == 2);
  terms.tags = {};
  CHECK(plain.trips.trips_of([&] { CHECK(ask().kind == Kind::fresh); }) == 2);
  terms.tags = {"a", "c"};
  CHECK(build(ask(), "with c") == Stored::stored);
  terms.tags = {"a", "b"};
  CHECK(build(ask(), "without c") == Stored::stored);
  CHECK(plain.trips.trips_of([&] { CHECK(expire("b").found); }) == 1);
  CHECK(Cache(context, "report").show().expired_tags == std::vector<std::string>{"b"});
  // The tag expires while the entry is built.
  auto late = ask();
  CHECK(expire("a").found);
  CHECK(build(std::move(late), "2") == Stored::stored);
  auto again = ask();
  CHECK(build(std::move(again), "3") == Stored::stored);
  CHECK(ask().record->out == "3");
  // The tag is lost and created again.
  plain.memory.execute(Request::remove("cachetag:a"));
  CHECK(Cache(context, "report").show().expired_tags == std::vector<std::string>{"a"});
  CHECK(build(ask(), "4") == Stored::stored);
  CHECK(ask().kind == Kind::fresh);
}

TEST_CASE("cache: round trips") {
  World world;
  CHECK(world.trips.trips_of([&] {
    auto answer = world.ask();
    CHECK(answer.kind == Kind::rebuild);
    const auto rest = [&](auto&& action) { return world.trips.trips_of(action); };
    CHECK(rest([&] { CHECK(answer.rebuild->store(printed("x")) == Stored::stored); }) == 1);
    CHECK(rest([&] { answer.rebuild->end(true); }) <= 2);
  }) == 3 + 1 + 1);
  // A rebuild that replaces an entry reads it again first.
  world.clock.advance(61s);
  auto second = world.ask();
  CHECK(world.trips.trips_of([&] { CHECK(second.rebuild->store(printed("y")) == Stored::stored); }) == 2);
  second.rebuild->end(true);
  CHECK(world.trips.trips_of([&] { CHECK(world.ask().kind == Kind::fresh); }) == 1);
  CHECK(world.trips.trips_of([&] { world.cache().show(); }) == 1);
  CHECK(world.trips.trips_of([&] { CHECK(world.cache().expire()); }) == 2);
  auto rebuilding = world.ask();
  CHECK(world.trips.trips_of([&] { CHECK(world.ask().kind == Kind::busy); }) == 3);
  world.terms.wait = 1ms;
  CHECK(world.trips.trips_of([&] { CHECK(world.ask().kind == Kind::busy); }) == 3 + 2 + 1);
  rebuilding.rebuild->end(true);
  CHECK(world.trips.trips_of([&] { CHECK(world.cache().remove()); }) == 2);
  CHECK_FALSE(world.cache().remove());
}

TEST_CASE("cache: one rebuilds, the others get the stale value; at first there is none") {
  World world;
  auto first = world.ask();
  CHECK(first.kind == Kind::rebuild);
  CHECK_FALSE(world.they_ask().record.has_value());
  CHECK(build(std::move(first), "one") == Stored::stored);
  world.clock.advance(61s);
  auto second = world.ask();
  CHECK(second.kind == Kind::rebuild);
  const auto busy = world.they_ask();
  CHECK(busy.kind == Kind::busy);
  CHECK(busy.record->out == "one");
  CHECK(busy.holder.find("\"pid\"") != std::string::npos);
  CHECK(build(std::move(second), "two") == Stored::stored);
  CHECK(world.they_ask().record->out == "two");
}

TEST_CASE("cache: who waits gets the new value as soon as it is there, and never waits longer") {
  World world;
  auto rebuilding = world.they_ask();
  world.terms.wait = 3s;
  const SteadyTime start = world.clock.steady();
  CHECK(world.ask().kind == Kind::busy);
  CHECK(world.clock.steady() - start == 3s);
  world.rival.before(world.rival.trips() + 13, [&] { build(std::move(rebuilding), "new"); });
  const auto answer = world.ask();
  CHECK(answer.kind == Kind::fresh);
  CHECK(answer.record->out == "new");
}

TEST_CASE("cache: what was stored by who died before giving the lock back is found at the end of the wait") {
  World world;
  auto rebuilding = world.they_ask();
  world.terms.wait = 3s;
  world.rival.before(world.rival.trips() + 4, [&] { rebuilding.rebuild->store(printed("new")); });
  CHECK(world.ask().kind == Kind::fresh);
}

TEST_CASE("cache: a value built between looking and locking is not built again") {
  World world;
  world.rival.before(1, [&] { build(world.they_ask(), "theirs"); });
  const auto answer = world.ask();
  CHECK(answer.kind == Kind::fresh);
  CHECK(answer.record->out == "theirs");
  CHECK_FALSE(world.cache().show().rebuilding);
}

TEST_CASE("cache: a dead rebuilder is replaced within the rebuild ttl") {
  World world;
  { const auto died = world.ask(); }
  world.clock.advance(29s);
  CHECK(build(world.they_ask(), "next") == Stored::stored);
}

TEST_CASE("cache: an invalidation while it is rebuilt is not undone, whatever stood there before") {
  for (const bool cold : {true, false}) {
    for (const bool expire : {true, false}) {
      CAPTURE(cold);
      CAPTURE(expire);
      World world;
      if (!cold) build(world.ask(), "old");
      world.clock.advance(61s);
      auto rebuilding = world.ask();
      if (expire)
        CHECK(world.theirs().expire() == !cold);
      else
        CHECK(world.theirs().remove() == !cold);
      CHECK(build(std::move(rebuilding), "outdated") == Stored::superseded);
      auto next = world.they_ask();
      CHECK(build(std::move(next), "new") == Stored::stored);
      CHECK(world.ask().record->out == "new");
    }
  }
}

TEST_CASE("cache: expired by hand keeps the stale value, whatever the clocks say") {
  World world;
  build(world.ask(), "old");
  world.clock.set_skew(5s);
  CHECK(world.cache().expire());
  world.clock.set_skew(0s);
  CHECK_FALSE(world.cache().show().record->fresh(world.clock.wall()));
  auto rebuilding = world.ask();
  CHECK(rebuilding.kind == Kind::rebuild);
  CHECK(world.they_ask().record->out == "old");
  CHECK_FALSE(Cache(world.context, "other").expire());
}

TEST_CASE("cache: who lost its lock does not overwrite a newer value") {
  World world;
  build(world.ask(), "old");
  world.clock.advance(61s);
  auto slow = world.ask();
  world.clock.advance(31s);
  CHECK(build(world.they_ask(), "newer") == Stored::stored);
  CHECK(slow.rebuild->store(printed("older")) == Stored::superseded);
  slow.rebuild->end(true);
  CHECK(world.ask().record->out == "newer");
}

TEST_CASE("cache: a rebuild that lasts keeps what it replaces") {
  for (const bool cold : {true, false}) {
    World world;
    world.terms.stale = 5s;
    if (!cold) build(world.ask(), "old");
    if (!cold) world.clock.advance(62s);
    auto rebuilding = world.ask();
    for (int i = 0; i < 10; ++i) {
      world.clock.advance(9s);
      REQUIRE(rebuilding.rebuild->lock().renew(*rebuilding.rebuild->lease(),
                                               rebuilding.rebuild->lease_ttl()) == Lock::Renewal::renewed);
      rebuilding.rebuild->keep();
    }
    CHECK_FALSE(world.they_ask().record.has_value());
    CHECK(build(std::move(rebuilding), "new") == Stored::stored);
  }
}

TEST_CASE("cache: after a failure the lock stays a second") {
  World world;
  world.ask().rebuild->end(false);
  CHECK(world.they_ask().kind == Kind::busy);
  world.clock.advance(4s);
  CHECK(world.they_ask().kind == Kind::rebuild);
}

TEST_CASE("cache: a refresh rebuilds what is fresh and is given no old value to replay") {
  World world;
  build(world.ask(), "one");
  world.terms.refresh = true;
  CHECK(build(world.ask(), "two") == Stored::stored);
  world.terms.refresh = false;
  CHECK(world.ask().record->out == "two");
}

TEST_CASE("cache: lost replies at every trip of a rebuild") {
  for (const Op op : {Op::add, Op::cas, Op::remove_if}) {
    for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
      for (const std::size_t skip : {0, 1}) {
        World world;
        world.faults.once(op, mishap, skip);
        CHECK(build(world.ask(), "x") == Stored::stored);
        world.faults.none();
        CHECK(world.ask().record->out == "x");
      }
    }
  }
}

TEST_CASE("cache: a lost request of a removal is sent again") {
  World world;
  build(world.ask(), "x");
  world.faults.once(Op::remove, test::Mishap::lost_request);
  CHECK(world.cache().remove());
  CHECK(world.raw().empty());
}

TEST_CASE("cache: without the lock's server it rebuilds all the same, without the entry's it fails") {
  World world;
  const auto fail = [&](const char* key) {
    world.faults.choose([=](const Request& request) {
      return request.key == key ? std::optional(test::Mishap::unreachable) : std::nullopt;
    });
  };
  fail("cache:report:rebuild");
  CHECK(build(world.ask(), "x") == Stored::stored);
  fail("cache:report");
  CHECK_THROWS_AS(world.ask(), NotApplied);
}

TEST_CASE("cache: while it waits, failures are waited out") {
  World world;
  build(world.ask(), "old");
  world.clock.advance(61s);
  auto rebuilding = world.they_ask();
  world.terms.wait = 2s;
  world.rival.before(world.rival.trips() + 3, [&] {
    world.faults.choose([](const Request&) { return std::optional(test::Mishap::unreachable); });
  });
  const auto answer = world.ask();
  CHECK(answer.kind == Kind::busy);
  CHECK(answer.record->out == "old");
}

TEST_CASE("cache: a lock whose server fails while it is waited for is waited out, then done without") {
  for (const bool stale : {true, false}) {
    World world;
    if (stale) build(world.ask(), "old");
    world.clock.advance(61s);
    auto rebuilding = world.they_ask();
    world.terms.wait = 2s;
    world.rival.before(world.rival.trips() + 3, [&] {
      world.faults.choose([](const Request& request) {
        return request.key.ends_with(":rebuild") ? std::optional(test::Mishap::unreachable) : std::nullopt;
      });
    });
    const SteadyTime start = world.clock.steady();
    CHECK(world.ask().kind == (stale ? Kind::busy : Kind::rebuild));
    CHECK(world.clock.steady() - start == 2s);
  }
}

TEST_CASE("cache: a damaged record is a miss and is replaced; foreign data is left alone") {
  World world;
  world.memory.execute(Request::set("cache:report", "K1 0123456789abcdef 1 2", Exptime::never()));
  CHECK_THROWS_AS(world.cache().show(), CorruptData);
  CHECK(build(world.ask(), "x") == Stored::stored);
  world.memory.execute(Request::set("cache:report", "their own", Exptime::never()));
  CHECK_THROWS_AS(world.ask(), CorruptData);
  CHECK_THROWS_AS(world.cache().expire(), CorruptData);
  CHECK(world.raw("cache:report:rebuild").empty());
  CHECK(world.raw() == "their own");
}

TEST_CASE("cache: a placeholder is removed, but is no entry; a failed rebuild goes on no longer") {
  World world;
  auto answer = world.ask();
  CHECK(world.cache().show().rebuilding);
  CHECK_FALSE(world.theirs().remove());
  CHECK(world.raw().empty());
  CHECK(answer.rebuild->store(printed("old")) == Stored::superseded);
  answer.rebuild->end(false);
  const Cache::Shown shown = world.cache().show();
  CHECK_FALSE(shown.rebuilding);
  CHECK(shown.holder.find("finished_at") != std::string::npos);
}

TEST_CASE("cache: what does not fit is not sent") {
  World world;
  auto answer = world.ask();
  const std::size_t trips = world.trips.trips();
  CacheRecord large;
  large.out.assign(max_cached_size, 'x');
  large.err = "y";
  CHECK(answer.rebuild->store(large) == Stored::too_large);
  CHECK(world.trips.trips() == trips);
  large.err.clear();
  CHECK(answer.rebuild->store(large) == Stored::stored);
}

TEST_CASE("cache: names and terms that cannot be kept are refused before anything is sent") {
  World world;
  for (const char* name : {"", "a b", "x:rebuild"}) CHECK_THROWS_AS(Cache(world.context, name), InvalidInput);
  world.terms.rebuild_ttl = 2s;
  CHECK_THROWS_AS(world.ask(), InvalidInput);
  world.terms.rebuild_ttl = 30s;
  world.terms.ttl = 0s;
  CHECK_THROWS_AS(world.ask(), InvalidInput);
  CHECK(world.trips.trips() == 0);
}

}  // namespace mcds::cache_test
