// Event logs that are put into another number of copies, while clients use them, and while who does it dies.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/world.hpp"

namespace mcds::eventlog_recopy_test {

namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;
using Numbers = std::pair<std::size_t, std::size_t>;

// What no code that is tested catches.
struct Died {};

const RingShape shape{10, 6};
const std::vector<Numbers> changes{{1, 2}, {2, 3}, {3, 1}, {2, 1}};

struct LogWorld : test::World {
  explicit LogWorld(std::size_t item_size = std::size_t{1} << 20) : World(5, 1, {.item_size = item_size}) {}

  Context dying_in(std::size_t copies) { return {dying, clock, random, {}, copies}; }
  Context other(std::size_t copies) { return {memory, clock, random, {}, copies}; }
  EventLog log(std::size_t copies, RingShape in = shape) { return {other(copies), "x", in}; }

  // Who was taken for dead meanwhile may be told to try again.
  void recopy_once(std::size_t to) {
    const auto done = attempt([&] { EventLog(dying_in(to), "x", shape).recopy(); });
    if (done.failure()) CHECK(done.failure()->code() == ErrorCode::try_again);
  }

  // Whether it was acknowledged; otherwise it was refused with another number.
  bool put(std::size_t copies, const std::string& text) {
    try {
      log(copies).put(text, EventData::text);
    } catch (const Failure& failure) {
      CAPTURE(failure.what());
      CHECK(failure.code() == ErrorCode::bad_data);
      return false;
    }
    acknowledged.push_back(text);
    return true;
  }

  Texts fetched(std::size_t copies) {
    CollectingSink sink;
    log(copies).fetch({}, sink);
    CHECK(sink.gaps.empty());
    CHECK(sink.damages.empty());
    return sink.texts();
  }

  void deliver(std::size_t copies) {
    CollectingSink sink;
    log(copies).deliver(cursor, sink);
    cursor = CursorState::parse(cursor.text(), "cursor");
    CHECK(sink.gaps.empty());
    for (const std::string& text : sink.texts()) delivered.push_back(text);
  }

  // Everything acknowledged is there, and was delivered, once.
  void check_whole(std::size_t copies) {
    Texts wanted = acknowledged;
    std::sort(wanted.begin(), wanted.end());
    Texts there = fetched(copies);
    std::sort(there.begin(), there.end());
    CHECK(there == wanted);
    deliver(copies);
    Texts all = delivered;
    std::sort(all.begin(), all.end());
    CHECK(all == wanted);
  }

  test::Rival dying{memory};
  Texts acknowledged;
  CursorState cursor;
  Texts delivered;
};

bool refused(const std::function<void()>& act, std::size_t kept) {
  try {
    act();
  } catch (const Failure& failure) {
    CAPTURE(failure.what());
    CHECK(failure.code() == ErrorCode::bad_data);
    CHECK(std::string(failure.what()).find("is kept in " + std::to_string(kept)) != std::string::npos);
    return true;
  }
  return false;
}

void check_refused(LogWorld& world, std::size_t copies, std::size_t kept) {
  CHECK(refused([&] { world.log(copies).put("refused", EventData::text); }, kept));
  CHECK(refused([&] { world.fetched(copies); }, kept));
  CHECK(refused(
      [&] {
        CursorState state = world.cursor;
        CollectingSink sink;
        world.log(copies).poll(state, sink);
      },
      kept));
}

std::string text_of(int number) {
  return std::to_string(1000 + number) + std::string(60, '.');
}

void evict_everywhere(LogWorld& world, const std::string& key) {
  for (std::size_t server = 0; server < world.memory.size(); ++server) world.memory.server(server).evict(key);
}

}  // namespace

