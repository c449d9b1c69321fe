// Tables and hashes with several copies: what is left when servers lose everything.
#include <doctest/doctest.h>

#include <map>

#include "common/structures/elements/hash.hpp"
#include "tests/support/world.hpp"

namespace mcds {

namespace {

using Texts = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

struct World : test::World {
  World() : test::World(3, 2) {}

  Hash cfg{context, "cfg"};
  Elements& elements = cfg.elements();

  std::vector<bool> set(const Map& fields) {
    std::vector<Element> batch;
    for (const auto& [name, value] : fields) batch.push_back({name, value});
    std::vector<bool> created;
    for (const ElementResult& result : cfg.set(batch)) {
      CHECK_FALSE(result.failure);
      created.push_back(result.yes);
    }
    return created;
  }
  Map fetched() {
    Map all;
    const auto listing =
        elements.fetch([&](Elements::Found& found) { CHECK(all.emplace(found.name, found.value).second); });
    CHECK(listing.complete());
    return all;
  }
  ElementResult get(const std::string& name) { return cfg.get(std::span(&name, 1)).front(); }
  ElementResult remove(const std::string& name) { return elements.remove(std::span(&name, 1)).front(); }
};

Map numbered(int count) {
  Map fields;
  for (int i = 0; i < count; ++i) fields["f" + std::to_string(i)] = std::to_string(i);
  return fields;
}

}  // namespace

TEST_CASE(
    "elements, copies: any one server may lose everything, one after the other, with a healing read "
    "between") {
  World world;
  const Map fields = numbered(200);
  world.set(fields);
  for (std::size_t server : {0U, 1U, 2U, 0U, 2U}) {
    world.memory.restart(server);
    for (const auto& [name, value] : fields) CHECK(world.get(name).value == value);
    CHECK(world.fetched() == fields);
  }
  CHECK(world.elements.fetch([](Elements::Found&) {}).healed == 0);
}

TEST_CASE(
    "elements, copies: while one server is away everything new is set, and it stays listed when it is back") {
  for (const std::size_t away : {0U, 1U, 2U}) {
    for (const bool compacts : {false, true}) {
      World world;
      world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
        if (request.server == away) return test::Mishap::unreachable;
        return std::nullopt;
      });
      const Map fields = numbered(100);
      world.set(fields);
      CHECK(world.fetched() == fields);
      world.faults.none();
      // Longer than the grace: a name that is no element would be dropped.
      world.clock.advance(std::chrono::minutes(2));
      if (compacts) world.elements.compact();
      CHECK(world.fetched() == fields);
      CHECK(world.elements.fetch([](Elements::Found&) {}).copies_whole);
      for (std::size_t server = 0; server < 3; ++server) {
        world.memory.restart(server);
        CHECK(world.fetched() == fields);
      }
    }
  }
}

TEST_CASE("elements, copies: what is removed does not come back from a copy, nor by healing") {
  World world;
  world.set(numbered(50));
  CHECK(world.remove("f7").yes);
  CHECK_FALSE(world.remove("f7").yes);
  CHECK_FALSE(world.get("f7").yes);
  world.memory.restart(1);
  CHECK(world.fetched().size() == 49);
  CHECK_FALSE(world.get("f7").yes);
  CHECK(world.set({{"f7", "again"}}) == std::vector{true});
  CHECK(world.get("f7").value == "again");
  CHECK(world.fetched().size() == 50);
}

TEST_CASE("elements, copies: what is set over a tombstone is listed, though nobody had listed it") {
  World world;
  CHECK_FALSE(world.remove("a").yes);
  CHECK(world.set({{"a", "2"}}) == std::vector{true});
  CHECK(world.fetched() == Map{{"a", "2"}});
}

TEST_CASE("elements, copies: the round trips of one copy") {
  World world;
  world.set(numbered(200));
  CHECK(world.trips.trips_of([&] { world.set(numbered(200)); }) == 1);
  CHECK(world.trips.trips_of([&] { world.set({{"new", "1"}}); }) <= 4);
  CHECK(world.trips.trips_of([&] { world.get("f1"); }) == 1);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 2);
  CHECK(world.trips.trips_of([&] { world.remove("f1"); }) == 1);
}

TEST_CASE("elements, copies: each copy is told, and more than there are servers are refused") {
  World world;
  world.set({{"a", "1"}});
  CHECK(world.get("a").copies.size() == 2);
  CHECK(world.get("a").copies[0].server != world.get("a").copies[1].server);
  Context greedy = world.context;
  greedy.copies = 4;
  CHECK_THROWS_AS(Hash(greedy, "cfg"), InvalidInput);
}

TEST_CASE("elements, copies: a shard lost in every copy is told") {
  World world;
  world.set(numbered(200));
  const std::string shard = world.elements.index_keys()[4];
  world.memory.evict(shard);
  CHECK(world.elements.fetch([](Elements::Found&) {}).complete());
  for (std::size_t server = 0; server < 3; ++server) world.trips.execute(Request::remove(shard).on(server));
  const auto listing = world.elements.fetch([](Elements::Found&) {});
  CHECK(listing.lost == Texts{shard});
}

}  // namespace mcds
