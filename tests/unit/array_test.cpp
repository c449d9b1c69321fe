#include "common/structures/array/array.hpp"

#include <doctest/doctest.h>

#include <unordered_map>

#include "common/base/distinct.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/primitives/seal.hpp"
#include "tests/support/world.hpp"

namespace mcds::array_test {

namespace {

struct World : test::World {
  Array jobs{context, "jobs"};

  static std::vector<std::string> quoted(std::vector<std::string> values) {
    for (std::string& value : values) value = quote_bytes(value);
    return values;
  }
  void add(const std::vector<std::string>& values) {
    jobs.change(quoted(values), {}, ArrayEncoding::journal);
  }
  void remove(const std::vector<std::string>& values) {
    jobs.change({}, quoted(values), ArrayEncoding::journal);
  }
  std::vector<std::string> fetched() { return jobs.fetch().elements; }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("array: a line of an unknown form changes nothing and is reported") {
  for (const char* line : {"! 2.5 x", "= 2.5 x", "+ 2.5", "- 2.5", "! 2.5.x", "? 2.5"}) {
    World world;
    world.add({"a", "b"});
    world.memory.execute(Request::append("array:jobs", seal(line) + "\n"));
    const auto fetched = world.jobs.fetch();
    CHECK(fetched.elements == World::quoted({"a", "b"}));
    CHECK(fetched.loss.unknown == 1);
  }
}

TEST_CASE("array: added, removed, replaced, in the order of the changes") {
  World world;
  CHECK_FALSE(world.jobs.fetch().found);
  world.add({"a", "b", "a"});
  CHECK(world.fetched() == World::quoted({"a", "b", "a"}));
  world.remove({"a"});
  CHECK(world.fetched() == World::quoted({"b"}));
  world.jobs.change(World::quoted({"c"}), World::quoted({"b", "c"}), ArrayEncoding::journal);
  CHECK(world.fetched() == World::quoted({"c"}));
  world.jobs.replace(World::quoted({"x", "y"}), ArrayEncoding::journal);
  CHECK(world.fetched() == World::quoted({"x", "y"}));
  world.jobs.replace({}, ArrayEncoding::journal);
  CHECK(world.fetched().empty());
  CHECK(world.jobs.fetch().found);
}

TEST_CASE("array: of lines with one id the first counts, also among ids with one hash") {
  // Two ids whose hashes have the same upper half: about 2^16 tries.
  std::unordered_map<std::uint32_t, std::string> ids;
  std::string one, other;
  for (std::size_t n = 0; other.empty(); ++n) {
    std::string id = journal_line_id("a1b2c3d4e5f60718", n);
    const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>()(id) >> 32);
    const auto [there, added] = ids.emplace(hash, id);
    if (!added) std::tie(one, other) = std::pair(there->second, std::move(id));
  }
  std::string text;
  for (const auto& [id, element] :
       {std::pair(other, "\"1\""), {one, "\"2\""}, {other, "\"3\""}, {one, "\"4\""}})
    append_line(text, {Change::add, id, element});
  std::vector<JournalLineView> lines;
  report_journal_lines(text, [&](const JournalLineView& line) { lines.push_back(line); });
  keep_first_of_each(lines);
  CHECK(replay(lines) == World::quoted({"1", "2"}));
  // Repetitions are compared with the two, not with each other.
  std::vector<std::string> repeated(10'000, one);
  repeated.insert(repeated.end(), 10'000, other);
  std::size_t looks = 0;
  keep_first_of_each(repeated, [&](const std::string& id) {
    ++looks;
    return std::string_view(id);
  });
  CHECK(repeated == std::vector<std::string>{one, other});
  CHECK(looks <= 8 * 20'000);
}

TEST_CASE("array: a root that is shorter than what a string holds in place is read where it is moved to") {
  World world;
  std::string root = seal("J1 ");
  root += "\nx\n";
  REQUIRE(root.size() <= 16);
  world.context.cluster.execute(Request::set("array:jobs", root, Exptime::never()));
  CHECK(world.jobs.fetch().loss.lines == 1);
}

TEST_CASE("array: removals before and after the removal of everything") {
  const std::vector<std::pair<Change, std::string>> changes = {
      {Change::add, "a"}, {Change::add, "b"}, {Change::remove, "a"}, {Change::add, "a"}, {Change::clear, ""},
      {Change::add, "b"}, {Change::add, "c"}, {Change::remove, "b"}, {Change::add, "a"}, {Change::add, "b"}};
  std::vector<JournalLine> written;
  for (const auto& [change, element] : changes)
    written.push_back({change, journal_line_id("a1b2c3d4e5f60718", written.size()), element});
  CHECK(replay(std::vector<JournalLineView>(written.begin(), written.end())) ==
        std::vector<std::string>{"c", "a", "b"});
  CHECK(compacted(written).size() == 3);
}

TEST_CASE("array: any bytes come back as they were") {
  World world;
  const Texts values{"",
                     " ",
                     "+1",
                     "a\nb\r\n",
                     std::string("nul\0", 4),
                     "\xff\xfe",
                     "\"q\" *00000000",
                     std::string(10000, 'x')};
  world.add(values);
  Texts back;
  for (const std::string& element : world.fetched()) back.push_back(*unquote_bytes(element));
  CHECK(back == values);
}

TEST_CASE("array: one round trip to add or change, one to fetch") {
  World world;
  world.add({"first"});
  CHECK(world.trips.trips_of([&] { world.add({"a", "b"}); }) == 1);
  CHECK(world.trips.trips_of([&] {
    world.jobs.change(World::quoted({"c"}), World::quoted({"a"}), ArrayEncoding::journal);
  }) == 1);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 1);
}

TEST_CASE("array: past one item it goes on in segments and loses nothing") {
  World world;
  Texts all;
  for (int i = 0; i < 60; ++i) {
    Texts batch;
    for (int j = 0; j < 50; ++j)
      batch.push_back(std::to_string(i) + '/' + std::to_string(j) + std::string(1000, '.'));
    world.add(batch);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  CHECK(world.jobs.keys().size() > 2);
  CHECK(world.fetched() == World::quoted(all));
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 2);
  all.erase(all.begin(), all.begin() + 2000);
  Texts gone;
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 50; ++j)
      gone.push_back(std::to_string(i) + '/' + std::to_string(j) + std::string(1000, '.'));
  }
  for (std::size_t i = 0; i < gone.size(); i += 100) {
    world.remove(Texts(gone.begin() + static_cast<std::ptrdiff_t>(i),
                       gone.begin() + static_cast<std::ptrdiff_t>(i) + 100));
  }
  CHECK(world.fetched() == World::quoted(all));
  CHECK(world.fetched() == World::quoted(all));
}

TEST_CASE("array: 20,000 values that come and go leave a bounded journal, whoever is reported or reads") {
  for (const bool reported : {false, true}) {
    CAPTURE(reported);
    World world;
    for (int i = 0; i < 200; ++i) {
      Texts batch;
      for (int j = 0; j < 100; ++j) batch.push_back(std::to_string(100 * i + j) + std::string(100, '.'));
      world.add(batch);
      if (reported)
        CHECK(world.jobs.change_and_report({}, World::quoted(batch)).deleted == World::quoted(batch));
      else
        world.remove(batch);
    }
    CHECK(world.fetched().empty());
    const auto keys = world.jobs.keys();
    CHECK(keys.size() <= (reported ? 6 : 1));
    CHECK(Journal(world.context, "array:jobs").read().lines.size() < (reported ? 3 * 64 * 100 : 300));
  }
}

TEST_CASE("array: values that come and go without a reader leave a bounded journal") {
  World world;
  world.add({"stays"});
  for (int i = 0; i < 20000; i += 20) {
    Texts batch;
    for (int j = 0; j < 20; ++j) batch.push_back(std::to_string(i + j) + std::string(1000, '.'));
    world.add(batch);
    world.remove(batch);
  }
  CHECK(world.jobs.keys().size() < 10);
  CHECK(world.fetched() == World::quoted({"stays"}));
}

TEST_CASE("array: a fetch that compacts costs four trips more, once, and with segments ten") {
  World world;
  Texts many;
  for (int i = 0; i < 600; ++i) many.push_back(std::to_string(i));
  world.add(many);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 1);
  world.remove(many);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 5);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 1);
  for (int i = 0; i < 12; ++i) world.add({std::string(100000, 'x')});
  world.jobs.replace({});
  CHECK(world.trips.trips_of([&] { CHECK(world.fetched().empty()); }) == 2 + 10);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 1);
  CHECK(world.jobs.keys().size() == 1);
}