TEST_CASE("recopy: an event log is whole under every number, refused under all others, and cursors go on") {
  for (const std::size_t item_size : {std::size_t{1} << 20, std::size_t{700}}) {
    for (const auto pause : {0s, 4s, 11s}) {
      CAPTURE(item_size);
      CAPTURE(pause.count());
      LogWorld world(item_size);
      std::size_t before = 1;
      int number = 0;
      const auto put_some = [&](std::size_t copies) {
        for (int i = 0; i < 4; ++i) CHECK(world.put(copies, text_of(number++)));
      };
      put_some(1);
      world.deliver(1);
      put_some(1);
      for (const std::size_t copies : {2U, 3U, 1U, 3U, 2U, 1U}) {
        CAPTURE(copies);
        const auto recopied = EventLog(world.other(copies), "x", shape).recopy();
        CHECK(recopied.found);
        CHECK(recopied.from == before);
        for (std::size_t other = 1; other <= 4; ++other) {
          if (other != copies) check_refused(world, other, copies);
        }
        if (number % 3 != 0) world.deliver(copies);
        put_some(copies);
        if (pause == 0s) world.check_whole(copies);
        world.deliver(copies);
        put_some(copies);
        CHECK(EventLog(world.other(copies), "x", shape).recopy().from == copies);
        before = copies;
        world.clock.advance(pause);
      }
      if (pause < 11s) world.check_whole(1);
    }
  }
}

TEST_CASE(
    "recopy: an event log's mover dies before any of its trips, and clients go on with all that was there") {
  for (const auto& [from, to] : changes) {
    for (const bool old_first : {true, false}) {
      bool done = false;
      for (std::size_t trip = 0; !done; ++trip) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(old_first);
        CAPTURE(trip);
        LogWorld world(trip % 2 == 0 ? 700 : std::size_t{1} << 20);
        for (int i = 0; i < 12; ++i) world.put(from, text_of(i));
        world.deliver(from);
        world.put(from, text_of(12));
        world.dying.before(trip, [] { throw Died(); });
        try {
          EventLog(world.dying_in(to), "x", shape).recopy();
          done = true;
        } catch (const Died&) {
        }
        std::set<std::size_t> there;
        for (int round = 0; round < 3; ++round) {
          // No number is refused for ever, and never two go on beside each other.
          if (old_first && world.put(from, text_of(20 + round))) there.insert(from);
          if (world.put(to, text_of(30 + round))) there.insert(to);
          if (!old_first && world.put(from, text_of(20 + round))) there.insert(from);
          world.clock.advance(7s);
        }
        if (done) CHECK(there.contains(to));
        // Before the recopy is repeated: who gives the number that is right finds everything.
        for (const std::size_t copies : {from, to}) {
          try {
            const Texts texts = world.fetched(copies);
            CHECK(std::set(texts.begin(), texts.end()) ==
                  std::set(world.acknowledged.begin(), world.acknowledged.end()));
          } catch (const Failure& failure) {
            CHECK(failure.code() == ErrorCode::bad_data);
          }
        }
        EventLog(world.other(to), "x", shape).recopy();
        world.put(to, text_of(40));
        world.check_whole(to);
        check_refused(world, from, to);
      }
    }
  }
}

TEST_CASE(
    "recopy: what clients put between any two trips of a log's mover is fetched once, and delivered once") {
  for (const auto& [from, to] : changes) {
    for (const std::size_t item_size : {std::size_t{1} << 20, std::size_t{700}}) {
      std::size_t trips = 1;
      for (std::size_t trip = 0; trip < trips; ++trip) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(item_size);
        CAPTURE(trip);
        LogWorld world(item_size);
        EventLog held = world.log(from);
        held.put("held", EventData::text);
        world.acknowledged.push_back("held");
        for (int i = 0; i < 5; ++i) world.put(from, text_of(i));
        world.dying.before(trip, [&, from = from, to = to] {
          world.put(from, text_of(20));
          try {
            world.deliver(from);
          } catch (const Failure& failure) {
            CHECK(failure.code() == ErrorCode::bad_data);
          }
          world.put(to, text_of(30));
          // A shape that nobody has heard of.
          try {
            world.log(from, {7, 9}).put("shaped", EventData::text);
            world.acknowledged.push_back("shaped");
          } catch (const Failure& failure) {
            CHECK(failure.code() == ErrorCode::bad_data);
          }
        });
        world.recopy_once(to);
        trips = world.dying.trips();
        CHECK(refused([&] { held.put("refused", EventData::text); }, to));
        CollectingSink shaped;
        world.log(to, {7, 9}).fetch({}, shaped);
        const auto put = std::find(world.acknowledged.begin(), world.acknowledged.end(), "shaped");
        CHECK(shaped.texts() == Texts(put == world.acknowledged.end() ? 0 : 1, "shaped"));
        std::erase(world.acknowledged, "shaped");
        world.check_whole(to);
      }
    }
  }
}

