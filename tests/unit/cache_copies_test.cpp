#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "common/structures/cache/cache.hpp"
#include "tests/support/world.hpp"

namespace mcds::cache_copies_test {

using namespace std::chrono_literals;

namespace {

using Kind = Cache::Answer::Kind;
using Stored = CacheRebuild::Stored;

const std::string key = "cache:report";
const std::string lock_key = "cache:report:rebuild";

struct World : test::World {
  World() : test::World(3, 2) {}

  CacheTerms terms{.ttl = 60s, .stale = 600s, .rebuild_ttl = 30s};

  Cache cache() { return Cache(context, "report"); }
  // As another client, whom no fault meets.
  Cache theirs() { return Cache(others, "report"); }
  Cache::Answer ask() { return cache().ask(terms); }
  Cache::Answer they_ask() { return theirs().ask(terms); }
  // The server of a copy of the entry, or of its lock.
  std::size_t server(std::size_t copy, const std::string& of = key) {
    return copy_servers(others, of).at(copy);
  }
  std::size_t lock_server(std::size_t copy) { return server(copy, lock_key); }
  // From our client only: others reach it.
  void cut_off(std::size_t server) {
    faults.choose([this, server](const Request& request) {
      return trips.server_of(request) == server ? std::optional(test::Mishap::unreachable) : std::nullopt;
    });
  }
};

Stored store(Cache::Answer& answer, const std::string& out) {
  REQUIRE(answer.kind == Kind::rebuild);
  CacheRecord record;
  record.out = out;
  return answer.rebuild->store(record);
}

Stored build(Cache::Answer answer, const std::string& out) {
  const Stored stored = store(answer, out);
  answer.rebuild->end(true);
  return stored;
}

std::vector<bool> yes_of(const std::vector<CopyOutcome>& copies) {
  std::vector<bool> all;
  for (const CopyOutcome& copy : copies) all.push_back(copy.yes.value_or(false));
  return all;
}

using Yes = std::vector<bool>;

}  // namespace

TEST_CASE("cache, copies: round trips are those of one copy") {
  World world;
  const auto trips = [&](auto&& action) { return world.trips.trips_of(action); };
  std::optional<Cache::Answer> answer;
  CHECK(trips([&] { answer.emplace(world.ask()); }) == 3);
  CHECK(trips([&] { CHECK(store(*answer, "x") == Stored::stored); }) == 2);
  CHECK(yes_of(answer->rebuild->copies()) == Yes{true, true});
  CHECK(trips([&] { answer->rebuild->end(true); }) <= 2);
  CHECK(trips([&] { CHECK(world.ask().kind == Kind::fresh); }) == 1);
  CHECK(trips([&] { CHECK(world.cache().show().record.has_value()); }) == 1);
  CHECK(trips([&] { CHECK(world.cache().expire().found); }) == 2);
  auto rebuilding = world.ask();
  CHECK(trips([&] { CHECK(world.ask().kind == Kind::busy); }) == 3);
  world.terms.wait = 1ms;
  CHECK(trips([&] { CHECK(world.ask().kind == Kind::busy); }) == 3 + 2 + 1);
  rebuilding.rebuild->end(true);
  CHECK(trips([&] { CHECK(world.cache().remove().found); }) == 2);
}

TEST_CASE("cache, copies: a hit as long as one of them lives, and the next rebuild makes it two again") {
  for (const std::size_t lost : {0, 1}) {
    World world;
    build(world.ask(), "one");
    world.memory.restart(world.server(lost));
    const auto hit = world.ask();
    CHECK(hit.kind == Kind::fresh);
    CHECK(yes_of(hit.copies) == Yes{lost != 0, lost != 1});
    world.clock.advance(61s);
    build(world.ask(), "two");
    world.memory.restart(world.server(1 - lost));
    CHECK(world.ask().record->out == "two");
  }
}

TEST_CASE(
    "cache, copies: a server lost or dead before any trip of a rebuild: it is stored, the next call a hit") {
  for (const bool dies : {true, false}) {
    for (const bool cold : {true, false}) {
      for (std::size_t victim = 0; victim < 3; ++victim) {
        for (std::size_t trip = 0; trip < 7; ++trip) {
          CAPTURE(dies);
          CAPTURE(cold);
          CAPTURE(victim);
          CAPTURE(trip);
          World world;
          if (!cold) build(world.they_ask(), "old");
          world.clock.advance(61s);
          world.rival.before(trip, [&] { dies ? world.memory.kill(victim) : world.memory.restart(victim); });
          auto answer = world.ask();
          CHECK(store(answer, "new") == Stored::stored);
          try {
            answer.rebuild->end(true);
          } catch (const Failure&) {
            world.clock.advance(30s);  // its lock ends by itself
          }
          const auto next = world.they_ask();
          CHECK(next.kind == Kind::fresh);
          CHECK(next.record->out == "new");
        }
      }
    }
  }
}

TEST_CASE(
    "cache, copies: a server lost or dead before any trip of an invalidation does not bring the output "
    "back") {
  for (const bool dies : {true, false}) {
    for (const bool expire : {true, false}) {
      for (std::size_t victim = 0; victim < 3; ++victim) {
        for (std::size_t trip = 0; trip < 2; ++trip) {
          World world;
          build(world.they_ask(), "old");
          auto rebuilding =
              world.theirs().ask({.ttl = 60s, .stale = 600s, .rebuild_ttl = 30s, .refresh = true});
          world.rival.before(trip, [&] { dies ? world.memory.kill(victim) : world.memory.restart(victim); });
          const auto done = expire ? world.cache().expire() : world.cache().remove();
          if (done.failure) CHECK(dies);
          CHECK(store(rebuilding, "outdated") == Stored::superseded);
          if (dies) world.memory.restart(victim);
          CHECK(world.they_ask().kind != Kind::fresh);
        }
      }
    }
  }
}

TEST_CASE("cache, copies: with its first server dead the lock is on the next one") {
  World world;
  build(world.they_ask(), "old");
  world.clock.advance(61s);
  world.memory.kill(world.lock_server(0));
  auto rebuilding = world.ask();
  REQUIRE(rebuilding.rebuild);
  CHECK(rebuilding.rebuild->lease()->copies.front().server == world.lock_server(1));
  CHECK(world.they_ask().kind == Kind::busy);
  CHECK(world.they_ask().holder.find("\"pid\"") != std::string::npos);
  CHECK(world.theirs().show().rebuilding);
  // Back and empty: who asks there finds the rebuilder all the same, and leaves nothing behind.
  world.memory.restart(world.lock_server(0));
  CHECK(world.they_ask().kind == Kind::busy);
  CHECK_FALSE(world.memory.server(world.lock_server(0)).peek(lock_key).has_value());
  CHECK(rebuilding.rebuild->lock().renew(*rebuilding.rebuild->lease(), rebuilding.rebuild->lease_ttl()) ==
        Lock::Renewal::renewed);
  CHECK(build(std::move(rebuilding), "new") == Stored::stored);
  CHECK(world.they_ask().record->out == "new");
  world.clock.advance(61s);
  CHECK(build(world.they_ask(), "newer") == Stored::stored);
}

TEST_CASE("cache, copies: a lost lock lets in one rebuilder more; the first to store wins") {
  World world;
  build(world.ask(), "old");
  world.clock.advance(61s);
  auto first = world.ask();
  world.memory.kill(world.lock_server(0));
  auto second = world.they_ask();
  CHECK(second.kind == Kind::rebuild);
  CHECK(world.they_ask().kind == Kind::busy);
  CHECK(store(first, "first") == Stored::stored);
  CHECK(store(second, "second") == Stored::superseded);
  CHECK(world.they_ask().record->out == "first");
}

TEST_CASE("cache, copies: the lock's servers all gone, it rebuilds unlocked") {
  World world;
  world.faults.choose([](const Request& request) {
    return request.key == lock_key ? std::optional(test::Mishap::unreachable) : std::nullopt;
  });
  auto answer = world.ask();
  REQUIRE(answer.rebuild);
  CHECK_FALSE(answer.rebuild->lease().has_value());
  CHECK(build(std::move(answer), "x") == Stored::stored);
}

TEST_CASE("cache, copies: no server of the entry answers: thrown") {
  World world;
  world.faults.choose([](const Request& request) {
    return request.key == key ? std::optional(test::Mishap::unreachable) : std::nullopt;
  });
  for (const auto& call : std::initializer_list<std::function<void()>>{
           [&] { world.ask(); }, [&] { world.cache().show(); }, [&] { world.cache().expire(); },
           [&] { world.cache().remove(); }}) {
    CHECK_THROWS_AS(call(), Failure);
  }
}

TEST_CASE("cache, copies: what one copy missed is older than what the other has") {
  for (const std::size_t cut : {0, 1}) {
    World world;
    build(world.they_ask(), "old");
    world.terms.refresh = true;
    world.cut_off(world.server(cut));
    auto answer = world.ask();
    const std::size_t failures = world.faults.injected();
    CHECK(store(answer, "new") == Stored::stored);
    CHECK(world.faults.injected() == failures);  // what was not claimed is not asked again
    CHECK(yes_of(answer.rebuild->copies()) == Yes{cut != 0, cut != 1});
    CHECK(answer.rebuild->copies().at(cut).failure.has_value());
    answer.rebuild->end(true);
    world.terms.refresh = false;
    CHECK(world.they_ask().record->out == "new");
    CHECK(world.theirs().show().record->out == "new");
    world.clock.advance(61s);
    build(world.they_ask(), "newest");
    world.memory.restart(world.server(1 - cut));
    CHECK(world.they_ask().record->out == "newest");
  }
}

TEST_CASE("cache, copies: a slow clock's output is newer than what it replaces") {
  World world;
  world.clock.set_skew(10s);
  build(world.ask(), "old");
  world.clock.set_skew(-10s);
  world.terms.refresh = true;
  world.cut_off(world.server(0));
  build(world.ask(), "new");
  world.terms.refresh = false;
  CHECK(world.they_ask().record->out == "new");
}

TEST_CASE("cache, copies: who began earlier is older, however late it stores") {
  World world;
  world.memory.kill(world.lock_server(0));
  auto slow = world.they_ask();
  REQUIRE(slow.rebuild);
  world.clock.advance(31s);
  world.memory.restart(world.lock_server(0));
  world.cut_off(world.server(0));
  build(world.ask(), "newer");
  world.clock.advance(5s);
  store(slow, "older");
  CHECK(world.they_ask().record->out == "newer");
}

TEST_CASE("cache, copies: an invalidation that missed a copy names it, and counts where word of it is seen") {
  for (const std::size_t cut : {0, 1}) {
    World world;
    build(world.they_ask(), "old");
    auto refreshing = world.theirs().ask({.ttl = 60s, .stale = 600s, .rebuild_ttl = 30s, .refresh = true});
    world.clock.advance(1s);
    world.cut_off(world.server(cut));
    const auto expired = world.cache().expire();
    CHECK(expired.found);
    CHECK_FALSE(expired.failure);
    CHECK(expired.copies.at(cut).failure.has_value());
    CHECK(yes_of(expired.copies) == Yes{cut != 0, cut != 1});
    // What was begun before it is stored where it was missed, and is older than the mark.
    build(std::move(refreshing), "outdated");
    auto next = world.they_ask();
    CHECK(next.kind == Kind::rebuild);
    CHECK(build(std::move(next), "new") == Stored::stored);
    const auto removed = world.cache().remove();
    CHECK(removed.found);
    CHECK_FALSE(removed.failure);
    CHECK(removed.copies.at(cut).failure.has_value());
    // The copy that was missed has fresh output all the while.
    CHECK_FALSE(world.theirs().show().record);
    auto again = world.they_ask();
    CHECK(again.kind == Kind::rebuild);
    CHECK(build(std::move(again), "newest") == Stored::stored);
    CHECK(world.they_ask().record->out == "newest");
    CHECK_FALSE(world.cache().remove().failure);
    world.clock.advance(5min);
    CHECK(world.theirs().remove().found);
    CHECK(world.they_ask().kind == Kind::rebuild);
  }
}

TEST_CASE("cache, copies: of three, an invalidation that reaches one is refused, and changes nothing") {
  test::World world(5, 3);
  const CacheTerms terms{.ttl = 60s, .stale = 600s, .rebuild_ttl = 30s};
  const auto servers = copy_servers(world.others, key);
  const auto cut_off = [&](std::size_t copies) {
    world.faults.choose([&world, servers, copies](const Request& request) -> std::optional<test::Mishap> {
      for (std::size_t i = 0; i < copies; ++i) {
        if (world.trips.server_of(request) == servers[i]) return test::Mishap::unreachable;
      }
      return std::nullopt;
    });
  };
  for (const bool removes : {false, true}) {
    for (const std::size_t missed : {0U, 1U, 2U}) {
      CAPTURE(missed);
      world.faults.none();
      build(Cache(world.context, "report")
                .ask({.ttl = 60s, .stale = 600s, .rebuild_ttl = 30s, .refresh = true}),
            "old");
      cut_off(missed);
      Cache cache(world.context, "report");
      const auto done = attempt([&] { return removes ? cache.remove() : cache.expire(); });
      world.faults.none();
      if (missed == 2) {
        REQUIRE(done.failure().has_value());
        CHECK(done.failure()->code() == ErrorCode::unavailable);
        // Nothing was written.
        CHECK(Cache(world.others, "report").ask(terms).kind == Cache::Answer::Kind::fresh);
        Cache(world.others, "report").remove();
        continue;
      }
      CHECK_FALSE(done.value().failure);
      // A later reader of most of them sees it.
      auto later = Cache(world.others, "report").ask(terms);
      CHECK(later.kind == Kind::rebuild);
      if (later.rebuild) later.rebuild->end(true);
      Cache(world.others, "report").remove();
    }
  }
}

TEST_CASE("cache, copies: another program's value in one of them stays, whatever is invalidated") {
  for (const std::size_t taken : {0, 1}) {
    for (const bool removes : {false, true}) {
      World world;
      build(world.ask(), "x");
      const auto at_copy = [&](Request request) {
        return world.others.cluster.execute(std::move(request).on(world.server(taken)));
      };
      at_copy(Request::set(key, "theirs", Exptime::never()));
      Cache cache = world.cache();
      const auto done = removes ? cache.remove() : cache.expire();
      CHECK(done.found);
      CHECK(done.copies.at(taken).failure->code() == ErrorCode::bad_data);
      CHECK(at_copy(Request::get(key)).value == "theirs");
    }
  }
}

TEST_CASE("cache, copies: readers write nothing, so a removal stays one") {
  World world;
  build(world.ask(), "x");
  world.memory.restart(world.server(0));
  world.rival.before(world.rival.trips() + 1, [&] { world.theirs().remove(); });
  CHECK(world.trips.trips_of([&] { CHECK(world.ask().kind == Kind::fresh); }) == 1);
  CHECK_FALSE(world.memory.server(world.server(0)).peek(key).has_value());
}

TEST_CASE("cache, copies: another program's value in one copy leaves the other to us") {
  World world;
  world.memory.execute(Request::set(key, "their own", Exptime::never()).on(world.server(0)));
  auto answer = world.ask();
  CHECK(store(answer, "x") == Stored::stored);
  CHECK(answer.rebuild->copies().front().failure->code() == ErrorCode::bad_data);
  answer.rebuild->end(true);
  CHECK(world.ask().record->out == "x");
  CHECK(world.memory.server(world.server(0)).peek(key)->value == "their own");
}

TEST_CASE("cache, copies: lost replies at every trip of a rebuild") {
  for (const Op op : {Op::add, Op::cas, Op::remove_if}) {
    for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
      for (const std::size_t skip : {0, 1, 2}) {
        World world;
        world.faults.once(op, mishap, skip);
        CHECK(build(world.ask(), "x") == Stored::stored);
        world.faults.none();
        CHECK(world.ask().record->out == "x");
        for (const std::size_t copy : {0, 1})
          CHECK(world.memory.server(world.server(copy)).peek(key).has_value());
      }
    }
  }
}

