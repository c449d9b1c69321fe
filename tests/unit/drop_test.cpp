// Dropped structures: nothing of them remains, whichever client dies meanwhile.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/json.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/array/array.hpp"
#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/index.hpp"
#include "common/structures/lock/lock.hpp"
#include "common/structures/visitors/visitors.hpp"
#include "tests/support/move_world.hpp"

namespace mcds::drop_test {

namespace {

using namespace std::chrono_literals;

const Journal::Options small{.segment_size = 600, .max_padding = 2048, .max_change = 4096};

std::string joined(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) line += text + ' ';
  return line;
}

void fill(const Context& context, const std::string& structure, const std::string& name, std::size_t count) {
  std::vector<Element> elements;
  for (std::size_t i = 0; i < count; ++i) elements.push_back({std::to_string(i), "value"});
  for (const ElementResult& result : Elements(context, structure, name, small).set(elements))
    CHECK(!result.failure);
}

// Fills a table whose index has segments.
void fill_in_segments(const Context& context, const std::string& name) {
  fill(context, "table", name, 1000);
  for (const std::string& key : Elements(context, "table", name, small).index_keys())
    Journal(context, key, small).compact([](const auto& lines) { return lines; });
}

void fill_array(const Context& context, const std::string& name, std::size_t count) {
  std::vector<std::string> elements;
  for (std::size_t i = 0; i < count; ++i) elements.push_back(quote_bytes("element " + std::to_string(i)));
  Array(context, name, small).replace(elements);
}

struct Shape {
  std::size_t servers, copies;
};

}  // namespace

TEST_CASE("drop: an array that others read, and so compact, while it is dropped leaves nothing") {
  for (std::size_t trip = 0; trip < 8; ++trip) {
    CAPTURE(trip);
    test::World world(5);
    fill_array(world.others, "a", 300);
    world.rival.before(trip, [&] { static_cast<void>(Array(world.others, "a", small).fetch()); });
    CHECK(Array(world.context, "a", small).drop());
    CHECK(joined(test::left_in(world.memory)) == "");
  }
}

TEST_CASE("drop: another program's value under the key of an array's part stays, and nothing is removed") {
  test::World world;
  fill_array(world.others, "a", 300);
  const auto keys = Array(world.others, "a", small).keys();
  REQUIRE(keys.size() > 2);
  MemoryServer& server = world.memory.server_for(keys[0].key);
  server.execute(Request::set(keys[2].key, "theirs", Exptime::never()));
  const std::string root = world.stored("array:a");
  CHECK_THROWS_AS(Array(world.context, "a", small).drop(), CorruptData);
  CHECK(world.stored("array:a") == root);
  CHECK(server.peek(keys[2].key)->value == "theirs");
}

TEST_CASE("drop: a table that gets no reply when parts of its index are removed leaves nothing") {
  for (const auto& [servers, copies] : {Shape{1, 1}, Shape{4, 2}}) {
    CAPTURE(copies);
    test::World world(servers, copies);
    fill_in_segments(world.others, "t");
    REQUIRE(joined(test::left_in(world.memory)).find(":s:") != std::string::npos);
    // A server that did not answer is not asked at once.
    std::map<std::string, int> refused;
    world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      const bool of_index = request.key.find(":i:") != std::string::npos;
      if (request.op == Op::remove_if && of_index) {
        refused[request.key] = 2;
        return test::Mishap::lost_reply;
      }
      if (request.op != Op::get || refused[request.key] == 0) return std::nullopt;
      --refused[request.key];
      return test::Mishap::unreachable;
    });
    CHECK(Elements(world.context, "table", "t", small).drop());
    CHECK(joined(test::left_in(world.memory)).find(":i:") == std::string::npos);
  }
}