TEST_CASE(
    "recopy: a change of a log that an older version left after its first step, without a mark, is "
    "completed") {
  enum class Next { put, fetch, recopy, recopy_on, drop };
  for (const auto& [from, to] : changes) {
    for (const Next next : {Next::put, Next::fetch, Next::recopy, Next::recopy_on, Next::drop}) {
      CAPTURE(from);
      CAPTURE(to);
      CAPTURE(static_cast<int>(next));
      LogWorld world;
      for (int i = 0; i < 5; ++i) world.put(from, text_of(i));
      world.deliver(from);
      world.put(from, text_of(5));
      const WallTime until = shape.expiry_of(shape.chunk_of(world.clock.wall()) + 2);
      const std::vector<InUse> left{{shape.text(), until}, {LogMove{1, to, {from}}.text(), until}};
      add_to_conf(Replicas(world.other(from)).at(0), world.log(from).keys().conf(), left);
      CHECK(refused([&] { world.fetched(from); }, to));
      std::size_t there = to;
      if (next == Next::put) CHECK(world.put(to, text_of(6)));
      if (next == Next::recopy) CHECK(EventLog(world.other(to), "x", shape).recopy().found);
      if (next == Next::recopy_on) CHECK(EventLog(world.other(there = 4), "x", shape).recopy().from == to);
      if (next == Next::drop) {
        CHECK(EventLog(world.other(to), "x", shape).drop());
        for (const std::string& key : test::left_in(world.memory)) CHECK(key == "eventlog0:x");
        continue;
      }
      world.check_whole(there);
      check_refused(world, 5, there);
      world.clock.advance(11s);
      CHECK(world.put(there, text_of(7)));
      world.check_whole(there);
      check_refused(world, from, there);
    }
  }
}

TEST_CASE("recopy: who dies with the mark of a log that had left before does not take it out of its place") {
  LogWorld world;
  world.put(1, "a");
  Recopying late(world.other(2), "eventlog", "x");
  CHECK(EventLog(world.other(3), "x", shape).recopy().found);
  late.begin({1}, 2);
  CHECK(world.put(3, "b"));
  CHECK(refused([&] { world.fetched(2); }, 3));
  check_refused(world, 1, 3);
  world.clock.advance(11s);
  CHECK(world.put(3, "c"));
  CHECK(EventLog(world.other(3), "x", shape).recopy().from == 3);
  world.check_whole(3);
}

TEST_CASE("recopy: two movers of one log, whenever the other comes: one number remains, and all events") {
  for (const auto& [from, to] : changes) {
    for (std::size_t other = 1; other <= 3; ++other) {
      std::size_t trips = 1;
      for (std::size_t trip = 0; trip < trips; ++trip) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(other);
        CAPTURE(trip);
        LogWorld world;
        for (int i = 0; i < 5; ++i) world.put(from, text_of(i));
        world.deliver(from);
        world.dying.before(trip, [&, other] {
          EventLog(world.other(other), "x", shape).recopy();
          world.put(other, text_of(20));
        });
        world.recopy_once(to);
        trips = world.dying.trips();
        std::vector<std::size_t> going_on;
        for (std::size_t copies = 1; copies <= 3; ++copies) {
          if (world.put(copies, text_of(30 + static_cast<int>(copies)))) going_on.push_back(copies);
        }
        REQUIRE(going_on.size() == 1);
        world.check_whole(going_on.front());
      }
    }
  }
}

