// Tables, hashes and arrays whose keys have copies.
#include <doctest/doctest.h>

#include <set>

#include "common/structures/array.hpp"
#include "common/structures/hash.hpp"
#include "common/structures/table.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds {

namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

struct ElementsWorld {
  explicit ElementsWorld(std::size_t servers = 4)
      : memory(clock.time(), servers), trips(memory), faults(trips), context{faults, clock, random, {}, 2} {}
  Table table() { return Table(context, "t"); }
  Hash hash() { return Hash(context, "h"); }
  Array array() { return Array(context, "a"); }
  void cut_off(std::size_t server) {
    faults.choose([=](const Request& request) -> std::optional<test::Mishap> {
      if (request.server == server) return test::Mishap::unreachable;
      return std::nullopt;
    });
  }

  FakeClock clock;
  SeededRandom random{1};
  MemoryCluster memory;
  test::TripCounter trips;
  test::ScriptedFaults faults;
  Context context;
};

std::set<std::string> members(ElementsWorld& world, bool* complete = nullptr) {
  std::set<std::string> found;
  Table table = world.table();
  const auto listing = table.elements().fetch([&](Elements::Found& one) { found.insert(one.name); });
  if (complete != nullptr) *complete = listing.complete();
  CHECK(listing.present == found.size());
  return found;
}

}  // namespace

TEST_CASE("elements copies: as many trips as one copy") {
  ElementsWorld world;
  Table table = world.table();
  table.add(Names{"a"});
  CHECK(world.trips.trips_of([&] { table.add(Names{"a"}); }) == 1);
  CHECK(world.trips.trips_of([&] { table.has(Names{"a", "b"}); }) == 1);
  CHECK(world.trips.trips_of([&] { members(world); }) == 2);
  CHECK(world.trips.trips_of([&] { table.elements().remove(Names{"a"}); }) == 1);
  CHECK(members(world).empty());
}

TEST_CASE("elements copies: nothing is lost with one server, whichever, as long as a fetch comes between") {
  ElementsWorld world;
  std::set<std::string> added;
  for (std::size_t round = 0; round < 24; ++round) {
    Table table = world.table();
    for (int i = 0; i < 5; ++i) {
      const std::string name = "m" + std::to_string(round) + '.' + std::to_string(i);
      CHECK(table.add(Names{name}).front().yes);
      added.insert(name);
    }
    world.memory.restart(round % 4);
    bool complete = false;
    CHECK(members(world, &complete) == added);
    CHECK(complete);
    CHECK(members(world) == added);
  }
}

TEST_CASE("elements copies: what is removed stays removed, also over a lost copy") {
  ElementsWorld world;
  Table table = world.table();
  Names names;
  for (int i = 0; i < 40; ++i) names.push_back("m" + std::to_string(i));
  table.add(names);
  for (std::size_t round = 0; round < 8; ++round) {
    world.memory.restart(round % 4);
    for (const auto& result : table.elements().remove(std::span(names).subspan(round * 5, 5))) CHECK(result.yes);
    CHECK(members(world).size() == 35 - round * 5);
  }
}

TEST_CASE("elements copies: a server that cannot be reached keeps nobody from setting and getting") {
  ElementsWorld world;
  Hash hash = world.hash();
  for (std::size_t down = 0; down < 4; ++down) {
    world.cut_off(down);
    const std::string value = "v" + std::to_string(down);
    for (int i = 0; i < 10; ++i) {
      const std::string field = "f" + std::to_string(down) + '.' + std::to_string(i);
      const auto set = hash.set(std::vector<Element>{{field, value}}).front();
      CHECK_FALSE(set.failure);
      CHECK(set.copies.size() == 2);
      CHECK(hash.get(Names{field}).front().value == value);
    }
    world.faults.none();
  }
  std::size_t count = 0;
  hash.elements().fetch([&](Elements::Found&) { ++count; });
  CHECK(count == 40);
}

