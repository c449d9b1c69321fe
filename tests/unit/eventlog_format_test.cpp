#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "common/primitives/active_variants.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds::eventlog_format_test {

using namespace std::chrono_literals;

namespace {

const WallTime noon{1795234133945ms};

EventId some_id() {
  SeededRandom random(1);
  return EventIdSource(random).next(noon);
}

std::string line_of(std::string_view data, EventData kind = EventData::text) {
  std::string line;
  append_event_line(line, some_id(), data, kind);
  CHECK(line.back() == '\n');
  line.pop_back();
  return line;
}

}  // namespace

TEST_CASE("event ids: UUIDv7 of the event's millisecond, strictly growing, sorted as text") {
  SeededRandom random(3);
  EventIdSource source(random);
  EventId last;
  std::string last_text;
  for (int i = 0; i < 20000; ++i) {
    const WallTime at = noon + std::chrono::microseconds(i * 37);
    const EventId id = source.next(at);
    const std::string text = id.text();
    CHECK(text.size() == event_id_size);
    CHECK(text[14] == '7');
    CHECK(std::string_view("89ab").find(text[19]) != std::string_view::npos);
    CHECK(EventId::parse(text) == id);
    CHECK(id.time() == std::chrono::floor<std::chrono::milliseconds>(at));
    CHECK(id > last);
    CHECK(text > last_text);
    last = id;
    last_text = text;
  }
}

TEST_CASE("event ids: a million in one millisecond are distinct and keep it") {
  SeededRandom random(4);
  EventIdSource source(random);
  EventId last = source.next(noon);
  bool fine = true;
  for (int i = 0; i < 1000000; ++i) {
    const EventId id = source.next(noon);
    fine = fine && id > last && id.time() == noon;
    last = id;
  }
  CHECK(fine);
}

TEST_CASE("event ids: nothing else is one") {
  const std::string good = some_id().text();
  for (std::string bad :
       {std::string(), good + "0", good.substr(1), std::string(36, '0'), std::string(36, '-')}) {
    CHECK_FALSE(EventId::parse(bad));
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = 'X';
    CHECK_FALSE(EventId::parse(bad));
  }
}

TEST_CASE("event lines: any bytes come back exactly, text as a JSON string") {
  for (const std::string& data :
       {std::string(), std::string("v1.4.2 ok"), std::string("a\nb\r\n\t\"\\ *"), std::string("\0x\x01", 3),
        std::string("\xff\xfe"), std::string("b\"AAAA\""), std::string("gr\xc3\xbc\xc3\x9f"),
        std::string("{\"b64\":\"\"}"), std::string("\xe2\x80\xa8"), std::string(100000, '\xff'),
        std::string("x *12345678")}) {
    const std::string line = line_of(data);
    CHECK(line.find('\n') == std::string::npos);
    const auto event = parse_event_line(line);
    REQUIRE(event);
    CHECK(event->bytes() == data);
    CHECK(event->id == some_id());
  }
  CHECK(line_of("v1.4.2 ok").substr(event_id_size, 14) == " \"v1.4.2 ok\" *");
  CHECK(line_of("\xff").substr(event_id_size, 10) == " b\"/w==\" *");
}

TEST_CASE("event lines: JSON comes back as the same JSON, its numbers with all digits") {
  const auto stored = [](std::string_view json) {
    const std::string line = line_of(json, EventData::json);
    return parse_event_line(line)->bytes();
  };
  CHECK(stored(" {\"b\" : [1, 2.50, 12345678901234567890123],\n \"a\":\" x \\\" y \"} ") ==
        "{\"b\":[1,2.50,12345678901234567890123],\"a\":\" x \\\" y \"}");
  CHECK(stored("null") == "null");
  CHECK(stored("\"text\"") == "text");
  CHECK(stored("-0.0") == "-0.0");
  for (const char* bad : {"", "{", "b\"\"", "nul", "'x'", "{\"a\":1} x", "\"\xff\"", "01"}) {
    CAPTURE(bad);
    std::string out = "before";
    CHECK_THROWS_AS(append_event_line(out, some_id(), bad, EventData::json), Failure);
    CHECK(out == "before");
  }
}

TEST_CASE("event lines: every changed, missing or added byte is noticed") {
  const std::string line = line_of("some data");
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_FALSE(parse_event_line(changed));
    CHECK_FALSE(parse_event_line(line.substr(0, i)));
    CHECK_FALSE(parse_event_line(line.substr(i + 1)));
  }
  CHECK_FALSE(parse_event_line(line + " "));
  CHECK_FALSE(parse_event_line(""));
}

TEST_CASE("event lines: one that foreign bytes stand before is found again") {
  const std::string line = line_of("some data");
  CHECK(salvage_event_line("garbage 7" + line)->bytes() == "some data");
  CHECK(salvage_event_line(line.substr(0, 40) + line)->bytes() == "some data");
  std::string ids;
  for (int i = 0; i < 100; ++i) ids += line.substr(0, event_id_size + 1);
  CHECK(salvage_event_line(ids + line)->bytes() == "some data");
  CHECK_FALSE(salvage_event_line("garbage"));
  CHECK_FALSE(salvage_event_line(std::string(100000, '-')));
}

TEST_CASE("event lines: one that fits no item is refused and leaves the batch as it was") {
  std::string batch = "before";
  const std::string huge(max_value_size, 'x');
  CHECK_THROWS_AS(append_event_line(batch, some_id(), huge, EventData::text), Failure);
  CHECK(batch.substr(0, 6) == "before");
  CHECK(batch.size() == 6);
  append_event_line(batch, some_id(), std::string_view(huge).substr(0, max_value_size - 200),
                    EventData::text);
  CHECK(batch.size() > 6);
}

