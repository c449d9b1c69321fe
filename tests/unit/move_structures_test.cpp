// Moves structures together with their parts and their known losses.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/operations/move/move.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/array/array.hpp"
#include "tests/support/move_world.hpp"

namespace mcds::move_structures_test {

namespace {

using test::MoveWorld;
using Texts = std::vector<std::string>;

// Returns the name of an array whose server changes.
std::string moving_name(const MoveWorld& world) {
  for (int i = 0;; ++i) {
    const std::string name = "jobs" + std::to_string(i);
    if (world.memory.placement().server_of("array:" + name) !=
        world.after.placement().server_of("array:" + name))
      return name;
  }
}

}  // namespace

TEST_CASE("move: an array goes with its segments, and is united where both have changed") {
  MoveWorld world;
  const std::string name = moving_name(world);
  const Journal::Options small{.segment_size = 600, .max_padding = 2048, .max_change = 1024};
  const Context old_context{world.memory, world.clock, world.random, {}, 1};
  const Context new_context{world.after, world.clock, world.random, {}, 1};
  for (std::size_t i = 0; i < 3; ++i) world.memory.server(i).options().item_size = 4096;
  Array before(old_context, name, small);
  Texts all;
  for (int i = 0; i < 300; ++i) {
    all.push_back('"' + std::to_string(i) + '"');
    before.change(std::vector{all.back()}, {});
  }
  CHECK(world.run(false));
  CHECK(Array(new_context, name, small).fetch().elements == all);
  before.change(Texts{"\"old\""}, {});
  Array(new_context, name, small).change(Texts{"\"new\""}, {});
  CHECK(world.run(true));
  CHECK(world.left.empty());
  const auto merged = Array(new_context, name, small).fetch().elements;
  CHECK(merged.size() == 302);
  CHECK(std::count(merged.begin(), merged.end(), "\"old\"") == 1);
  CHECK(std::count(merged.begin(), merged.end(), "\"new\"") == 1);
}

TEST_CASE("move: an array is not called united where the new server has lines of a later version") {
  MoveWorld world;
  const std::string name = moving_name(world);
  const Context old_context{world.memory, world.clock, world.random, {}, 1};
  const Context new_context{world.after, world.clock, world.random, {}, 1};
  Array(old_context, name).change(Texts{"1"}, {});
  CHECK(world.run(false));
  Array(old_context, name).change(Texts{"2"}, {});
  const std::string later = seal("~ 6b0e00271a7c1599.0 \"x\"") + '\n';
  world.after.execute(Request::append("array:" + name, later));
  CHECK(world.run(true));
  CHECK(world.left.size() == 1);
  CHECK(Array(old_context, name).fetch().elements == Texts{"1", "2"});
  CHECK(Array(new_context, name).fetch().loss.unknown == 1);
}

TEST_CASE("move: what either server has lost of an array goes on being reported where it is united") {
  for (const bool old_one : {true, false}) {
    for (const bool damaged : {true, false}) {
      CAPTURE(old_one);
      CAPTURE(damaged);
      MoveWorld world;
      const std::string name = moving_name(world);
      const std::string key = "array:" + name;
      const Journal::Options small{.segment_size = 600, .max_padding = 2048, .max_change = 1024};
      for (std::size_t i = 0; i < 3; ++i) world.memory.server(i).options().item_size = 4096;
      for (std::size_t i = 0; i < 4; ++i) world.after.server(i).options().item_size = 4096;
      const Context old_context{world.memory, world.clock, world.random, {}, 1};
      const Context new_context{world.after, world.clock, world.random, {}, 1};
      Array before(old_context, name, small);
      Array after(new_context, name, small);
      for (int i = 0; i < 200; ++i) before.change(Texts{'"' + std::to_string(i) + '"'}, {});
      CHECK(world.run(false));
      before.change(Texts{"\"old\""}, {});
      after.change(Texts{"\"new\""}, {});
      Array& lossy = old_one ? before : after;
      MemoryServer& server = old_one ? world.memory.server_for(key) : world.after.server_for(key);
      if (damaged)
        CHECK(server.execute(Request::append(key, "no line of ours\n")).outcome == Outcome::stored);
      else
        CHECK(server.evict(lossy.keys().at(1).key));
      CHECK_FALSE(lossy.fetch().complete());
      CHECK(world.run(true));
      // A segment that the new server lost may still be on the old one.
      const auto merged = after.fetch();
      const bool all = !old_one && !damaged && merged.elements.size() == 202;
      CHECK(merged.complete() == all);
      after.replace(Texts{"1"});
      CHECK(after.fetch().complete());
    }
  }
}

}  // namespace mcds::move_structures_test
