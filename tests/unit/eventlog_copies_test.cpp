// Event logs whose keys have copies, and visitors.
#include <doctest/doctest.h>

#include "common/structures/visitors/visitors.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/world.hpp"

namespace mcds::eventlog_copies_test {

namespace {

using namespace std::chrono_literals;

struct CopiedWorld : test::World {
  explicit CopiedWorld(std::size_t copies = 2) : World(4, copies) {}
  EventLog log() { return EventLog(context, "x", {60, 60}); }
  Visitors visitors() { return Visitors(context, "site", 300s); }
};

CollectingSink fetched(CopiedWorld& world) {
  CollectingSink sink;
  world.log().fetch({}, sink);
  return sink;
}

}  // namespace

TEST_CASE("eventlog copies: as many trips as one copy, each event once, in order") {
  CopiedWorld world;
  EventLog log = world.log();
  const auto put = log.put("first", EventData::text);
  CHECK(put.copies.size() == 2);
  CHECK(world.trips.trips_of([&] { log.put("second", EventData::text); }) == 1);
  CollectingSink sink;
  CHECK(world.trips.trips_of([&] { log.fetch({}, sink); }) == 1);
  CHECK(sink.texts() == std::vector<std::string>{"first", "second"});
  CHECK(sink.gaps.empty());
}

TEST_CASE("eventlog copies: a wrong number begins no second log, whichever server gives no reply") {
  for (const std::size_t wrong : {1, 2, 3}) {
    for (const auto mishap :
         {test::Mishap::unreachable, test::Mishap::lost_request, test::Mishap::lost_reply}) {
      for (std::size_t silent = 0; silent < 4; ++silent) {
        const std::size_t right = wrong == 2 ? 3 : 2;
        CAPTURE(wrong);
        CAPTURE(silent);
        CopiedWorld world(right);
        world.log().put("right", EventData::text);
        test::ScriptedFaults faults(world.memory);
        faults.choose([&](const Request& request) {
          return faults.server_of(request) == silent ? std::optional(mishap) : std::nullopt;
        });
        const Context mistaken{faults, world.clock, world.random, {}, wrong};
        const auto failure = attempt([&] {
                               EventLog(mistaken, "x", {60, 60}).put("wrong", EventData::text);
                             }).failure();
        // What has one copy, on the silent server: nobody can see that there is more.
        CHECK(failure.has_value());
        CHECK(fetched(world).texts() == std::vector<std::string>{"right"});
        world.log().put("more", EventData::text);
      }
    }
  }
}

TEST_CASE("eventlog copies: nothing is lost with one server, whichever, as long as a read comes between") {
  CopiedWorld world;
  std::vector<std::string> put;
  for (int round = 0; round < 24; ++round) {
    put.push_back("event " + std::to_string(round));
    world.log().put(put.back(), EventData::text);
    world.clock.advance(20s);
    world.memory.restart(static_cast<std::size_t>(round % 4));
    const CollectingSink sink = fetched(world);
    CHECK(sink.texts() == put);
    CHECK(sink.gaps.empty());
  }
}

namespace {

// Who knows nothing of the log's shape is told it, and its only event is there.
void check_told(CopiedWorld& world, const std::string& name) {
  CollectingSink sink;
  const auto shapes = EventLog(world.context, name, {60, 60}).fetch({}, sink).shapes;
  CHECK(shapes == std::vector<RingShape>{{3600, 24}});
  CollectingSink events;
  EventLog(world.context, name, {3600, 24}).fetch({}, events);
  CHECK(events.texts() == std::vector<std::string>{"first"});
  CHECK(events.gaps.empty());
}

}  // namespace

TEST_CASE(
    "eventlog copies: with reads only between them, restarts of all servers lose neither events nor the "
    "shape") {
  for (const std::size_t copies : {2U, 3U}) {
    for (int i = 0; i < 10; ++i) {
      CAPTURE(copies);
      CAPTURE(i);
      CopiedWorld world(copies);
      const std::string name = "log" + std::to_string(i);
      EventLog(world.context, name, {3600, 24}).put("first", EventData::text);
      for (std::size_t round = 0; round < 8; ++round) {
        world.clock.advance(20s);
        world.memory.restart(round % 4);
        check_told(world, name);
      }
    }
  }
}

TEST_CASE("eventlog copies: a log that begins while a server is down tells its shape") {
  for (const std::size_t copies : {2U, 3U}) {
    for (std::size_t down = 0; down < 4; ++down) {
      // Many names, because each of a log's keys has its own servers.
      for (int i = 0; i < 20; ++i) {
        CAPTURE(copies);
        CAPTURE(down);
        CAPTURE(i);
        CopiedWorld world(copies);
        const std::string name = "log" + std::to_string(i);
        world.memory.stop(down);
        EventLog(world.context, name, {3600, 24}).put("first", EventData::text);
        for (const bool back : {false, true}) {
          if (back) world.memory.proceed(down);
          check_told(world, name);
        }
      }
    }
  }
}

TEST_CASE("eventlog copies: a server that is down keeps nobody from putting and reading") {
  CopiedWorld world;
  std::vector<std::string> put;
  for (int round = 0; round < 16; ++round) {
    const auto down = static_cast<std::size_t>(round % 4);
    world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      if (world.memory.placement().pool().size() > down && request.server == down)
        return test::Mishap::unreachable;
      return std::nullopt;
    });
    put.push_back("event " + std::to_string(round));
    world.log().put(put.back(), EventData::text);
    CHECK(fetched(world).texts() == put);
    world.clock.advance(1s);
    world.faults.none();
    CHECK(fetched(world).texts() == put);
    world.clock.advance(20s);
  }
}