TEST_CASE("drop: a table that others compact while it is dropped leaves nothing") {
  for (std::size_t trip = 0; trip < 12; ++trip) {
    CAPTURE(trip);
    test::World world(5);
    fill_in_segments(world.others, "t");
    std::vector<std::string> removed;
    for (int i = 0; i < 700; ++i) removed.push_back(std::to_string(i));
    Elements others(world.others, "table", "t", small);
    others.remove(removed);
    world.clock.advance(ElementIndex::grace + 1s);
    world.rival.before(trip, [&] { others.compact(); });
    CHECK(Elements(world.context, "table", "t", small).drop());
    CHECK(joined(test::left_in(world.memory)) == "");
  }
}

TEST_CASE("drop: a part of an index that only a later version can read goes with it") {
  test::World world;
  fill_in_segments(world.others, "t");
  for (const std::string& key : test::left_in(world.memory)) {
    if (key.find(":s:") == std::string::npos) continue;
    const std::string later = seal("~ 6b0e00271a7c1599.0 \"x\"") + '\n';
    world.memory.server_for(key.substr(0, key.find(":s:")))
        .execute(Request::set(key, later, Exptime::never()));
  }
  CHECK(Elements(world.context, "table", "t", small).drop());
  CHECK(joined(test::left_in(world.memory)).find(":i:") == std::string::npos);
}

TEST_CASE("drop: another program's value under the key of a part of an index stays") {
  test::World world;
  fill_in_segments(world.others, "t");
  std::string segment;
  for (const std::string& key : test::left_in(world.memory)) {
    if (key.find(":s:") != std::string::npos) segment = key;
  }
  REQUIRE(segment != "");
  std::size_t changed = 0;
  for (std::size_t server = 0; server < world.memory.size(); ++server) {
    if (!world.memory.server(server).peek(segment)) continue;
    world.memory.server(server).execute(Request::set(segment, "theirs", Exptime::never()));
    ++changed;
  }
  CHECK(changed == 1);
  Elements table(world.context, "table", "t", small);
  CHECK(!table.fetch([](Elements::Found&) {}).complete());
  CHECK(table.drop());
  std::string left = joined(test::left_in(world.memory));
  CHECK(left.find(segment) != std::string::npos);
  CHECK(left.find(":i:") == left.rfind(":i:"));
}

TEST_CASE("drop: an hour later the servers are empty, whatever was made and used") {
  for (const auto& [servers, copies] : {Shape{1, 1}, Shape{3, 1}, Shape{3, 2}, Shape{5, 3}}) {
    CAPTURE(servers);
    CAPTURE(copies);
    test::World world(servers, copies);
    for (const std::string structure : {"table", "hash"}) {
      fill(world.context, structure, "used", 300);
      Elements elements(world.context, structure, "used", small);
      elements.remove(std::vector<std::string>{"7", "8"});
      CHECK(elements.drop());
      CHECK(!elements.drop());
    }
    fill_array(world.context, "used", 100);
    CHECK(Array(world.context, "used", small).drop());
    CHECK(!Array(world.context, "used", small).drop());
    Array(world.context, "json").replace({}, ArrayEncoding::json);
    CHECK(Array(world.context, "json").drop());
    Visitors(world.context, "used", 10s).hit();
    Visitors(world.context, "used", 300s).hit();
    CHECK(Visitors::drop(world.context, "used"));
    CHECK(!Visitors::drop(world.context, "used"));
    world.clock.advance(1h + 3s);
    CHECK(joined(test::left_in(world.memory)) == "");
  }
}

TEST_CASE("drop: what is made under the same name afterwards is another, and whole") {
  for (const auto& [servers, copies] : {Shape{1, 1}, Shape{4, 1}, Shape{4, 2}}) {
    CAPTURE(servers);
    CAPTURE(copies);
    test::World world(servers, copies);
    for (int round = 0; round < 3; ++round) {
      fill(world.context, "hash", "cfg", 50);
      std::size_t found = 0;
      const auto listing =
          Elements(world.context, "hash", "cfg", small).fetch([&](Elements::Found&) { ++found; });
      CHECK(listing.complete());
      CHECK(found == 50);
      CHECK(Elements(world.context, "hash", "cfg", small).drop());
    }
  }
}