TEST_CASE("ring shapes: chunk boundaries, expiry from the boundary, text") {
  const RingShape shape = RingShape::of(60s, 60);
  CHECK(shape.text() == "60x60");
  CHECK(RingShape::parse("60x60") == shape);
  const auto chunk = shape.chunk_of(noon);
  CHECK(chunk == 29920568);
  CHECK(shape.chunk_of(shape.start_of(chunk)) == chunk);
  CHECK(shape.chunk_of(shape.start_of(chunk) - 1us) == chunk - 1);
  CHECK(shape.expiry_of(chunk) == shape.start_of(chunk + 61) + 32s);
  for (const char* bad : {"", "x", "60", "60x", "x60", "0x60", "60x0", "-1x5", "60x60x60", "60x100001"}) {
    CHECK_FALSE(RingShape::parse(bad));
  }
  CHECK_THROWS_AS(RingShape::of(500ms, 60), InvalidInput);
  CHECK_THROWS_AS(RingShape::of(0s, 60), InvalidInput);
  CHECK_THROWS_AS(RingShape::of(1500ms, 60), InvalidInput);
  CHECK_THROWS_AS(RingShape::of(60s, 0), InvalidInput);
  CHECK_THROWS_AS(RingShape::of(60s, 100001), InvalidInput);
}

TEST_CASE("eventlog: the worked example of the layout") {
  const std::string incarnation = "5f3a9c0d1e2b4a67";
  CHECK(part_header({29920568, 0}, incarnation) == "E1 29920568 5f3a9c0d1e2b4a67 *c05e65d1\n");
  std::string line;
  append_event_line(line, *EventId::parse("01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18"), "v1.4.2 ok",
                    EventData::text);
  CHECK(line == "01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18 \"v1.4.2 ok\" *caf894b4\n");
  CHECK(EventId::parse("01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18")->time() == noon);
  CHECK(named_line({29920568, 0}, incarnation, noon) == "N 29920568 5f3a9c0d1e2b4a67 1795234133 *a1283e22\n");
}

TEST_CASE("keys, headers, directory and conf lines: what is written is read, what is not is refused") {
  const LogKeys keys("eventlog:deploys", RingShape::of(60s, 60));
  CHECK(keys.part({29920568, 0}) == "eventlog:deploys:60x60:29920568");
  CHECK(keys.part({29920568, 12}) == "eventlog:deploys:60x60:29920568.12");
  CHECK(keys.directory(935017) == "eventlog:deploys:60x60:dir:935017");
  CHECK(keys.conf() == "eventlog:deploys:conf");

  const std::string incarnation = "5f3a9c0d1e2b4a67";
  const std::string header = part_header({29920568, 3}, incarnation);
  CHECK(header.starts_with("E1 29920568.3 5f3a9c0d1e2b4a67 *"));
  const std::string part = header + "more";
  const auto parsed = parse_part_header(part, {29920568, 3});
  REQUIRE(parsed);
  CHECK(parsed->incarnation == incarnation);
  CHECK(parsed->size == header.size());
  CHECK_FALSE(parse_part_header(header, {29920568, 0}));
  for (std::size_t i = 0; i < header.size(); ++i)
    CHECK_FALSE(parse_part_header(header.substr(0, i), {29920568, 3}));

  std::string named = named_line({7, 1}, incarnation, noon);
  named.pop_back();
  const auto line = parse_directory_line(named);
  REQUIRE(line);
  CHECK(line->named);
  CHECK(line->name == PartName{7, 1});
  CHECK(line->incarnation == incarnation);
  CHECK(line->at == std::chrono::floor<std::chrono::seconds>(noon));
  std::string withdrawn = withdrawn_line({7, 1}, incarnation);
  withdrawn.pop_back();
  REQUIRE(parse_directory_line(withdrawn));
  CHECK_FALSE(parse_directory_line(withdrawn)->named);
  CHECK_FALSE(parse_directory_line("N 7 zz 1"));
  for (const std::string& line_of_ours : {named, withdrawn}) {
    const auto behind = parse_directory_line("N 1 W 2 garbage" + line_of_ours);
    REQUIRE(behind);
    CHECK(behind->follows_foreign);
    CHECK(behind->name == PartName{7, 1});
  }
  CHECK_FALSE(line->follows_foreign);

  const WallTime now(1795234133s);
  const std::vector<RingShape> shapes{{60, 60}, {1, 10}};
  CHECK(shapes_in(parse_active_variants(
            active_variants_value({{"60x60", now + 1h}, {"5x5", now}, {"x", now + 1h}, {"1x10", now + 1s}}),
            now)) == shapes);
  CHECK(shapes_in(parse_active_variants(seal("P1 60x60") + '\n' + seal("P1 1x10"), now)).empty());
  CHECK(shapes_in(parse_active_variants("P1 1x10", now)).empty());
  // A later version's line stays, also beside lines that have ended and damaged ones.
  const std::string later = seal("P2 60x60 7 later") + '\n';
  const std::string there = active_variants_value({{"5x5", now - 1s}}) + later + "P1 torn";
  Reply seen = Reply::of(Outcome::hit, 0);
  seen.value = there;
  CHECK(record_active_variant("eventlog:x:conf", seen, {"60x60", now + 1h}, now).value ==
        later + active_variants_value({{"60x60", now + 1h}}));
  CHECK(shapes_in(parse_active_variants("", now)).empty());
}

}  // namespace mcds::eventlog_format_test