TEST_CASE("array: what a compaction meets does not show in the fetch that began it") {
  for (int trips = 0; trips < 6; ++trips) {
    for (const test::Mishap mishap :
         {test::Mishap::unreachable, test::Mishap::lost_reply, test::Mishap::lost_request}) {
      CAPTURE(trips);
      World world;
      Texts many;
      for (int i = 0; i < 1200; ++i) many.push_back(std::to_string(i));
      world.add(many);
      world.jobs.replace(World::quoted({"left"}));
      test::ScriptedFaults faulty(world.memory);
      int seen = 0;
      faulty.choose(
          [&](const Request&) { return ++seen > 1 + trips ? std::optional(mishap) : std::nullopt; });
      const Array reader({faulty, world.clock, world.random, {}}, "jobs");
      CHECK(reader.fetch().elements == World::quoted({"left"}));
      CHECK(world.fetched() == World::quoted({"left"}));
    }
  }
}

TEST_CASE("array: who deletes is reported, although the journal is compacted before it looks") {
  World world;
  Texts many;
  for (int i = 0; i < 2000; ++i) many.push_back(std::to_string(i));
  world.add(many);
  world.jobs.replace(World::quoted({"b", "c"}));
  test::ScriptedFaults rival(world.memory);
  bool compacted = false;
  rival.choose([&](const Request& request) {
    if (request.op == Op::get && !std::exchange(compacted, true)) world.fetched();
    return std::optional<test::Mishap>();
  });
  Array slow({rival, world.clock, world.random, {}}, "jobs");
  CHECK(slow.change_and_report({}, World::quoted({"b"})).deleted == World::quoted({"b"}));
  CHECK(compacted);
  CHECK(Journal(world.context, "array:jobs").read().lines.size() < 1500);
  CHECK(world.fetched() == World::quoted({"c"}));
}

