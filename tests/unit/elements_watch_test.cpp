#include <doctest/doctest.h>

#include <algorithm>

#include "common/structures/elements/hash_watch.hpp"
#include "tests/support/world.hpp"

namespace mcds::elements_watch_test {

namespace {

using Texts = std::vector<std::string>;

struct World : test::World {
  explicit World(std::size_t copies = 1) : test::World(3, copies) {}

  void set(const std::string& name, const std::string& value) {
    const Element element{name, value};
    REQUIRE_FALSE(theirs().set(std::span(&element, 1)).front().failure);
  }
  void remove(const std::string& name) { REQUIRE(theirs().remove(std::span(&name, 1)).front().yes); }
  Elements& theirs() {
    if (!theirs_) theirs_.emplace(others, "hash", "cfg");
    return *theirs_;
  }
  std::optional<Elements> theirs_;
};

// Returns the changes as `name: before -> now`.
Texts reported(const ElementWatch::Look& look) {
  Texts lines;
  for (const auto& change : look.changes)
    lines.push_back(change.name + ": " + change.before.value_or("-") + " -> " + change.value.value_or("-"));
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

TEST_CASE("elements, watched: first what is there, then what changes, in one trip each time") {
  for (const std::size_t copies : {1, 2, 3}) {
    World world(copies);
    world.set("a", "1");
    world.set("b", "2");
    ElementWatch watch(world.context, "hash", "cfg", {});
    CHECK(reported(watch.look()) == Texts{"a: - -> 1", "b: - -> 2"});
    const auto trips_of_look = [&](const Texts& expected) {
      return world.trips.trips_of([&] { CHECK(reported(watch.look()) == expected); });
    };
    CHECK(trips_of_look({}) == 1);
    world.set("a", "3");
    CHECK(trips_of_look({"a: 1 -> 3"}) == 1);
    world.set("c", "4");
    CHECK(trips_of_look({"c: - -> 4"}) == 2);
    world.remove("b");
    trips_of_look({"b: 2 -> -"});
    CHECK(trips_of_look({}) == 1);
    world.set("b", "5");
    CHECK(trips_of_look({"b: - -> 5"}) == 1);
  }
}

TEST_CASE("elements, watched: given fields, also such as are not there yet") {
  World world;
  ElementWatch watch(world.context, "hash", "cfg", {"a", "x"});
  CHECK(reported(watch.look()).empty());
  world.set("a", "1");
  world.set("b", "2");
  CHECK(world.trips.trips_of([&] { CHECK(reported(watch.look()) == Texts{"a: - -> 1"}); }) == 1);
  world.remove("a");
  CHECK(reported(watch.look()) == Texts{"a: 1 -> -"});
  CHECK(world.trips.trips_of([&] { CHECK(reported(watch.look()).empty()); }) == 1);
}

TEST_CASE(
    "elements, watched: what a server does not tell is unchanged, and one that is begun again in another "
    "number "
    "of copies ends it") {
  World world;
  world.set("a", "1");
  ElementWatch watch(world.context, "hash", "cfg", {"a"});
  CHECK(watch.look().changes.size() == 1);
  world.faults.once(Op::get, test::Mishap::unreachable);
  const auto silent = watch.look();
  CHECK(silent.changes.empty());
  CHECK(silent.failure);
  CHECK(watch.look().changes.empty());
  Context two = world.others;
  two.copies = 2;
  CHECK(Elements(world.others, "hash", "cfg").drop());
  const Element anew{"a", "1"};
  CHECK_FALSE(Elements(two, "hash", "cfg").set(std::span(&anew, 1)).front().failure);
  world.clock.advance(std::chrono::seconds(2));
  CHECK_THROWS_AS(watch.look(), Failure);
}

TEST_CASE("elements, watched: many fields are asked for in windows") {
  World world;
  std::vector<Element> batch;
  for (int i = 0; i < 2500; ++i) batch.push_back({"f" + std::to_string(i), "v"});
  for (const auto& result : world.theirs().set(batch)) REQUIRE_FALSE(result.failure);
  ElementWatch watch(world.context, "hash", "cfg", {});
  CHECK(watch.look().changes.size() == 2500);
  const auto trips = world.trips.trips_of([&] {
    const auto look = watch.look();
    CHECK(look.changes.empty());
    CHECK(std::string(look.failure ? look.failure->what() : "") == "");
  });
  CHECK(trips == 3);
  for (const char* name : {"f0", "f1500", "f2499"}) world.set(name, "w");
  CHECK(watch.look().changes.size() == 3);
}

}  // namespace mcds::elements_watch_test