TEST_CASE(
    "recopy: a log's conf keys are evicted, one or the other, and nobody goes on under the old number") {
  for (const auto& [from, to] : changes) {
    for (const bool old_one : {true, false}) {
      CAPTURE(from);
      CAPTURE(to);
      CAPTURE(old_one);
      LogWorld world;
      for (int i = 0; i < 5; ++i) world.put(from, text_of(i));
      EventLog(world.other(to), "x", shape).recopy();
      world.deliver(to);
      world.put(to, text_of(10));
      evict_everywhere(world, world.log(old_one ? from : to).keys().conf());
      world.clock.advance(11s);
      check_refused(world, from, to);
      CHECK(world.put(to, text_of(11)));
      world.check_whole(to);
    }
  }
}

TEST_CASE("recopy: a server with a copy of a log's conf keys does not answer: nothing is changed") {
  for (const auto& [from, to] : changes) {
    for (std::size_t down = 0; down < 5; ++down) {
      CAPTURE(from);
      CAPTURE(to);
      CAPTURE(down);
      LogWorld world;
      for (int i = 0; i < 5; ++i) world.put(from, text_of(i));
      std::set<std::size_t> needed;
      for (const std::size_t number : {from, to}) {
        for (const std::size_t server : copy_servers(world.other(number), world.log(number).keys().conf()))
          needed.insert(server);
      }
      world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
        const auto server = request.server.value_or(world.memory.placement().server_of(request.placed_by()));
        return server == down ? std::optional(test::Mishap::unreachable) : std::nullopt;
      });
      if (needed.contains(down)) {
        CHECK_THROWS_AS(EventLog(world.with(to), "x", shape).recopy(), Failure);
        CHECK(world.put(from, text_of(10)));
        world.check_whole(from);
      }
      world.faults.none();
      CHECK(EventLog(world.with(to), "x", shape).recopy().found);
      world.check_whole(to);
    }
  }
}

TEST_CASE(
    "recopy: a copy of the old conf key that missed the change does not say that the log is there too") {
  LogWorld world;
  CHECK(world.put(3, "first"));
  const auto servers = world.memory.placement().servers_of("eventlog3:x:conf", 3);
  for (const std::size_t deaf : servers) {
    CAPTURE(deaf);
    const std::string before = world.memory.server(deaf).items().at("eventlog3:x:conf").value;
    CHECK(world.log(1).recopy().found);
    world.memory.server(deaf).execute(Request::set("eventlog3:x:conf", before, Exptime::never()));
    CHECK(world.log(2).recopy().from == 1);
    CHECK(world.log(3).recopy().from == 2);
    world.check_whole(3);
    check_refused(world, 1, 3);
  }
}

TEST_CASE("recopy: a cursor goes on although the first look at the new conf key is not answered") {
  LogWorld world;
  CHECK(world.put(1, "first"));
  world.deliver(1);
  CHECK(world.log(2).recopy().found);
  test::ScriptedFaults faults(world.memory);
  std::size_t left = 2;
  faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.key != "eventlog2:x:conf" || left == 0) return std::nullopt;
    --left;
    return test::Mishap::unreachable;
  });
  CollectingSink sink;
  CursorState cursor = world.cursor;
  EventLog({faults, world.clock, world.random, {}, 2}, "x", shape).deliver(cursor, sink);
  CHECK(left == 0);
  CHECK(sink.texts().empty());
}

TEST_CASE(
    "recopy: who gets no reply, and sees only then that the log has left, is told so unless readers find the "
    "event") {
  for (const bool later : {false, true}) {
    CAPTURE(later);
    LogWorld world;
    CHECK(world.put(1, "first"));
    CHECK(world.log(2).recopy().found);
    world.clock.advance(later ? 35s : 10s);
    test::ScriptedFaults faults(world.memory);
    faults.once(Op::append, test::Mishap::lost_request);
    EventLog log({faults, world.clock, world.random, {}, 1}, "x", shape);
    std::optional<Failure> failure;
    try {
      log.put("second", EventData::text);
      world.acknowledged.push_back("second");
    } catch (const Failure& caught) {
      failure = caught;
    }
    CHECK(failure.has_value() == later);
    if (failure) CHECK(failure->code() == ErrorCode::unknown_outcome);
    world.check_whole(2);
  }
}