TEST_CASE("array: its segments lie with its root") {
  World world;
  for (int i = 0; i < 30; ++i) world.add({std::string(100000, 'x')});
  const auto keys = world.jobs.keys();
  REQUIRE(keys.size() > 2);
  for (const PlacedKey& key : keys) CHECK(world.memory.server_for(keys[0].key).peek(key.key));
}

TEST_CASE("array: it has one copy, whatever number of copies is configured") {
  World world;
  Array jobs(world.with(3), "jobs");
  jobs.change(World::quoted({"a"}), {});
  CHECK(world.fetched() == World::quoted({"a"}));
  CHECK(test::left_in(world.memory) == Texts{"array:jobs"});
  CHECK(jobs.keys().front().key == "array:jobs");
}

TEST_CASE("array: a lost segment is reported, never a silently shorter list") {
  World world;
  for (int i = 0; i < 15; ++i) world.add({std::string(100000, 'x')});
  const auto keys = world.jobs.keys();
  REQUIRE(keys.size() > 1);
  CHECK(world.memory.server_for(keys[0].key).evict(keys[1].key));
  CHECK_FALSE(world.jobs.fetch().complete());
  CHECK(world.memory.evict(keys[0].key));
  CHECK_FALSE(world.jobs.fetch().found);
}

TEST_CASE("array: a foreign value is never taken for an empty array, and never overwritten") {
  World world;
  world.trips.execute(Request::set("array:jobs", "[1,2]", Exptime::never()));
  CHECK_THROWS_AS(world.fetched(), CorruptData);
  CHECK_THROWS_AS(world.jobs.drop(), CorruptData);
  CHECK(world.trips.execute(Request::get("array:jobs")).value == "[1,2]");
  world.trips.execute(Request::set("array:jobs:json", "{}", Exptime::never()));
  CHECK_THROWS_AS(world.jobs.replace(Texts{"1"}, ArrayEncoding::json), CorruptData);
  CHECK(world.trips.execute(Request::get("array:jobs:json")).value == "{}");
  for (const char* name : {"a:json", "a:s:0123456789abcdef", "a:s:other-client.1"})
    CHECK_THROWS_AS(Array(world.context, name), InvalidInput);
  CHECK_NOTHROW(Array(world.context, "a:s:b:c"));
}

