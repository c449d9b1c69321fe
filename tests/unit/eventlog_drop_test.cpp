// A dropped event log: nothing of it remains, whichever client dies meanwhile, and no event is lost that is
// put after the drop has begun to remove.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/eventlog/format.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/move_world.hpp"

namespace mcds::eventlog_drop_test {

namespace {

using namespace std::chrono_literals;

using Texts = std::vector<std::string>;

const RingShape usual{};
const RingShape long_chunks{3600, 72};

std::string left(test::World& world) {
  std::string line;
  for (const std::string& key : test::left_in(world.memory)) line += key + ' ';
  return line;
}

void put(const Context& context, const RingShape& shape, const std::string& text,
         std::optional<WallTime> at = std::nullopt) {
  EventLog(context, "x", shape).put(text, EventData::text, at);
}

// Fetches all shapes in use, as a command does that was not given a shape.
CollectingSink fetch(const Context& context) {
  CollectingSink all;
  const auto summary = LogReader(context, "x", usual).fetch({}, all);
  for (const RingShape& shape : summary.shapes) {
    if (shape != usual) LogReader(context, "x", shape).fetch({}, all);
  }
  return all;
}

bool has(const Context& context, const std::string& text) {
  const Texts texts = fetch(context).texts();
  return std::ranges::find(texts, text) != texts.end();
}

// Drops the log. Returns false if the client was killed first.
bool drop_killed_at(test::World& world, int trips) {
  test::Killing dying(world.memory, trips);
  try {
    drop_log(Context{dying, world.clock, world.random, {}}, "x");
    return true;
  } catch (const test::Killed&) {
    return false;
  }
}

void fill(test::World& world, const RingShape& shape, int chunks, int events) {
  for (int chunk = 0; chunk < chunks; ++chunk) {
    world.clock.advance(std::chrono::seconds(shape.chunk_s));
    for (int i = 0; i < events; ++i) put(world.others, shape, "old" + std::string(150, '.'));
  }
}

}  // namespace

TEST_CASE("eventlog drop: nothing of the log is left, in whatever shapes it was written") {
  for (const std::size_t servers : {1U, 3U}) {
    CAPTURE(servers);
    test::World world(servers, 1, {.item_size = 8000});
    CHECK_FALSE(drop_log(world.context, "x"));
    fill(world, usual, 40, 60);
    fill(world, {10, 6}, 4, 5);
    fill(world, long_chunks, 1, 5);
    put(world.others, long_chunks, "late", world.clock.wall() - 70h);
    EventLog(world.others, "other", usual).put("stays", EventData::text);
    CHECK(drop_log(world.context, "x"));
    CHECK_FALSE(drop_log(world.context, "x"));
    CHECK(left(world).find(":x:") == std::string::npos);
    CHECK(test::left_in(world.memory).size() == 3);
    CHECK(fetch(world.context).texts().empty());
    CHECK(fetch(world.context).gaps.empty());
  }
}

TEST_CASE("eventlog drop: what lost its directory or its conf key goes, too") {
  for (const std::string& lost : std::vector<std::string>{":dir:", ":conf"}) {
    test::World world(3, 1, {.item_size = 1000});
    fill(world, usual, 3, 20);
    for (const std::string& key : test::left_in(world.memory)) {
      if (key.find(lost) != std::string::npos) world.memory.evict(key);
    }
    CHECK(drop_log(world.context, "x"));
    CHECK(left(world) == "");
  }
}

TEST_CASE(
    "eventlog drop: killed at any trip, it loses no event that is put afterwards, and a second one ends it") {
  for (const RingShape& shape : {usual, long_chunks}) {
    bool done = false;
    for (int trips = 0; !done; ++trips) {
      CAPTURE(shape.text());
      CAPTURE(trips);
      test::World world(3, 1, {.item_size = 1000});
      fill(world, shape, 2, 10);
      EventLog writer(world.others, "x", shape);
      writer.put("old", EventData::text);
      done = drop_killed_at(world, trips);
      for (int i = 0; i < 5; ++i) {
        writer.put("mine" + std::to_string(i), EventData::text);
        put(world.others, shape, "theirs" + std::to_string(i));
        world.clock.advance(10s);
      }
      for (int i = 0; i < 5; ++i) {
        CHECK(has(world.others, "mine" + std::to_string(i)));
        CHECK(has(world.others, "theirs" + std::to_string(i)));
      }
      CHECK(drop_log(world.context, "x"));
      CHECK(left(world) == "");
    }
  }
}

TEST_CASE("eventlog drop: what is put once it has removed something stays, and can be found") {
  for (const auto& [shape, item_size] : {std::pair{usual, 1000}, {usual, 100'000}, {long_chunks, 1000}}) {
    for (std::size_t trip = 0;; ++trip) {
      CAPTURE(shape.text());
      CAPTURE(trip);
      test::World world(3, 1, {.item_size = static_cast<std::size_t>(item_size)});
      fill(world, shape, 2, 5);
      EventLog writer(world.others, "x", shape);
      writer.put("last", EventData::text);
      bool begun = false;
      world.rival.before(trip, [&] {
        begun = !has(world.others, "last");
        writer.put("mine", EventData::text);
        put(world.others, shape, "theirs");
      });
      CHECK(drop_log(world.context, "x"));
      if (world.rival.trips() <= trip) break;
      const Texts texts = fetch(world.others).texts();
      const std::set<std::string> found(texts.begin(), texts.end());
      CHECK(found.size() == texts.size());
      if (begun) CHECK(found == std::set<std::string>{"mine", "theirs"});
      // A second part whose first part was removed shows that removal.
      if (item_size > 1000) CHECK(fetch(world.others).gaps.empty());
      drop_log(world.context, "x");
      CHECK(left(world) == "");
    }
  }
}

TEST_CASE("eventlog drop: a part that grows while it is removed keeps what came, and cursors their places") {
  test::World world(1);
  const RingShape shape = long_chunks;
  EventLog writer(world.others, "x", shape);
  CursorState fresh, half, whole;
  CollectingSink ignored;
  writer.put("a", EventData::text);
  writer.deliver(half, ignored);
  writer.put("b", EventData::text);
  writer.deliver(whole, ignored);
  // This is after the conf key, the directory and the reading of the parts.
  world.rival.before(3, [&] { writer.put("c", EventData::text); });
  CHECK(drop_log(world.context, "x"));
  CHECK(fetch(world.others).texts() == Texts{"c"});
  CHECK(fetch(world.others).gaps.empty());
  CHECK(fetch(world.others).damages.empty());
  const auto deliver = [&](CursorState& state) {
    CollectingSink sink;
    writer.deliver(state, sink);
    return sink;
  };
  CHECK(deliver(fresh).texts() == Texts{"c"});
  CHECK(deliver(half).texts() == Texts{"c"});
  const CollectingSink sink = deliver(whole);
  CHECK(sink.texts() == Texts{"c"});
  CHECK(sink.gaps.empty());
  for (CursorState* state : {&fresh, &half, &whole}) CHECK(deliver(*state).texts().empty());
  CHECK(drop_log(world.context, "x"));
  CHECK(left(world) == "");
}

TEST_CASE("eventlog drop: a part that a writer is about to create can be found afterwards") {
  // The drop runs after the writer's first read, and after its lines in the directory and the conf key.
  for (const std::size_t trip : {1U, 2U, 3U}) {
    CAPTURE(trip);
    test::World creating(3);
    put(creating.others, long_chunks, "old", creating.clock.wall() - 5h);
    creating.rival.before(trip, [&] { drop_log(creating.others, "x"); });
    put(creating.context, long_chunks, "mine");
    CHECK(fetch(creating.others).texts() == Texts{"mine"});
    CHECK(fetch(creating.others).gaps.empty());
    drop_log(creating.others, "x");
    CHECK(left(creating) == "");
  }
}

TEST_CASE("eventlog drop: another program's value under a part's key stays, and is reported") {
  test::World world(3);
  fill(world, usual, 2, 3);
  const LogKeys keys = EventLog(world.context, "x", usual).keys();
  const std::string foreign = keys.part({usual.chunk_of(world.clock.wall()) - 5, 0});
  world.memory.execute(Request::set(foreign, "mine", Exptime::never()));
  CHECK_THROWS_WITH_AS(drop_log(world.context, "x"), doctest::Contains(foreign.c_str()), CorruptData);
  CHECK(left(world) == foreign + ' ');
  CHECK_THROWS_AS(drop_log(world.context, "x"), CorruptData);
  world.memory.evict(foreign);
  // A directory of which no line is in a known form may be a later version's.
  put(world.others, usual, "new");
  const std::string directory = keys.directory(usual.chunk_of(world.clock.wall()) / chunks_per_directory);
  world.memory.execute(Request::set(directory, seal("X9 of a later version") + "\n", Exptime::never()));
  CHECK_THROWS_WITH_AS(drop_log(world.context, "x"), doctest::Contains(directory.c_str()), CorruptData);
  CHECK(left(world) == directory + ' ' + keys.conf() + ' ');
  world.memory.evict(directory);
  world.memory.execute(Request::set(keys.conf(), "mine", Exptime::never()));
  CHECK_THROWS_AS(drop_log(world.context, "x"), CorruptData);
  CHECK(left(world) == keys.conf() + ' ');
}

TEST_CASE("eventlog drop: a request or reply that is lost is tried again, or told") {
  for (const test::Mishap mishap :
       {test::Mishap::lost_request, test::Mishap::lost_reply, test::Mishap::refused}) {
    std::size_t which = 0;
    for (std::size_t asked = 1; which < asked; ++which) {
      CAPTURE(which);
      test::World world(3);
      fill(world, usual, 2, 3);
      asked = 0;
      world.faults.choose(
          [&](const Request&) { return asked++ == which ? std::optional(mishap) : std::nullopt; });
      const auto dropped = attempt([&] { return drop_log(world.context, "x"); });
      if (!dropped.failure()) CHECK(left(world) == "");
      // An early failure ends the drop before later requests are sent, so the loop must continue.
      if (dropped.failure()) asked = which + 2;
      world.faults.none();
      const bool nothing = left(world).empty();
      CHECK(drop_log(world.context, "x") == !nothing);
      CHECK(left(world) == "");
    }
    CHECK(which > 20);
  }
}

TEST_CASE("eventlog drop: a server that does not answer is reported, and nothing else of the log is lost") {
  test::World world(3);
  put(world.others, long_chunks, "old");
  const std::string conf = EventLog(world.context, "x", long_chunks).keys().conf();
  world.memory.stop(world.memory.placement().server_of(conf));
  CHECK_THROWS_AS(drop_log(world.context, "x"), NotApplied);
  world.memory.proceed(world.memory.placement().server_of(conf));
  CHECK(has(world.others, "old"));
}

}  // namespace mcds::eventlog_drop_test
