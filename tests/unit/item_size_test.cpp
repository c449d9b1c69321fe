// Servers with small items: which changes are divided, which are refused, and what is reported.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/primitives/seal.hpp"
#include "common/structures/array/array.hpp"
#include "common/structures/elements/hash.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/world.hpp"

namespace mcds::item_size_test {

namespace {

using Texts = std::vector<std::string>;
using Pieces = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr MemoryServerOptions small_items{.item_size = 8 << 10};

// Returns the pieces sent of `count` values, if at most `most` are accepted at once, and none from `end` on.
Pieces sent(std::size_t count, std::size_t most, std::size_t end) {
  Pieces pieces;
  const auto send = [&](std::size_t first, std::size_t last) {
    if (last - first > most || last > end) throw NotApplied(ErrorCode::refused, "too large");
    pieces.emplace_back(first, last);
  };
  if (end < count)
    CHECK_THROWS_AS(in_pieces(count, send), NotApplied);
  else
    in_pieces(count, send);
  return pieces;
}

Texts numbered(std::size_t count) {
  Texts values;
  for (std::size_t i = 0; i < count; ++i) values.push_back("\"value " + std::to_string(i) + '"');
  return values;
}

}  // namespace

TEST_CASE("item size: pieces are sent in order, and nothing behind what is refused") {
  CHECK(sent(0, 1, 9).empty());
  CHECK(sent(5, 9, 9) == Pieces{{0, 5}});
  CHECK(sent(5, 2, 9) == Pieces{{0, 1}, {1, 3}, {3, 5}});
  CHECK(sent(8, 4, 6) == Pieces{{0, 1}, {1, 5}, {5, 6}});
  CHECK(sent(3, 1, 0).empty());
  const auto lost = [](std::size_t, std::size_t) { throw UnknownOutcome("no reply"); };
  CHECK_THROWS_AS(in_pieces(4, lost), UnknownOutcome);
}

TEST_CASE("item size: a server that refuses one alone is asked no more") {
  int asked = 0;
  const auto refuse = [&](std::size_t, std::size_t) {
    ++asked;
    throw NotApplied(ErrorCode::refused, "out of memory");
  };
  CHECK_THROWS_AS(in_pieces(30'000, refuse), NotApplied);
  CHECK(asked == 2);
}

TEST_CASE("item size: an array is replaced, emptied and compacted, and dropped") {
  test::World world(3, 1, small_items);
  const Texts values = numbered(1000);
  Array(world.context, "jobs").replace(values);
  CHECK(Array(world.context, "jobs").fetch().elements == values);
  for (std::size_t i = 0; i < values.size(); i += 50)
    Array(world.context, "jobs").change({}, std::span(values).subspan(i, 50));
  CHECK(Array(world.context, "jobs").fetch().elements.empty());
  CHECK(Array(world.context, "jobs").fetch().elements.empty());
  Array(world.context, "jobs").replace(values);
  CHECK(Array(world.context, "jobs").drop());
  CHECK(test::left_in(world.memory).empty());
}

TEST_CASE("item size: a change that has no room beside the names of segments is refused, not waited for") {
  test::World world(1, 1, small_items);
  Array array(world.context, "jobs");
  std::size_t stored = 0;
  try {
    for (; stored < 1000; ++stored) array.change(Texts{'"' + std::string(3000, 'v') + '"'}, {});
  } catch (const NotApplied& refusal) {
    CHECK(refusal.code() == ErrorCode::refused);
  }
  CHECK(stored > 100);
  CHECK(stored < 1000);
  CHECK(Array(world.context, "jobs").fetch().elements.size() == stored);
}

TEST_CASE("item size: of a batch of events of which a part is refused, it is reported how many are stored") {
  for (const std::size_t copies : {1U, 2U}) {
    test::World world(3, copies, small_items);
    const RingShape shape{60, 10};
    EventLog log(world.context, "x", shape);
    std::size_t stored = 0;
    std::optional<EventLog::Flushed> flushed;
    while (!flushed || !flushed->failure) {
      while (log.stage(std::string(100, 'x'), EventData::text)) {
      }
      flushed = log.flush();
      stored += flushed->events;
      REQUIRE(stored < 100'000);
    }
    CHECK(flushed->failure->code() == ErrorCode::refused);
    CollectingSink sink;
    EventLog(world.context, "x", shape).fetch({}, sink);
    CHECK(sink.events.size() == stored);
    CHECK(std::any_of(sink.events.begin(), sink.events.end(),
                      [&](const auto& event) { return event.id == *flushed->last; }));
  }
}

}  // namespace mcds::item_size_test