TEST_CASE("array: the JSON encoding is one JSON array") {
  World world;
  world.jobs.change(Texts{"1", "\"1\"", "{\"id\":7}"}, {}, ArrayEncoding::json);
  world.jobs.change(Texts{"null"}, Texts{"1"}, ArrayEncoding::json);
  CHECK(world.trips.execute(Request::get("array:jobs:json")).value == R"(["1",{"id":7},null])");
  CHECK(world.fetched() == Texts{"\"1\"", "{\"id\":7}", "null"});
  CHECK(world.jobs.fetch().encoding == ArrayEncoding::json);
  world.jobs.replace({}, ArrayEncoding::json);
  CHECK(world.fetched().empty());
  CHECK_THROWS_AS(world.jobs.change(Texts{quote_bytes("\xff")}, {}, ArrayEncoding::json), Failure);
  CHECK_THROWS_AS(world.add({std::string(300 * 1024, 'x')}), InvalidInput);
}

TEST_CASE("array: it keeps the encoding of its first change") {
  World world;
  const Texts one{"1"};
  const Texts two{"2"};
  CHECK(world.jobs.change(one, {}, ArrayEncoding::json).created);
  const auto changed = world.jobs.change(two, one);
  CHECK(changed.found);
  CHECK_FALSE(changed.created);
  CHECK(changed.encoding == ArrayEncoding::json);
  CHECK(world.fetched() == two);
  CHECK_THROWS_AS(world.jobs.change(one, {}, ArrayEncoding::journal), Failure);
  CHECK_THROWS_AS(world.jobs.replace(one, ArrayEncoding::journal), Failure);
  Array other(world.context, "other");
  CHECK(other.change(one, {}).created);
  CHECK_THROWS_AS(other.change(one, {}, ArrayEncoding::json), Failure);
  CHECK(other.fetch().elements == one);
  CHECK(world.fetched() == two);
}

TEST_CASE("array: what only removes creates nothing") {
  World world;
  const Texts one{"1"};
  CHECK_FALSE(world.jobs.change({}, one).found);
  CHECK_FALSE(world.jobs.change({}, one, ArrayEncoding::json).found);
  CHECK_FALSE(world.jobs.fetch().found);
  CHECK(world.jobs.replace({}).created);
  CHECK(world.jobs.fetch().found);
}

TEST_CASE("array: a change that is executed late does nothing, although its id went through segments") {
  test::World world;
  const Journal::Options small{.segment_size = 50, .max_padding = 1024, .max_change = 50};
  const Texts first = World::quoted({std::string(9, 'a')}), next = World::quoted({std::string(60, 'b')});
  Array jobs(world.context, "jobs", small);
  jobs.change(first, {});
  const std::string root = world.trips.execute(Request::get("array:jobs")).value;
  const Request late = Request::append("array:jobs", root.substr(root.find('\n') + 1));
  const auto compact = [&] { CHECK(Journal(world.context, "array:jobs", small).compact(compacted)); };
  compact();
  for (int i = 0; i < 3; ++i) {
    jobs.replace(next);
    CHECK(world.trips.execute(late).outcome == Outcome::stored);
    CHECK(jobs.fetch().elements == next);
    compact();
    CHECK(jobs.fetch().elements == next);
  }
}

TEST_CASE("array: what a paused compaction has read does not come before what others compacted meanwhile") {
  test::World world;
  const Journal::Options small{.segment_size = 50, .max_padding = 1024};
  const Texts first = World::quoted({std::string(30, 'a')}), next = World::quoted({std::string(60, 'b')});
  Array jobs(world.context, "jobs", small);
  jobs.change(first, {});
  const std::string root = world.trips.execute(Request::get("array:jobs")).value;
  const Request late = Request::append("array:jobs", root.substr(root.find('\n') + 1));
  bool paused = false;
  Journal(world.context, "array:jobs", small).compact([&](const std::vector<JournalLine>& lines) {
    if (!std::exchange(paused, true)) {
      jobs.change(next, first);
      CHECK(Journal(world.context, "array:jobs", small).compact(compacted));
      CHECK(world.trips.execute(late).outcome == Outcome::stored);
    }
    return compacted(lines);
  });
  CHECK(jobs.fetch().elements == next);
}