TEST_CASE("elements copies: a miss is only said when every copy said so") {
  ElementsWorld world;
  Hash hash = world.hash();
  CHECK_FALSE(hash.get(Names{"f"}).front().failure);
  world.cut_off(copy_servers(world.context, hash.elements().key_of("f"))[1]);
  CHECK(hash.get(Names{"f"}).front().failure);
}

TEST_CASE("elements copies: copies that differ become equal to the first") {
  ElementsWorld world;
  Hash hash = world.hash();
  hash.set(std::vector<Element>{{"f", "old"}});
  const std::string key = hash.elements().key_of("f");
  const auto servers = copy_servers(world.context, key);
  world.memory.execute(Request::set(key, "new", Exptime::never()).on(servers[0]));
  CHECK(hash.get(Names{"f"}).front().value == "new");
  CHECK(world.memory.server(servers[1]).peek(key)->value == "new");
}

TEST_CASE("elements copies: a member removed while a lost copy is re-filled does not come back") {
  ElementsWorld world;
  Table table = world.table();
  table.add(Names{"m"});
  const std::string key = table.elements().key_of("m");
  const auto servers = copy_servers(world.context, key);
  world.memory.restart(servers[1]);
  test::Rival rival(world.faults);
  Context context{rival, world.clock, world.random, {}, 2};
  // Behind the read that finds the copy lost.
  rival.before(1, [&] {
    for (const std::size_t server : servers) world.memory.execute(Request::remove(key).on(server));
  });
  Table(context, "t").has(Names{"m"});
  CHECK_FALSE(table.has(Names{"m"}).front().yes);
}

TEST_CASE("array copies: lines of two journals unite in the first's order") {
  const auto line = [](const char* id) { return JournalLine{Change::add, id, id}; };
  const std::vector<JournalLine> lost{line("5"), line("6")};
  const std::vector<JournalLine> kept{line("1"), line("2"), line("5"), line("7")};
  std::string order;
  for (const auto& one : unite(lost, kept)) order += one.id;
  CHECK(order == "12576");
}

TEST_CASE("array copies: nothing is lost with one server, whichever, as long as a fetch comes between") {
  ElementsWorld world;
  Array array = world.array();
  Names expected;
  for (std::size_t round = 0; round < 24; ++round) {
    const std::string value = '"' + std::to_string(round) + '"';
    array.change(Names{value}, {});
    expected.push_back(value);
    if (round % 5 == 4) {
      const std::string removed = expected.front();
      array.change({}, Names{removed});
      std::erase(expected, removed);
    }
    world.memory.restart(round % 4);
    if (round % 2 == 0) array.change(Names{"\"x\""}, {});
    if (round % 2 == 0) expected.push_back("\"x\"");
    const auto contents = array.fetch();
    CHECK(contents.elements == expected);
    CHECK(contents.complete);
    if (round % 6 == 5) {
      CHECK(array.compact());
      CHECK(array.fetch().elements == expected);
    }
  }
}

TEST_CASE("array copies: as many trips as one copy; a server that cannot be reached keeps nobody") {
  ElementsWorld world;
  Array array = world.array();
  array.change(Names{"1"}, {});
  CHECK(world.trips.trips_of([&] { array.change(Names{"2"}, {}); }) == 1);
  CHECK(world.trips.trips_of([&] { array.fetch(); }) == 1);
  Names expected{"1", "2"};
  for (std::size_t down = 0; down < 4; ++down) {
    world.cut_off(down);
    expected.push_back(std::to_string(down + 3));
    const auto changed = array.change(Names{expected.back()}, {});
    CHECK(changed.copies.size() == 2);
    CHECK(array.fetch().elements == expected);
    world.faults.none();
    CHECK(array.fetch().elements == expected);
  }
  CHECK_THROWS_AS(array.change(Names{"9"}, {}, ArrayEncoding::json), InvalidInput);
}

}  // namespace mcds
