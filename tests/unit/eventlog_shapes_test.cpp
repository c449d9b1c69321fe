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

}  // namespace mcds::eventlog_shapes_test