TEST_CASE("array: the round trips that are not one") {
  World world;
  const Texts one{"1"};
  CHECK(world.trips.trips_of([&] { world.jobs.fetch(); }) == 2);
  CHECK(world.trips.trips_of([&] { world.jobs.change(one, {}); }) == 3);
  CHECK(world.trips.trips_of([&] { world.jobs.replace(one); }) == 1);
  CHECK(world.trips.trips_of([&] { world.jobs.drop(); }) == 3);
  Array json(world.context, "j");
  CHECK(world.trips.trips_of([&] { json.change(one, {}, ArrayEncoding::json); }) == 3);
  CHECK(world.trips.trips_of([&] { json.change(one, one, ArrayEncoding::json); }) == 2);
  CHECK(world.trips.trips_of([&] { json.change(one, one); }) == 4);
  CHECK(world.trips.trips_of([&] { json.fetch(ArrayEncoding::json); }) == 1);
  CHECK(world.trips.trips_of([&] { json.fetch(); }) == 2);
  CHECK(world.trips.trips_of([&] { json.drop(); }) == 3);
  CHECK(world.trips.trips_of([&] { json.drop(); }) == 2);
  for (int i = 0; i < 12; ++i) json.change(World::quoted({std::string(100000, 'x')}), {});
  CHECK(json.keys().size() > 1);
  CHECK(world.trips.trips_of([&] { json.drop(); }) == 7);
}

TEST_CASE("array: a replacement makes a lost segment void") {
  World world;
  for (int i = 0; i < 15; ++i) world.add({std::string(100000, 'x')});
  const auto keys = world.jobs.keys();
  CHECK(world.memory.server_for(keys.at(0).key).evict(keys.at(1).key));
  CHECK_FALSE(world.jobs.fetch().complete());
  world.jobs.replace(World::quoted({"new"}));
  CHECK(world.jobs.fetch().complete());
  CHECK(world.fetched() == World::quoted({"new"}));
  CHECK(world.fetched() == World::quoted({"new"}));
}

TEST_CASE("array: a replacement behind another program's bytes removes everything, and makes damage void") {
  World world;
  world.add({"old"});
  world.trips.execute(Request::append("array:jobs", "junk"));
  world.jobs.replace(World::quoted({"new"}));
  CHECK(world.jobs.fetch().complete());
  CHECK(world.fetched() == World::quoted({"new"}));
  world.trips.execute(Request::append("array:jobs", "junk + x y"));
  world.jobs.change(World::quoted({"newer"}), World::quoted({"new"}));
  CHECK_FALSE(world.jobs.fetch().complete());
  CHECK(world.fetched() == World::quoted({"newer"}));
  // A replacement that is executed again, late, has no effect, so damage since the first time is reported.
  const std::string cleared = encode(JournalLine{Change::clear, "b7c1e0f2a94d4f6e.0", {}});
  world.trips.execute(Request::append("array:jobs", "\n" + cleared + "damaged\n" + cleared));
  CHECK(world.jobs.fetch().loss.lines == 1);
}

TEST_CASE("array: what a change deleted under another program's value is bad data, not an unknown outcome") {
  World world;
  world.trips.execute(Request::set("array:jobs", "hello", Exptime::never()));
  CHECK_THROWS_AS(world.jobs.change_and_report({}, World::quoted({"x"})), CorruptData);
}

TEST_CASE("array: an application's flags and time to live of a JSON array are kept") {
  World world;
  Request request = Request::set("array:jobs:json", "[ 1, 2.50 ]",
                                 Exptime::after(std::chrono::seconds(100), world.clock.wall()));
  request.flags = 16;
  world.trips.execute(request);
  world.jobs.change(Texts{"3"}, Texts{"1"});
  const Reply reply = world.trips.execute(
      Request::probe("array:jobs:json", world.memory.placement().server_of("array:jobs:json")));
  CHECK(reply.value == "[2.50,3]");
  CHECK(reply.flags == 16);
  REQUIRE(reply.age.ttl.has_value());
  CHECK(reply.age.ttl->count() > 90);
  CHECK(reply.age.ttl->count() <= 101);
}

