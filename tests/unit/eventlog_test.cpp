#include <doctest/doctest.h>

#include <set>

#include "common/primitives/seal.hpp"
#include "common/structures/eventlog/format.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/world.hpp"

namespace mcds::eventlog_test {

using namespace std::chrono_literals;

namespace {

using Reason = LogGap::Reason;

struct World : test::World {
  RingShape shape{10, 6};

  explicit World(MemoryServerOptions options = {}) : test::World(3, 1, options) {}
  EventLog log() { return EventLog(context, "x", shape); }
  // Puts an event as a new process, a millisecond later, so that the order is certain.
  EventId put(std::string_view data) {
    clock.advance(1ms);
    return log().put(data, EventData::text).id;
  }
  std::int64_t chunk() const { return shape.chunk_of(clock.wall()); }
  CollectingSink fetch(const LogRange& range = {}) {
    CollectingSink sink;
    log().fetch(range, sink);
    return sink;
  }
  CollectingSink deliver(CursorState& state, std::optional<std::uint64_t> limit = std::nullopt) {
    CollectingSink sink;
    log().deliver(state, sink, limit);
    return sink;
  }
  bool evict(const PartName& name) {
    const LogKeys keys = log().keys();
    return memory.server_for(keys.part({name.chunk, 0})).evict(keys.part(name));
  }
  // Advances to the start of the next chunk.
  void to_next_chunk() { clock.advance(shape.start_of(chunk() + 1) - clock.wall()); }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("eventlog: events come back sorted by time, each once, for at least N chunks") {
  World world;
  for (int i = 0; i < 30; ++i) {
    world.put(std::to_string(i));
    world.clock.advance(3s);
  }
  // 90 s have passed, and 60 s are guaranteed.
  const Texts texts = world.fetch().texts();
  REQUIRE(texts.size() >= 20);
  CHECK(texts.back() == "29");
  for (std::size_t i = 0; i < texts.size(); ++i) CHECK(texts[i] == std::to_string(30 - texts.size() + i));
  CHECK(world.fetch().gaps.empty());
}

TEST_CASE(
    "eventlog: an event stays N * C after its time, put at a chunk's first or last microsecond or late") {
  World world;
  for (const Duration offset : {Duration(0), Duration(5s), Duration(10s - 1us)}) {
    for (const auto late : {0s, 9s, 31s, 60s}) {
      world.to_next_chunk();
      world.clock.advance(offset);
      const WallTime at = world.clock.wall() - late;
      const EventId id = world.log().put("e", EventData::text, at).id;
      world.clock.advance(60s - late - 1us);
      CHECK(world.fetch({}).has(id));
      world.clock.advance(200s);
      CHECK(world.fetch().events.empty());
    }
  }
}

TEST_CASE("eventlog: times that the ring does not keep are refused") {
  World world;
  const WallTime now = world.clock.wall();
  CHECK_THROWS_AS(world.log().put("x", EventData::text, now - 61s), InvalidInput);
  CHECK_THROWS_AS(world.log().put("x", EventData::text, now + 11s), InvalidInput);
  world.log().put("x", EventData::text, now - 60s);
  world.log().put("y", EventData::text, now + 10s);
  CHECK(world.fetch().texts() == Texts{"x", "y"});
}

TEST_CASE("eventlog: first and last are inclusive, after is not, the limit takes the oldest") {
  World world;
  std::vector<EventId> ids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(world.put(std::to_string(i)));
    world.clock.advance(4s);
  }
  CHECK(world.fetch({.first = ids[3].time(), .last = ids[5].time()}).texts() == Texts{"3", "4", "5"});
  CHECK(world.fetch({.after = ids[7]}).texts() == Texts{"8", "9"});
  CHECK(world.fetch({.first = ids[2].time(), .limit = 2}).texts() == Texts{"2", "3"});
  CHECK(world.fetch({.limit = 0}).texts().empty());
  CHECK(world.fetch({.first = ids[9].time() + 1ms}).texts().empty());
}

TEST_CASE("eventlog: history older than the ring is a gap") {
  World world;
  world.put("x");
  const auto sink = world.fetch({.first = world.clock.wall() - 300s});
  REQUIRE(sink.gaps.size() == 1);
  CHECK(sink.gaps[0].reason == Reason::expired);
  CHECK(sink.gaps[0].from == world.clock.wall() - 300s);
  CHECK(sink.texts() == Texts{"x"});
  CHECK(world.fetch({.first = world.clock.wall() - 60s}).gaps.empty());
}

TEST_CASE("eventlog: an evicted chunk is a gap, a quiet one is not") {
  World world;
  world.put("a");
  world.clock.advance(20s);
  world.put("b");
  const std::int64_t chunk = world.chunk();
  world.clock.advance(20s);
  world.put("c");
  CHECK(world.fetch().gaps.empty());
  REQUIRE(world.evict({chunk, 0}));
  auto sink = world.fetch();
  CHECK(sink.texts() == Texts{"a", "c"});
  REQUIRE(sink.gaps.size() == 1);
  CHECK(sink.gaps[0].reason == Reason::evicted);
  CHECK(sink.gaps[0].from == world.shape.start_of(chunk));
  CHECK(sink.gaps[0].to == world.shape.start_of(chunk + 1));
  // A late event creates the part again. Its earlier events are still missing.
  world.log().put("b2", EventData::text, world.shape.start_of(chunk));
  sink = world.fetch();
  CHECK(sink.texts() == Texts{"a", "b2", "c"});
  CHECK(sink.gaps.size() == 1);
}

TEST_CASE("eventlog: a lost directory is noticed") {
  World world;
  world.to_next_chunk();
  while (world.chunk() % chunks_per_directory > 20) world.to_next_chunk();
  world.put("a");
  const std::int64_t chunk = world.chunk();
  world.clock.advance(10s);
  world.put("b");
  world.clock.advance(10s);
  REQUIRE(world.evict({chunk, 0}));
  REQUIRE(world.memory.evict(world.log().keys().directory(chunk / chunks_per_directory)));
  const auto sink = world.fetch();
  CHECK(sink.texts() == Texts{"b"});
  CHECK_FALSE(sink.gaps.empty());
}

TEST_CASE("eventlog: a chunk larger than an item continues in parts and loses nothing") {
  World world(MemoryServerOptions{.item_size = 4096});
  Texts expected;
  for (int i = 0; i < 200; ++i) {
    expected.push_back(std::to_string(i) + std::string(200, 'x'));
    world.put(expected.back());
  }
  CHECK(world.fetch().texts() == expected);
  CHECK(world.fetch().gaps.empty());
  // The middle of the chunk is lost.
  REQUIRE(world.evict({world.chunk(), 3}));
  world.clock.advance(20s);
  const auto sink = world.fetch();
  CHECK(sink.gaps.size() == 1);
  CHECK(sink.texts().size() > 150);
  CHECK(sink.texts().size() < 200);
}

TEST_CASE("eventlog: a chunk of more than a thousand parts is fetched and delivered") {
  World world(MemoryServerOptions{.item_size = 80000});
  EventLog log = world.log();
  const std::string text(41000, 'x');
  std::size_t put = 0;
  for (; put < 1010; ++put) log.put(text, EventData::text);
  CHECK(world.fetch().events.size() == put);
  CHECK(world.fetch().gaps.empty());
  CursorState state;
  CHECK(world.deliver(state).events.size() == put);
}

TEST_CASE("eventlog: a batch larger than the servers' items is divided") {
  World world(MemoryServerOptions{.item_size = 64 << 10});
  EventLog log = world.log();
  for (int i = 0; i < 1000; ++i) REQUIRE(log.stage(std::string(150, 'x'), EventData::text));
  log.flush();
  CHECK(world.fetch().events.size() == 1000);
}

TEST_CASE("eventlog: a writer that comes second to a part leaves no gap") {
  World world;
  for (int i = 0; i < 5; ++i) world.put("x");
  world.clock.advance(30s);
  CHECK(world.fetch().gaps.empty());
}

TEST_CASE("eventlog: staged events go out in batches below the limit, and per chunk") {
  World world;
  EventLog log = world.log();
  int flushes = 0;
  const std::string data(1000, 'x');
  for (int i = 0; i < 1000; ++i) {
    if (log.stage(data, EventData::text)) continue;
    log.flush();
    ++flushes;
    REQUIRE(log.stage(data, EventData::text));
  }
  log.flush();
  CHECK(flushes == 4);
  CHECK(world.fetch().events.size() == 1000);
  REQUIRE(log.stage("now", EventData::text));
  world.clock.advance(10s);
  CHECK_FALSE(log.stage("next chunk", EventData::text));
}

TEST_CASE("eventlog: round trips") {
  World world;
  const auto trips = [&](auto&& action) { return world.trips.trips_of(action); };
  CHECK(trips([&] { world.put("first of the chunk"); }) == 4);
  CHECK(trips([&] { world.put("another process"); }) == 1);
  EventLog log = world.log();
  for (int i = 0; i < 5; ++i) CHECK(trips([&] { log.put("x", EventData::text); }) == 1);
  for (int i = 0; i < 5; ++i) {
    world.clock.advance(10s);
    world.put("y");
  }
  CHECK(trips([&] { world.fetch(); }) == 1);
  CursorState state;
  CHECK(trips([&] { world.deliver(state); }) == 1);
  CHECK(trips([&] { world.deliver(state); }) == 1);
}

TEST_CASE("eventlog: a cursor delivers each event once, late and equal-time ones too") {
  World world;
  CursorState state;
  CHECK(world.deliver(state).events.empty());
  world.put("a");
  CHECK(world.deliver(state).texts() == Texts{"a"});
  CHECK(world.deliver(state).texts().empty());
  const WallTime same = world.clock.wall();
  world.log().put("b", EventData::text, same);
  world.log().put("late", EventData::text, same - 45s);
  CHECK(world.deliver(state).texts() == Texts{"late", "b"});
  world.log().put("b again", EventData::text, same);
  CHECK(world.deliver(state).texts() == Texts{"b again"});
  world.clock.advance(15s);
  world.put("c");
  world.put("d");
  world.put("e");
  CHECK(world.deliver(state, 2).texts() == Texts{"c", "d"});
  CHECK(world.deliver(state, 2).texts() == Texts{"e"});
  CHECK(world.deliver(state).gaps.empty());
}

TEST_CASE("eventlog: a cursor survives being written and read at every step") {
  World world;
  CursorState state;
  Texts delivered;
  for (int i = 0; i < 60; ++i) {
    world.log().put(std::to_string(i), EventData::text,
                    world.clock.wall() - std::chrono::seconds(world.random.below(50)));
    world.clock.advance(1500ms);
    if (i % 3 != 0) continue;
    if (!state.ring.empty()) state = CursorState::parse(state.text(), "f");
    for (const auto& text : world.deliver(state, world.random.below(5)).texts()) delivered.push_back(text);
  }
  for (const auto& text : world.deliver(state).texts()) delivered.push_back(text);
  std::sort(delivered.begin(), delivered.end(), [](auto& a, auto& b) { return std::stoi(a) < std::stoi(b); });
  REQUIRE(delivered.size() == 60);
  for (int i = 0; i < 60; ++i) CHECK(delivered[static_cast<std::size_t>(i)] == std::to_string(i));
}

TEST_CASE("eventlog: a cursor notices a chunk that was lost and created again") {
  World world;
  CursorState state;
  world.put("a");
  world.deliver(state);
  REQUIRE(world.evict({world.chunk(), 0}));
  world.put("b");
  auto sink = world.deliver(state);
  CHECK(sink.texts() == Texts{"b"});
  REQUIRE(sink.gaps.size() == 1);
  CHECK(sink.gaps[0].reason == Reason::evicted);
  CHECK(world.deliver(state).gaps.empty());
  world.clock.advance(20s);
  CHECK(world.deliver(state).gaps.empty());
}

TEST_CASE("eventlog: a cursor reports once that a chunk is gone which it had read") {
  World world;
  CursorState state;
  world.put("a");
  const std::int64_t chunk = world.chunk();
  world.deliver(state);
  world.clock.advance(20s);
  REQUIRE(world.evict({chunk, 0}));
  CHECK(world.deliver(state).gaps.size() == 1);
  CHECK(world.deliver(state).gaps.empty());
}

TEST_CASE("eventlog: a cursor older than the ring reports what expired") {
  World world;
  CursorState state;
  world.put("a");
  world.deliver(state);
  const WallTime seen = world.clock.wall();
  world.put("never read");
  world.clock.advance(500s);
  world.put("b");
  const auto sink = world.deliver(state);
  CHECK(sink.texts() == Texts{"b"});
  REQUIRE(sink.gaps.size() == 1);
  CHECK(sink.gaps[0].reason == Reason::expired);
  CHECK(sink.gaps[0].from == seen);
  CHECK(world.deliver(state).gaps.empty());
}

TEST_CASE("eventlog: a cursor that lags behind its limit until the ring has turned says so") {
  World world;
  CursorState state;
  for (int i = 0; i < 10; ++i) world.put("x");
  CHECK(world.deliver(state, 3).events.size() == 3);
  world.clock.advance(100s);
  CHECK(world.deliver(state).gaps.size() == 1);
}

TEST_CASE("eventlog: another log's cursor is refused") {
  World world;
  CursorState state;
  world.deliver(state);
  world.shape = {20, 6};
  CHECK_THROWS_AS(world.deliver(state), Failure);
}

TEST_CASE(
    "eventlog: an event repeated after a lost reply is delivered once, also across cursor reads and parts") {
  World world(MemoryServerOptions{.item_size = 4096});
  CursorState state;
  world.put("a");
  const auto key = world.log().keys().part({world.chunk(), 0});
  const std::string part = world.memory.server_for(key).peek(key)->value;
  const std::string line = part.substr(part.find('\n') + 1);
  world.deliver(state);
  world.memory.execute(Request::append(key, line));
  CHECK(world.deliver(state).events.empty());
  CHECK(world.fetch().texts() == Texts{"a"});
  for (int i = 0; i < 40; ++i) world.put(std::string(150, 'x'));
  const auto next = world.log().keys().part({world.chunk(), 1});
  world.deliver(state);
  world.memory.execute(Request::append(next, line));
  CHECK(world.deliver(state).events.empty());
  CHECK(world.fetch().events.size() == 41);
}

TEST_CASE("eventlog: foreign bytes in a part are reported and hide no event") {
  World world;
  world.put("a");
  const auto key = world.log().keys().part({world.chunk(), 0});
  world.memory.execute(Request::append(key, "somebody's text\nand half a line"));
  world.put("b");
  world.put("c");
  const auto sink = world.fetch();
  CHECK(sink.texts() == Texts{"a", "b", "c"});
  REQUIRE(sink.damages.size() == 1);
  CHECK(sink.damages.front().find("has 2 lines that are not events, the first at byte ") !=
        std::string::npos);
  world.memory.execute(Request::set(key, "a value of another program", Exptime::never()));
  CHECK(world.fetch().damages.size() == 1);
  CHECK(world.fetch().events.empty());
  world.put("d");  // it was acknowledged, and never delivered
  CursorState state;
  CHECK(world.deliver(state).texts() == Texts{"d"});
  world.put("e");
  CHECK(world.deliver(state).texts() == Texts{"e"});
  CHECK(world.fetch().texts() == Texts{"d", "e"});
  CHECK(world.fetch().damages.size() == 1);
}

TEST_CASE("eventlog: a range without chunks does not hide that there is a log") {
  World world;
  world.put("a");
  CollectingSink sink;
  const WallTime now = world.clock.wall();
  for (const LogRange& range :
       {LogRange{.first = now - 48h, .last = now - 47h}, LogRange{.first = now + 24h}}) {
    const LogSummary summary = world.log().fetch(range, sink);
    CHECK(summary.parts + summary.shapes.size() != 0);
    CHECK(summary.events == 0);
  }
  CHECK(sink.events.empty());
}

TEST_CASE("eventlog: whole lines in an unknown form are reported as such, and hide no event") {
  World world;
  world.put("a");
  const LogKeys keys = world.log().keys();
  world.memory.execute(Request::append(keys.part({world.chunk(), 0}), seal("X9 of a later version") + "\n"));
  world.put("b");
  CHECK(world.fetch().texts() == Texts{"a", "b"});
  REQUIRE(world.fetch().damages.size() == 1);
  CHECK(world.fetch().damages.front().find(unknown_form) != std::string::npos);
  const auto directory = keys.directory(world.chunk() / chunks_per_directory);
  world.memory.execute(Request::append(directory, seal("X9 of a later version") + "\n"));
  CHECK(world.fetch().texts() == Texts{"a", "b"});
  REQUIRE(world.fetch().damages.size() == 2);
  for (const auto& damage : world.fetch().damages) CHECK(damage.find(unknown_form) != std::string::npos);
}

TEST_CASE(
    "eventlog: an unreachable server is an error for fetch, and waits for its turn in a tolerant read") {
  World world;
  CursorState state;
  std::set<std::size_t> used;
  for (int i = 0; i < 6; ++i) {
    used.insert(world.log().put(std::to_string(i), EventData::text).server);
    world.clock.advance(10s);
  }
  REQUIRE(used.size() > 1);
  world.memory.stop(*used.begin());
  CHECK_THROWS_AS(world.fetch(), Failure);
  CHECK_THROWS_AS(world.deliver(state), Failure);
  state = {};
  CollectingSink sink;
  EventLog log = world.log();
  const auto summary = log.deliver(state, sink, std::nullopt, true);
  CHECK(summary.unreachable.size() == 1);
  CHECK(sink.events.size() < 6);
  world.memory.proceed(*used.begin());
  log.poll(state, sink);
  CHECK(sink.events.size() == 6);
  CHECK(sink.gaps.empty());
}

TEST_CASE("eventlog: polling delivers everything once, late events too") {
  World world;
  world.shape = {10, 100};
  EventLog log = world.log();
  CursorState state;
  CollectingSink sink;
  for (int i = 0; i < 300; ++i) {
    log.put(std::to_string(i), EventData::text,
            world.clock.wall() - std::chrono::seconds(world.random.below(400)));
    world.clock.advance(700ms);
    log.poll(state, sink);
  }
  CHECK(sink.events.size() == 300);
  CHECK(sink.gaps.empty());
}

TEST_CASE("eventlog: a full server without memory is an error, and nothing is stored twice") {
  World world(MemoryServerOptions{.memory_limit = 6000});
  std::size_t stored = 0;
  try {
    for (int i = 0; i < 1000; ++i, ++stored) world.put(std::string(100, 'x'));
  } catch (const NotApplied& refusal) {
    CHECK(refusal.code() == ErrorCode::refused);
  }
  CHECK(stored > 10);
  CHECK(stored < 1000);
  CHECK(world.fetch().events.size() == stored);
}

}  // namespace mcds::eventlog_test