TEST_CASE("eventlog copies: a reader that follows gives a copy what it has missed") {
  for (const std::size_t copies : {2U, 3U}) {
    CAPTURE(copies);
    CopiedWorld world(copies);
    EventLog reader = world.log();
    CursorState state;
    CollectingSink sink;
    world.log().put("first", EventData::text);
    reader.deliver(state, sink, std::nullopt, true);
    const std::string key = reader.keys().part({RingShape{60, 60}.chunk_of(world.clock.wall()), 0});
    const auto servers = copy_servers(world.context, key);
    world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      return request.server == servers[0] ? std::optional(test::Mishap::unreachable) : std::nullopt;
    });
    world.log().put("second", EventData::text);
    world.faults.none();
    world.clock.advance(1s);
    reader.poll(state, sink);
    CHECK(sink.texts() == std::vector<std::string>{"first", "second"});
    for (std::size_t copy = 1; copy < copies; ++copy) world.memory.restart(servers[copy]);
    CHECK(world.stored_on(servers[0], key).find("second") != std::string::npos);
    reader.poll(state, sink);
    CHECK(sink.events.size() == 2);
  }
}

TEST_CASE("eventlog copies: a directory without room refuses further parts, so that none is told as lost") {
  test::World world(3, 2, {.item_size = 700});
  EventLog log(world.context, "x", {60, 60});
  std::vector<std::string> put;
  std::optional<Failure> refusal;
  for (int number = 0; number < 200 && !refusal; ++number) {
    const std::string text = std::to_string(number) + std::string(200, 'x');
    try {
      log.put(text, EventData::text);
      put.push_back(text);
    } catch (const Failure& failure) {
      refusal = failure;
    }
  }
  REQUIRE(refusal);
  CHECK(refusal->code() == ErrorCode::refused);
  CHECK(put.size() > 10);
  CollectingSink sink;
  EventLog(world.context, "x", {60, 60}).fetch({}, sink);
  CHECK(sink.texts() == put);
  CHECK(sink.gaps.empty());
}

TEST_CASE(
    "eventlog copies: a copy that is made whole has all parts in order, none of them the other copy's") {
  test::World world(3, 2, {.item_size = 700});
  for (int name = 0; name < 12; ++name) {
    const std::string log = "log" + std::to_string(name);
    const auto fetched = [&] {
      CollectingSink sink;
      EventLog(world.context, log, {60, 60}).fetch({}, sink);
      return sink.texts().size();
    };
    for (int event = 0; event < 30; ++event)
      EventLog(world.context, log, {60, 60}).put("event " + std::to_string(event), EventData::text);
    for (std::size_t server = 0; server < 6; ++server) {
      world.clock.advance(3s);
      world.memory.restart(server % 3);
      CHECK(fetched() == 30);
      CHECK(fetched() == 30);
    }
  }
}

TEST_CASE("eventlog copies: a cursor goes on exactly when any one copy is lost") {
  CopiedWorld world;
  CursorState state;
  EventLog log = world.log();
  for (int round = 0; round < 24; ++round) {
    log.put("event " + std::to_string(round), EventData::text);
    world.memory.restart(static_cast<std::size_t>(round * 3 % 4));
    CollectingSink sink;
    log.deliver(state, sink);
    CHECK(sink.texts() == std::vector<std::string>{"event " + std::to_string(round)});
    CHECK(sink.gaps.empty());
    world.clock.advance(7s);
  }
}