TEST_CASE(
    "recopy: what is put by who never gets an answer from the old conf key is read for as long as it comes") {
  LogWorld world;
  world.clock.advance((32 - shape.chunk_of(world.clock.wall()) % 32) * 10s);
  CHECK(world.put(1, "first"));
  CHECK(world.log(2).recopy().found);
  test::ScriptedFaults faults(world.memory);
  faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.key != "eventlog:x:conf") return std::nullopt;
    return test::Mishap::unreachable;
  });
  int put = 0;
  // A chunk of the next directory, 320 s later, is not begun without a look elsewhere.
  const auto puts = [&] {
    for (;; ++put) {
      world.clock.advance(40s);
      EventLog({faults, world.clock, world.random, {}, 1}, "x", shape).put(text_of(put), EventData::text);
      const Texts there = world.fetched(2);
      REQUIRE(std::find(there.begin(), there.end(), text_of(put)) != there.end());
    }
  };
  CHECK(refused(puts, 2));
  CHECK(put > 3);
}

TEST_CASE("recopy: a log that was never written, and one that has expired, are not there") {
  LogWorld world;
  CHECK_FALSE(EventLog(world.other(2), "x", shape).recopy().found);
  world.put(1, "a");
  EventLog(world.other(2), "x", shape).recopy();
  world.deliver(2);
  world.clock.advance(200s);
  CHECK_FALSE(EventLog(world.other(3), "x", shape).recopy().found);
  CHECK(world.put(1, "b"));
  CollectingSink sink;
  world.log(1).deliver(world.cursor, sink);
  CHECK(sink.texts() == Texts{"b"});
  CHECK(sink.gaps.size() == 1);
}

TEST_CASE(
    "recopy: a log is in one place while what it has left ends, whatever the clocks say, and whoever asks "
    "there") {
  for (const auto& skew : {0s, -2s, 3s}) {
    for (const std::vector<std::size_t>& numbers :
         {std::vector<std::size_t>{2}, {2, 1, 2}, {3, 2}, {2, 3, 1, 2}}) {
      CAPTURE(skew.count());
      CAPTURE(numbers.size());
      LogWorld world;
      world.put(1, "a");
      for (const std::size_t number : numbers) {
        CHECK(EventLog(world.other(number), "x", shape).recopy().found);
        world.put(number, "b");
      }
      for (int second = 0; second < 150; ++second) {
        CAPTURE(second);
        world.clock.advance(1s);
        if (second % 7 == 0) world.put(2, std::to_string(second));
        // They read what the number has left, too.
        world.clock.set_skew(skew);
        for (const std::size_t other : {1U, 3U}) CHECK(refused([&] { world.fetched(other); }, 2));
        world.clock.set_skew(0s);
      }
    }
  }
}

TEST_CASE("recopy: no trips more for a log whose number was changed, once its old events have expired") {
  LogWorld world;
  world.put(1, "a");
  EventLog(world.other(2), "x", shape).recopy();
  world.put(2, "b");
  test::TripCounter trips(world.memory);
  CollectingSink sink;
  EventLog log({trips, world.clock, world.random, {}, 2}, "x", shape);
  CHECK(trips.trips_of([&] { log.fetch({}, sink); }) == 2);
  for (int i = 0; i < 12; ++i) {
    world.clock.advance(9s);
    world.put(2, "c");
  }
  CHECK(trips.trips_of([&] { log.fetch({}, sink); }) == 1);
  CHECK(trips.trips_of([&] { log.put("d", EventData::text); }) <= 4);
}

}  // namespace mcds::eventlog_recopy_test