TEST_CASE("array: a replacement larger than one change is one step all the same") {
  World world;
  Texts many;
  for (int i = 0; i < 20000; ++i) many.push_back(std::to_string(i));
  world.add({"before"});
  const auto replace = [&] { CHECK_FALSE(world.jobs.replace(many).created); };
  const std::size_t trips = world.trips.trips_of(replace);
  CHECK(world.fetched() == many);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 2);
  world.add({"after"});
  CHECK(world.trips.trips_of(replace) == trips + 2);  // reads the last ids of segments, and removes them
  CHECK(world.fetched() == many);
  CHECK(Array(world.context, "new").replace(many).created);
  CHECK(Array(world.context, "j").change(Texts{"1"}, {}, ArrayEncoding::json).created);
  CHECK(Array(world.context, "j").replace(many).encoding == ArrayEncoding::json);
}

TEST_CASE(
    "array: a replacement by segments changes nothing where a later version has written, a small one keeps "
    "it") {
  World world;
  world.add({"old"});
  const std::string later = seal("~ 6b0e00271a7c1599.0 \"x\"") + '\n';
  world.memory.execute(Request::append("array:jobs", later));
  Texts many;
  for (int i = 0; i < 20000; ++i) many.push_back(std::to_string(i));
  CHECK_THROWS_AS(world.jobs.replace(many), CorruptData);
  CHECK(world.fetched() == World::quoted({"old"}));
  CHECK(test::left_in(world.memory) == Texts{"array:jobs"});
  world.jobs.replace(World::quoted({"new"}));
  CHECK(world.fetched() == World::quoted({"new"}));
  CHECK(world.stored("array:jobs").find(later) != std::string::npos);
  CHECK(world.jobs.fetch().loss.unknown == 1);
}

TEST_CASE("array: a replacement by segments finds what a later version has written in any old segment") {
  World world;
  const Journal::Options small{.segment_size = 600, .max_padding = 2048, .max_change = 1024};
  Array jobs(world.context, "jobs", small);
  Texts many;
  for (int i = 0; i < 3000; ++i) many.push_back(std::to_string(i));
  jobs.replace(many);
  const std::string first = jobs.keys().at(1).key;
  MemoryServer& server = world.memory.server_for("array:jobs");
  server.execute(Request::append(first, seal("~ 6b0e00271a7c1599.0 \"x\"") + '\n'));
  CHECK(jobs.fetch().loss.unknown == 1);
  CHECK_THROWS_AS(jobs.replace(many), CorruptData);
  CHECK(jobs.fetch().loss.unknown == 1);
}

namespace {

// Returns the keys of items that are no part of the array.
Texts left_over(World& world, const Array& jobs) {
  Texts left = test::left_in(world.memory);
  for (const PlacedKey& part : jobs.keys()) std::erase(left, part.key);
  return left;
}

}  // namespace

TEST_CASE("array: a replacement or compaction that gets no reply to its cas leaves no segments behind") {
  // In large segments, what a compaction leaves has room in the root.
  for (const std::size_t segment_size : {600, 32 * 1024}) {
    const Journal::Options small{.segment_size = segment_size, .max_padding = 2048, .max_change = 1024};
    for (std::size_t skip = 0; skip < 3; ++skip) {
      CAPTURE(segment_size);
      CAPTURE(skip);
      World world;
      Array jobs(world.context, "jobs", small);
      Texts many;
      for (int i = 0; i < 100; ++i) many.push_back(std::to_string(i));
      jobs.replace(many);
      world.faults.once(Op::cas, test::Mishap::lost_reply);
      jobs.replace(many);
      CHECK(jobs.keys().size() > 1);
      CHECK(left_over(world, jobs) == Texts());
      world.faults.none();
      for (; many.size() > 3; many.pop_back()) jobs.change({}, Texts{many.back()});
      world.faults.once(Op::cas, test::Mishap::lost_reply, skip);
      CHECK(Journal(world.context, "array:jobs", small).compact(compacted));
      CHECK(jobs.fetch().elements == many);
      CHECK(left_over(world, jobs) == Texts());
    }
  }
}

}  // namespace mcds::array_test
