// Stores an item over any existing one.
#include <doctest/doctest.h>

#include "common/primitives/cas_update.hpp"
#include "tests/support/world.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

std::vector<Reply> stored(World& world, const std::vector<std::string>& keys, Op first) {
  std::vector<Request> items;
  for (const std::string& key : keys) items.push_back(Request::set(key, "new", Exptime::never()));
  return store(world.trips, items, first);
}

}  // namespace

TEST_CASE("store: one trip if the first command will do for all, else two, and one more for a rival") {
  World world;
  CHECK(world.trips.trips_of([&] { stored(world, {"a", "b"}, Op::add); }) == 1);
  CHECK(world.trips.trips_of([&] { stored(world, {"a", "b"}, Op::replace); }) == 1);
  CHECK(world.trips.trips_of([&] { stored(world, {"a", "c"}, Op::replace); }) == 2);
  world.rival.before(world.rival.trips() + 1,
                     [&] { world.memory.execute(Request::set("d", "rival", Exptime::never())); });
  CHECK(world.trips.trips_of([&] { stored(world, {"d"}, Op::replace); }) == 3);
  for (const char* key : {"a", "b", "c", "d"}) CHECK(world.stored(key) == "new");
}

TEST_CASE("store: a refused item leaves the older value, and one that rivals store and remove is refused") {
  World world;
  world.memory.execute(Request::set("k", "older", Exptime::never()));
  world.faults.once(Op::replace, Mishap::refused);
  CHECK(stored(world, {"k"}, Op::replace).front().is(ReplyFailure::Kind::refused));
  CHECK(world.stored("k") == "older");
  bool there = true;
  world.rival.always([&] {
    there = !there;
    world.memory.execute(there ? Request::set("k", "rival", Exptime::never()) : Request::remove("k"));
  });
  CHECK(stored(world, {"k"}, Op::replace).front().is(ReplyFailure::Kind::refused));
}