TEST_CASE("cache, copies: show tells which copy gave no answer") {
  World world;
  world.cut_off(world.server(1));
  CHECK_FALSE(world.cache().show().record);
  CHECK(world.cache().show().copies.at(1).failure.has_value());
  build(world.they_ask(), "x");
  CHECK(world.cache().show().record.has_value());
  CHECK(world.cache().show().copies.at(1).failure.has_value());
}

TEST_CASE("cache, copies: word of a removal that is executed late is not the word that somebody claimed") {
  World world;
  build(world.they_ask(), "x");
  std::vector<std::string> words;
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (world.trips.server_of(request) == world.server(1)) return test::Mishap::unreachable;
    if (request.op != Op::cas || request.key != key) return std::nullopt;
    words.push_back(request.value);
    return words.size() == 1 ? std::optional(test::Mishap::lost_request) : std::nullopt;
  });
  CHECK(world.cache().remove().found);
  REQUIRE(words.size() == 3);  // lost, said, and again because the other copy missed it
  CHECK(words[0] != words[1]);
  CHECK(words[1] != words[2]);
  CHECK(world.stored_on(world.server(0), key) == words[2]);
}

TEST_CASE("cache, copies: more of them than servers are refused") {
  World world;
  world.context.copies = 4;
  CHECK_THROWS_AS(world.cache(), InvalidInput);
}

TEST_CASE("cache copies: another program's value under a tag's key is not expired, but refused") {
  World world;
  const std::string tag = "cachetag:F";
  for (std::size_t copy = 0; copy < 2; ++copy) {
    Request foreign = Request::set(tag, "hello", Exptime::never());
    foreign.flags = 7;
    world.memory.execute(std::move(foreign).on(world.server(copy, tag)));
  }
  const auto expired = CacheTags(world.context, {"F"}).expire();
  REQUIRE(expired.front().failure);
  CHECK(expired.front().failure->code() == ErrorCode::bad_data);
  for (std::size_t copy = 0; copy < 2; ++copy)
    CHECK(world.stored_on(world.server(copy, tag), tag) == "hello");
}

}  // namespace mcds::cache_copies_test