// Another client that finds a part missing completes the drop, and then creates a structure of its own.
TEST_CASE("drop: killed at any trip, and the next client finds none of it or all of its own") {
  for (const auto& [servers, copies] : {Shape{1, 1}, Shape{4, 1}, Shape{4, 2}}) {
    for (int trips = 0; trips < 40; ++trips) {
      CAPTURE(servers);
      CAPTURE(copies);
      CAPTURE(trips);
      test::World world(servers, copies);
      fill(world.others, "table", "t", 30);
      fill_array(world.others, "a", 30);
      const auto killed = [&](const auto& act) {
        int left = trips;
        test::Killing dying(world.memory, left);
        try {
          act(Context{dying, world.clock, world.random, {}, copies});
        } catch (const test::Killed&) {
        }
      };
      killed([](const Context& context) { Elements(context, "table", "t", small).drop(); });
      killed([](const Context& context) { Array(context, "a", small).drop(); });
      const std::vector<Element> mine{{"mine", "1"}};
      CHECK(!Elements(world.others, "table", "t", small).set(mine).front().failure);
      bool found = false;
      const auto listing = Elements(world.others, "table", "t", small).fetch([&](Elements::Found& one) {
        found = found || one.name == "mine";
      });
      CHECK(listing.complete());
      CHECK(found);
      const std::vector<std::string> element{quote_bytes("mine")};
      Array(world.others, "a", small).change(element, {});
      const auto contents = Array(world.others, "a", small).fetch();
      CHECK(contents.complete());
      CHECK(contents.elements.back() == element.front());
      CHECK(Elements(world.others, "table", "t", small).drop());
      CHECK(Array(world.others, "a", small).drop());
      world.clock.advance(1h + 3s);
      CHECK(joined(test::left_in(world.memory)) == "");
    }
  }
}

TEST_CASE("lock: a thousand names used once leave nothing, a week after their fences began") {
  for (const std::size_t copies : {1, 3}) {
    test::World world(3, copies);
    world.clock.advance(30min);  // servers vote once they are older than any lock
    std::uint64_t last = 0;
    for (int i = 0; i < 1000; ++i) {
      Lock lock(world.context, "job-" + std::to_string(i));
      const auto answer = lock.acquire({.ttl = 10s, .holder = {}, .fence = true});
      REQUIRE(answer.lease);
      CHECK(*answer.lease->fence > last);
      lock.release(*answer.lease);
    }
    CHECK(test::left_in(world.memory).size() >= 1000);
    // The fence of a lock in use continues to grow after it has expired.
    for (int day = 0; day < 30; ++day) {
      const auto answer = Lock(world.context, "often").acquire({.ttl = 10s, .holder = {}, .fence = true});
      REQUIRE(answer.lease);
      CHECK(*answer.lease->fence > last);
      last = *answer.lease->fence;
      Lock(world.context, "often").release(*answer.lease);
      world.clock.advance(24h);
    }
    world.clock.advance(192h);
    auto left = test::left_in(world.memory);
    std::erase_if(left, [](const std::string& key) { return key.starts_with("lockserver:"); });
    CHECK(joined(left) == "");
  }
}

TEST_CASE("lock: forget removes the fences of what nobody holds") {
  test::World world;
  Lock lock(world.context, "job");
  const auto answer = lock.acquire({.ttl = 10s, .holder = {}, .fence = true});
  REQUIRE(answer.lease);
  CHECK(Lock::forget(world.context, "job") == Lock::Forgotten::held);
  lock.release(*answer.lease);
  CHECK(Lock::forget(world.context, "job") == Lock::Forgotten::forgotten);
  CHECK(Lock::forget(world.context, "job") == Lock::Forgotten::nothing);
  CHECK(test::left_in(world.memory).empty());
  world.clock.advance(1s);
  const auto next = lock.acquire({.ttl = 10s, .holder = {}, .fence = true});
  REQUIRE(next.lease);
  CHECK(*next.lease->fence > *answer.lease->fence);
}

}  // namespace mcds::drop_test