TEST_CASE(
    "eventlog copies: what one copy had when it was delivered is not delivered again when the other has it "
    "alone") {
  for (const bool reached : {false, true}) {
    for (const std::size_t late : {0U, 1U}) {
      CAPTURE(reached);
      CAPTURE(late);
      CopiedWorld world;
      const auto key = world.log().put("first", EventData::text).copies;
      const std::size_t away = key[late].server;
      const auto cut = [&](bool reads) {
        world.faults.choose([&world, away, reads](const Request& request) -> std::optional<test::Mishap> {
          if (world.trips.server_of(request) != away) return std::nullopt;
          return reads && request.op == Op::get ? std::nullopt : std::optional(test::Mishap::unreachable);
        });
      };
      cut(false);
      world.clock.advance(1s);
      world.log().put("second", EventData::text);
      world.clock.advance(1s);
      CursorState cursor;
      CollectingSink sink;
      // It is read there, or not even that, and what it lacks cannot be written.
      cut(reached);
      world.log().deliver(cursor, sink, {}, true);
      CHECK(sink.texts() == std::vector<std::string>{"first", "second"});
      cursor = CursorState::parse(cursor.text(), "cursor");
      world.faults.none();
      CHECK(fetched(world).events.size() == 2);
      world.memory.restart(key[1 - late].server);
      CollectingSink again;
      world.log().deliver(cursor, again, {}, true);
      CHECK(again.texts().empty());
      // Once every copy has them nothing is to be remembered.
      CHECK(fetched(world).events.size() == 2);
      world.log().deliver(cursor, again, {}, true);
      CHECK(again.texts().empty());
      CHECK(cursor.early.empty());
    }
  }
}

TEST_CASE("eventlog copies: a cursor with a limit delivers each event once, as many as asked for") {
  CopiedWorld world;
  EventLog log = world.log();
  for (int i = 0; i < 10; ++i) {
    log.put(std::to_string(i), EventData::text);
    world.clock.advance(20s);
  }
  CursorState state;
  std::vector<std::string> all;
  for (int i = 0; i < 5; ++i) {
    CollectingSink sink;
    log.deliver(state, sink, 2);
    CHECK(sink.texts().size() == 2);
    for (const std::string& text : sink.texts()) all.push_back(text);
  }
  CHECK(all == fetched(world).texts());
}

TEST_CASE(
    "eventlog copies: directories that stand beside other copies' parts, as after a move, tell of no gap") {
  CopiedWorld world(3);
  world.log().put("early", EventData::text);
  world.clock.advance(300s);
  world.log().put("late", EventData::text);
  world.clock.advance(300s);
  std::map<std::string, std::vector<std::size_t>> directories;
  for (std::size_t server = 0; server < 4; ++server) {
    for (const auto& [key, item] : world.memory.server(server).items())
      if (key.find(":dir:") != std::string::npos) directories[key].push_back(server);
  }
  CHECK(!directories.empty());
  for (const auto& [key, servers] : directories) {
    std::vector<std::string> values;
    for (const std::size_t server : servers) values.push_back(world.stored_on(server, key));
    for (std::size_t i = 0; i < servers.size(); ++i)
      world.memory.execute(
          Request::set(key, values[(i + 1) % servers.size()], Exptime::never()).on(servers[i]));
  }
  for (int again = 0; again < 2; ++again) {
    const CollectingSink sink = fetched(world);
    CHECK(sink.texts() == std::vector<std::string>{"early", "late"});
    CHECK(sink.gaps.empty());
  }
}

TEST_CASE("eventlog copies: what no copy has any more is a gap") {
  CopiedWorld world;
  world.log().put("lost", EventData::text);
  world.clock.advance(300s);
  world.log().put("kept", EventData::text);
  const auto servers = copy_servers(
      world.context, world.log().keys().part({RingShape{60, 60}.chunk_of(world.clock.wall()) - 5, 0}));
  for (const std::size_t server : servers) {
    for (const auto& [key, item] :
         std::map(world.memory.server(server).items().begin(), world.memory.server(server).items().end())) {
      if (key == world.log().keys().part({RingShape{60, 60}.chunk_of(world.clock.wall()) - 5, 0}))
        world.memory.server(server).evict(key);
    }
  }
  const CollectingSink sink = fetched(world);
  CHECK(sink.texts() == std::vector<std::string>{"kept"});
  CHECK(sink.gaps.size() == 1);
}

}  // namespace mcds::eventlog_copies_test
