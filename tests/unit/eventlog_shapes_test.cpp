// The shapes that a log remembers (the length of a chunk and the number of chunks kept), and their use.
#include <doctest/doctest.h>

#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/world.hpp"

namespace mcds::eventlog_shapes_test {

TEST_CASE("eventlog: a reader that finds nothing learns which parameters are in use") {
  test::World world;
  EventLog(world.context, "deploys", {10, 6}).put("x", EventData::text);
  CollectingSink sink;
  const auto summary = EventLog(world.context, "deploys", {60, 60}).fetch({}, sink);
  CHECK(summary.found_nothing());
  CHECK(summary.shapes == std::vector<RingShape>{{10, 6}});
}

TEST_CASE("eventlog: every shape in use is recorded, the newest last, until it ends") {
  test::World world;
  const auto in_use = [&] {
    CollectingSink sink;
    return EventLog(world.context, "deploys", {60, 60}).fetch({}, sink).shapes;
  };
  const auto put = [&](const RingShape& shape) {
    EventLog(world.context, "deploys", shape).put("x", EventData::text);
  };
  put({1, 10});
  put({10, 6});
  CHECK(in_use() == std::vector{RingShape{1, 10}, RingShape{10, 6}});
  world.clock.advance(std::chrono::seconds(2));
  put({1, 10});
  CHECK(in_use() == std::vector{RingShape{10, 6}, RingShape{1, 10}});
  world.clock.advance(std::chrono::seconds(30));
  CHECK(in_use() == std::vector{RingShape{10, 6}});
}

TEST_CASE("eventlog: a hundred shapes in use are all recorded") {
  test::World world;
  std::vector<RingShape> shapes;
  for (int i = 0; i < 100; ++i) {
    shapes.push_back({60 + i, 60});
    EventLog(world.context, "deploys", shapes.back()).put("x", EventData::text);
  }
  CollectingSink sink;
  CHECK(EventLog(world.context, "deploys", {10, 6}).fetch({}, sink).shapes == shapes);
}

namespace {

std::size_t events_in(const test::World& world, const std::string& name, const RingShape& shape) {
  CollectingSink sink;
  LogReader(world.context, name, shape).fetch({}, sink);
  return sink.events.size();
}

}  // namespace

TEST_CASE("eventlog: put with a guessed shape goes where the log is written, and asks no more than it must") {
  test::World world;
  const auto put = [&](std::optional<RingShape> shape) {
    LogWriter(world.context, "deploys", shape).put("x", EventData::text);
  };
  put({});
  CHECK(events_in(world, "deploys", {60, 60}) == 1);
  CHECK(world.trips.trips_of([&] { put({}); }) == 1);
  world.clock.advance(std::chrono::seconds(60));
  put({{10, 6}});
  put({});
  CHECK(events_in(world, "deploys", {10, 6}) == 2);
  CHECK(world.trips.trips_of([&] { put({}); }) == 3);
}

TEST_CASE("eventlog: what was staged for a guessed shape goes to the chunks of the one in use") {
  test::World world;
  EventLog(world.context, "deploys", {1, 100}).put("first", EventData::text);
  LogWriter log(world.context, "deploys", std::nullopt);
  const WallTime start = world.clock.wall();
  for (int i = 5; i-- > 0;)
    REQUIRE(log.stage(std::to_string(i), EventData::text, start - std::chrono::seconds(i)));
  log.flush();
  CHECK(events_in(world, "deploys", {1, 100}) == 6);
}

TEST_CASE("eventlog: a time that only the shape in use keeps is taken by a guess") {
  test::World world;
  EventLog(world.context, "deploys", {3600, 48}).put("first", EventData::text);
  const WallTime old = world.clock.wall() - std::chrono::hours(5);
  LogWriter(world.context, "deploys", std::nullopt).put("old", EventData::text, old);
  CHECK(events_in(world, "deploys", {3600, 48}) == 2);
  LogWriter other(world.context, "others", std::nullopt);
  CHECK_THROWS_AS(other.put("old", EventData::text, old), InvalidInput);
}

TEST_CASE("eventlog: a put that no fetch would find, without the conf key's server, is not acknowledged") {
  for (const std::optional<RingShape> given :
       {std::optional<RingShape>(), std::optional(RingShape{10, 60})}) {
    test::World world(3);
    const RingShape shape = given.value_or(RingShape{});
    const LogKeys keys = EventLog(world.context, "deploys", shape).keys();
    const auto server_of = [&](const std::string& key) { return world.memory.placement().server_of(key); };
    const auto put = [&] { LogWriter(world.context, "deploys", given).put("x", EventData::text); };
    const std::size_t down = server_of(keys.conf());
    const auto is_up = [&](std::int64_t chunk) {
      return server_of(keys.part({chunk, 0})) != down && server_of(keys.directory(chunk / 32)) != down;
    };
    const auto chunk = [&] { return shape.chunk_of(world.clock.wall()); };
    while (!is_up(chunk())) world.clock.advance(std::chrono::seconds(shape.chunk_s));
    world.memory.stop(down);
    CHECK_THROWS_AS(put(), NotApplied);
    world.memory.proceed(down);
    CHECK(events_in(world, "deploys", shape) == 0);
    put();
    world.memory.stop(down);
    int stored = 0;
    std::int64_t last = chunk();
    for (int next = 0; next < 100; ++next) {
      // The directory of an event that is kept shows that the conf key was written.
      if (is_up(chunk()) && chunk() - last < shape.chunks) {
        CHECK_NOTHROW(put());
        last = chunk();
        ++stored;
      }
      world.clock.advance(std::chrono::seconds(shape.chunk_s));
    }
    CHECK(stored > 10);
  }
}

}  // namespace mcds::eventlog_shapes_test
