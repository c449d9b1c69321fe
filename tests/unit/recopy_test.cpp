// Structures that are put into another number of copies, while clients use them, and while who does it dies.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "common/base/json.hpp"
#include "common/primitives/several/recopying.hpp"
#include "common/structures/array/array.hpp"
#include "common/structures/elements/hash.hpp"
#include "common/structures/elements/index.hpp"
#include "tests/support/world.hpp"

namespace mcds::recopy_test {

namespace {

using Texts = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

// What no code that is tested catches.
struct Died {};

const Journal::Options small{.segment_size = 600, .largest_padding = 2048, .largest_change = 4096};

struct RecopyWorld : test::World {
  RecopyWorld() : World(5) {}

  Context dying_in(std::size_t copies) { return {dying, clock, random, {}, copies}; }
  Context other(std::size_t copies) { return {memory, clock, random, {}, copies}; }

  test::Rival dying{memory};
};

Texts numbered(std::size_t count) {
  Texts texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back(quote_bytes(std::to_string(i)));
  return texts;
}

bool refused(const std::function<void()>& act, std::size_t kept) {
  try {
    act();
  } catch (const Failure& failure) {
    CHECK(failure.code() == ErrorCode::bad_data);
    CHECK(std::string(failure.what()).find("is kept in " + std::to_string(kept)) != std::string::npos);
    return true;
  }
  return false;
}

Map fetched(const Context& context) {
  Map map;
  Hash cfg(context, "cfg");
  const auto listing = cfg.fetch([&](Elements::Found& found) { map[found.name] = found.value; });
  CHECK(listing.complete());
  return map;
}

void set(const Context& context, const std::string& name, const std::string& value) {
  const Element element{name, value};
  const auto result = Hash(context, "cfg").set(std::span(&element, 1)).front();
  if (result.failure) throw Failure(*result.failure);
}

bool removed(const Context& context, const std::string& name) {
  const auto result = Hash(context, "cfg").remove(std::span(&name, 1)).front();
  if (result.failure) throw Failure(*result.failure);
  return result.yes;
}

Map fields(std::size_t count) {
  Map map;
  for (std::size_t i = 0; i < count; ++i) map["f" + std::to_string(i)] = "v" + std::to_string(i);
  return map;
}

// No key of the old number, no mark, nothing staged.
void check_tidy(RecopyWorld& world, const std::string& structure, std::size_t copies) {
  const std::string kept = structure + (copies == 1 ? "" : std::to_string(copies)) + ':';
  for (std::size_t server = 0; server < world.memory.size(); ++server) {
    for (const auto& [key, item] : world.memory.server(server).items()) {
      CAPTURE(key);
      const bool word_of_removal = item.value.empty();
      CHECK((key.starts_with(kept) || word_of_removal));
    }
  }
}

// Under any number, not only staged.
bool holds(RecopyWorld& world, const std::string& value) {
  bool found = false;
  for (std::size_t server = 0; server < world.memory.size(); ++server) {
    for (const auto& [key, item] : world.memory.server(server).items())
      found = found || (key.ends_with(":v:f") && item.value == value);
  }
  return found;
}

const std::vector<std::size_t> numbers{2, 3, 1, 3, 2, 1};

}  // namespace

TEST_CASE("recopy: an array is whole under every number, and refused under the one before") {
  for (const std::size_t size : {1U, 3U, 200U}) {
    CAPTURE(size);
    RecopyWorld world;
    Array(world.with(1), "jobs", small).replace(numbered(size));
    std::size_t before = 1;
    for (const std::size_t copies : numbers) {
      CAPTURE(copies);
      const auto recopied = Array(world.with(copies), "jobs", small).recopy();
      CHECK(recopied.found);
      CHECK(recopied.from == before);
      CHECK(refused([&] { Array(world.with(before), "jobs", small).fetch(); }, copies));
      CHECK(refused([&] { Array(world.with(before), "jobs", small).change(Texts{"\"x\""}, {}); }, copies));
      const auto contents = Array(world.with(copies), "jobs", small).fetch();
      CHECK(contents.complete());
      CHECK(contents.elements == numbered(size));
      CHECK(Array(world.with(copies), "jobs", small).recopy().from == copies);
      before = copies;
    }
    check_tidy(world, "array", 1);
  }
}

TEST_CASE("recopy: a hash is whole under every number, and refused under the one before") {
  for (const std::size_t size : {1U, 50U, 1500U}) {
    CAPTURE(size);
    RecopyWorld world;
    const Map wanted = fields(size);
    Hash cfg(world.with(1), "cfg");
    std::vector<Element> elements;
    for (const auto& [name, value] : wanted) elements.push_back({name, value});
    for (const auto& result : cfg.set(elements)) CHECK_FALSE(result.failure);
    std::size_t before = 1;
    for (const std::size_t copies : numbers) {
      CAPTURE(copies);
      const auto recopied = Hash(world.with(copies), "cfg").recopy();
      CHECK(recopied.found);
      CHECK(recopied.from == before);
      CHECK(refused([&] { fetched(world.with(before)); }, copies));
      CHECK(refused([&] { set(world.with(before), "f0", "x"); }, copies));
      CHECK(refused([&] { removed(world.with(before), "f0"); }, copies));
      CHECK(fetched(world.with(copies)) == wanted);
      before = copies;
    }
    check_tidy(world, "hash", 1);
  }
}

TEST_CASE("recopy: nothing that is not there, and no number of copies that there are no servers for") {
  RecopyWorld world;
  CHECK_FALSE(Array(world.with(2), "jobs").recopy().found);
  CHECK_FALSE(Hash(world.with(2), "cfg").recopy().found);
  Array(world.with(1), "jobs").change(Texts{"\"a\""}, {}, ArrayEncoding::json);
  CHECK_THROWS_AS(Array(world.with(2), "jobs").recopy(), Failure);
}

TEST_CASE("recopy: what a server that does not answer may have is not told to be missing") {
  for (const bool array : {true, false}) {
    RecopyWorld world;
    if (array)
      Array(world.with(1), "jobs", small).replace(numbered(3));
    else
      set(world.with(1), "f", "v");
    test::ScriptedFaults faults(world.memory);
    const std::string root = array ? "array:jobs" : "hash:cfg:i";
    faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      if (request.key != root) return std::nullopt;
      return test::Mishap::unreachable;
    });
    const Context deaf{faults, world.clock, world.random, {}, 2};
    std::optional<Failure> failure;
    try {
      static_cast<void>(array ? Array(deaf, "jobs", small).recopy().found : Hash(deaf, "cfg").recopy().found);
    } catch (const Failure& caught) {
      failure = caught;
    }
    REQUIRE(failure);
    CHECK(failure->code() == ErrorCode::unavailable);
  }
}

TEST_CASE(
    "recopy: an array's mover dies before any of its trips, and clients go on with all that was there") {
  for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 3}, {3, 1}}) {
    bool done = false;
    for (std::size_t trip = 0; !done; ++trip) {
      CAPTURE(from);
      CAPTURE(to);
      CAPTURE(trip);
      RecopyWorld world;
      Array(world.with(from), "jobs", small).replace(numbered(60));
      world.dying.before(trip, [] { throw Died(); });
      try {
        Array(world.dying_in(to), "jobs", small).recopy();
        done = true;
      } catch (const Died&) {
      }
      // Whoever comes first, with either number.
      std::vector<std::string> expected = numbered(60);
      const SteadyTime begun = world.clock.steady();
      bool added = true;
      try {
        Array(world.other(from), "jobs", small).change(Texts{"\"late\""}, {});
      } catch (const Failure& failure) {
        CHECK(failure.code() == ErrorCode::bad_data);
        added = false;
      }
      if (added) expected.push_back("\"late\"");
      CHECK(world.clock.steady() - begun < std::chrono::seconds(10));
      Array(world.other(to), "jobs", small).recopy();
      const auto contents = Array(world.other(to), "jobs", small).fetch();
      CHECK(contents.complete());
      CHECK(contents.elements == expected);
      CHECK(refused([&] { Array(world.other(from), "jobs", small).fetch(); }, to));
    }
  }
}

TEST_CASE("recopy: a hash's mover dies before any of its trips, and clients go on with all that was there") {
  for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 3}, {3, 1}}) {
    bool done = false;
    for (std::size_t trip = 0; !done; ++trip) {
      CAPTURE(from);
      CAPTURE(to);
      CAPTURE(trip);
      RecopyWorld world;
      Map wanted = fields(5);
      for (const auto& [name, value] : wanted) set(world.with(from), name, value);
      world.dying.before(trip, [] { throw Died(); });
      try {
        Hash(world.dying_in(to), "cfg").recopy();
        done = true;
      } catch (const Died&) {
      }
      const auto attempt = [&](const std::function<void()>& act, const std::function<void()>& effect) {
        try {
          act();
          effect();
        } catch (const Failure& failure) {
          CHECK(failure.code() == ErrorCode::bad_data);
        }
      };
      attempt([&] { set(world.other(from), "f1", "late"); }, [&] { wanted["f1"] = "late"; });
      attempt(
          [&] {
            const bool was_there = removed(world.other(from), "f2");
            CHECK(was_there);
          },
          [&] { wanted.erase("f2"); });
      attempt([&] { set(world.other(from), "new", "1"); }, [&] { wanted["new"] = "1"; });
      Hash(world.other(to), "cfg").recopy();
      CHECK(fetched(world.other(to)) == wanted);
      CHECK(refused([&] { fetched(world.other(from)); }, to));
    }
  }
}

TEST_CASE("recopy: what clients change between any two trips of the mover is where it goes") {
  for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 3}, {3, 1}}) {
    for (const bool array : {true, false}) {
      std::size_t trips = 1;
      for (std::size_t trip = 0; trip < trips; ++trip) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(array);
        CAPTURE(trip);
        RecopyWorld world;
        Map wanted = fields(5);
        Texts expected = numbered(20);
        if (array)
          Array(world.with(from), "jobs", small).change(expected, {});
        else
          for (const auto& [name, value] : wanted) set(world.with(from), name, value);
        // Between two trips a mover that waits could be waited for: the client waits, completes, and is
        // refused.
        world.dying.before(trip, [&] {
          try {
            if (array) {
              Array(world.other(from), "jobs", small).change(Texts{"\"late\""}, {});
              expected.push_back("\"late\"");
              return;
            }
            set(world.other(from), "f1", "late");
            wanted["f1"] = "late";
            if (removed(world.other(from), "f2")) wanted.erase("f2");
          } catch (const Failure& failure) {
            CHECK(failure.code() == ErrorCode::bad_data);
          }
        });
        try {
          if (array)
            Array(world.dying_in(to), "jobs", small).recopy();
          else
            Hash(world.dying_in(to), "cfg").recopy();
        } catch (const Failure& failure) {
          // It was taken for dead.
          CHECK(failure.code() == ErrorCode::try_again);
        }
        trips = world.dying.trips();
        if (array)
          CHECK(Array(world.other(to), "jobs", small).fetch().elements == expected);
        else
          CHECK(fetched(world.other(to)) == wanted);
      }
    }
  }
}

TEST_CASE("recopy: a hash that lists nothing keeps its number") {
  RecopyWorld world;
  set(world.with(1), "f", "v");
  CHECK(removed(world.with(1), "f"));
  world.clock.advance(std::chrono::seconds(200));
  Hash(world.with(1), "cfg").compact();
  CHECK(Hash(world.with(2), "cfg").recopy().found);
  CHECK(refused([&] { set(world.with(1), "f", "v"); }, 2));
  CHECK(Hash(world.with(2), "cfg").recopy().from == 2);
}

TEST_CASE("recopy: a mover that dies before it sees that another change is done leaves nothing behind") {
  RecopyWorld world;
  Array(world.with(1), "jobs", small).replace(numbered(200));
  set(world.with(1), "f", "v");
  Array(world.with(2), "jobs", small).recopy();
  Hash(world.with(2), "cfg").recopy();
  for (const std::size_t copies : {2U, 3U}) {
    // It looked when there was one copy.
    Recopying(world.other(copies), "array", "jobs").begin({1}, copies);
    Recopying(world.other(copies), "hash", "cfg").begin({1}, copies);
    for (const std::size_t other : {3U, 1U}) {
      CHECK(refused([&] { Array(world.with(other), "jobs", small).fetch(); }, 2));
      CHECK(refused([&] { set(world.with(other), "f", "x"); }, 2));
    }
    CHECK(Array(world.with(2), "jobs", small).fetch().elements == numbered(200));
    CHECK(fetched(world.with(2)) == Map{{"f", "v"}});
    Recopying(world.other(copies), "hash", "cfg").begin({1}, copies);
    CHECK(Hash(world.with(2), "cfg").recopy().from == 2);
  }
}

TEST_CASE("recopy: a copy that missed a write never replaces the newer one that was removed before it") {
  RecopyWorld world;
  set(world.with(2), "f", "older");
  const std::size_t second = copy_servers(world.with(2), "hash2:cfg:v:f")[1];
  test::ScriptedFaults faults(world.memory);
  const Context unlucky{faults, world.clock, world.random, {}, 2};
  faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.op != Op::cas || request.server != second) return std::nullopt;
    return test::Mishap::refused;
  });
  set(unlucky, "f", "newer");
  faults.choose([&, lost = false](const Request& request) mutable -> std::optional<test::Mishap> {
    if (request.op != Op::remove_if || request.server != second || std::exchange(lost, true))
      return std::nullopt;
    return test::Mishap::lost_request;
  });
  Context to_one = unlucky;
  to_one.copies = 1;
  Hash(to_one, "cfg").recopy();
  CHECK(fetched(world.with(1)) == Map{{"f", "newer"}});
}

TEST_CASE(
    "recopy: a server that restarts empty between any two trips of the mover costs neither a name nor the "
    "way "
    "out") {
  for (const auto& [from, to] :
       std::vector<std::pair<std::size_t, std::size_t>>{{3, 2}, {2, 3}, {2, 1}, {1, 2}}) {
    for (std::size_t server = 0; server < 5; ++server) {
      std::size_t trips = 1;
      for (std::size_t trip = 0; trip < trips; ++trip) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(server);
        CAPTURE(trip);
        RecopyWorld world;
        const Map wanted = fields(5);
        for (const auto& [name, value] : wanted) set(world.with(from), name, value);
        world.dying.before(trip, [&] { world.memory.server(server).flush(); });
        static_cast<void>(attempt([&] { Hash(world.dying_in(to), "cfg").recopy(); }));
        trips = world.dying.trips();
        static_cast<void>(attempt([&] { Hash(world.other(to), "cfg").recopy(); }));
        if (from == 1) continue;  // what its only server lost is lost
        if (to > 1) CHECK(fetched(world.other(to)) == wanted);
        if (to == 1) CHECK_NOTHROW(Hash(world.other(to), "cfg").fetch([](Elements::Found&) {}));
      }
    }
  }
}

TEST_CASE("recopy: what is removed under the new number, after its mover died, stays removed") {
  bool done = false;
  for (std::size_t trip = 0; !done; ++trip) {
    CAPTURE(trip);
    RecopyWorld world;
    for (const auto& [name, value] : fields(3)) set(world.with(2), name, value);
    world.dying.before(trip, [] { throw Died(); });
    try {
      Hash(world.dying_in(1), "cfg").recopy();
      done = true;
    } catch (const Died&) {
    }
    try {
      const bool was_there = removed(world.other(1), "f1");
      CHECK(was_there);
    } catch (const Failure& failure) {
      CHECK(failure.code() == ErrorCode::bad_data);  // it had not begun
      continue;
    }
    Hash(world.other(1), "cfg").recopy();
    CHECK(fetched(world.other(1)) == Map{{"f0", "v0"}, {"f2", "v2"}});
  }
}

TEST_CASE("recopy: one mover after the other dies, wherever, and nothing is lost") {
  for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 1}}) {
    bool first_done = false;
    for (std::size_t first = 0; !first_done; ++first) {
      bool second_done = false;
      for (std::size_t second = 0; !second_done; ++second) {
        CAPTURE(from);
        CAPTURE(first);
        CAPTURE(second);
        RecopyWorld world;
        set(world.with(from), "f", "v");
        const auto change = [&](std::size_t trip) {
          test::Rival dying(world.memory);
          dying.before(trip, [] { throw Died(); });
          try {
            Hash(Context{dying, world.clock, world.random, {}, to}, "cfg").recopy();
          } catch (const Died&) {
            return false;
          }
          return true;
        };
        first_done = change(first);
        second_done = change(second) || first_done;
        Hash(world.other(to), "cfg").recopy();
        CHECK(fetched(world.other(to)) == Map{{"f", "v"}});
      }
    }
  }
}

TEST_CASE("recopy: a fetch under the new number sees all, whenever the mover stands still") {
  for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 1}}) {
    std::size_t trips = 1;
    for (std::size_t trip = 0; trip < trips; ++trip) {
      CAPTURE(from);
      CAPTURE(trip);
      RecopyWorld world;
      const Map wanted = fields(5);
      for (const auto& [name, value] : wanted) set(world.with(from), name, value);
      world.dying.before(trip, [&] {
        try {
          const Map seen = fetched(world.other(to));
          CHECK(seen == wanted);
        } catch (const Failure& failure) {
          CHECK(failure.code() == ErrorCode::bad_data);  // it has not begun
        }
      });
      try {
        Hash(world.dying_in(to), "cfg").recopy();
      } catch (const Failure& failure) {
        CHECK(failure.code() == ErrorCode::try_again);
      }
      trips = world.dying.trips();
      Hash(world.other(to), "cfg").recopy();
      CHECK(fetched(world.other(to)) == wanted);
    }
  }
}

TEST_CASE(
    "recopy: who does not reach the server of the only copy creates no second one under the number before") {
  for (const bool array : {true, false}) {
    RecopyWorld world;
    if (array)
      Array(world.with(2), "jobs", small).replace(numbered(3));
    else
      set(world.with(2), "f", "v");
    const std::string root = array ? "array:jobs" : "hash:cfg:i";
    if (array)
      Array(world.with(1), "jobs", small).recopy();
    else
      Hash(world.with(1), "cfg").recopy();
    test::ScriptedFaults faults(world.memory);
    faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      if (request.key != root) return std::nullopt;
      return test::Mishap::unreachable;
    });
    const Context deaf{faults, world.clock, world.random, {}, 2};
    const auto late = attempt([&] {
      if (array)
        Array(deaf, "jobs", small).change(numbered(4), {});
      else
        set(deaf, "g", "w");
    });
    REQUIRE(late.failure());
    CHECK(late.failure()->code() == ErrorCode::unavailable);
  }
}

TEST_CASE("recopy: what was done of a batch is not refused with the rest") {
  RecopyWorld world;
  set(world.with(1), "there", "1");
  world.dying.before(8, [] { throw Died(); });
  CHECK_THROWS_AS(Hash(world.dying_in(2), "cfg").recopy(), Died);
  const std::vector<Element> batch{{"there", "2"}, {"new", "2"}};
  const auto results = Hash(world.other(1), "cfg").set(batch);
  CHECK_FALSE(results[0].failure);
  REQUIRE(results[1].failure);
  CHECK(results[1].failure->code() == ErrorCode::bad_data);
  CHECK(fetched(world.other(2)) == Map{{"there", "2"}});
}

TEST_CASE("recopy: an index that lists nothing, made by what was executed late, does not stand in the way") {
  RecopyWorld world;
  set(world.with(1), "f", "v");
  const Replicas copies(world.with(2));
  for (std::size_t copy = 0; copy < copies.size(); ++copy)
    ElementIndex(copies.at(copy), "hash2:cfg", nullptr, true).say_unfinished(true);
  Hash(world.with(3), "cfg").recopy();
  CHECK(fetched(world.with(3)) == Map{{"f", "v"}});
  CHECK(refused([&] { set(world.with(2), "f", "v"); }, 3));
}

TEST_CASE("recopy: what a client changed before it moved, and removed when its mover had died, is gone") {
  const auto world_of_two = [] {
    auto world = std::make_unique<RecopyWorld>();
    for (const auto& [name, value] : fields(2)) set(world->with(1), name, value);
    return world;
  };
  const auto move = [](RecopyWorld& world, const test::Spoiled::Spoil& look) {
    test::Spoiled watched(world.dying, look);
    Hash(Context{watched, world.clock, world.random, {}, 2}, "cfg").recopy();
  };
  std::size_t removal = 0;
  const auto calm = world_of_two();
  move(*calm, [&](const Request& request) {
    if (request.op == Op::remove_if && request.key == "hash:cfg:v:f0") removal = calm->dying.trips();
  });
  REQUIRE(removal != 0);
  // In the trip behind the removal it is not promised.
  for (std::size_t trip = removal + 2; trip < removal + 6; ++trip) {
    CAPTURE(trip);
    const auto world = world_of_two();
    world->dying.before(removal, [&] { set(world->other(1), "f0", "changed"); });
    world->dying.before(trip, [] { throw Died(); });
    CHECK_THROWS_AS(move(*world, nullptr), Died);
    if (!attempt([&] { return removed(world->other(1), "f0"); }).failure()) {
      Hash(world->other(2), "cfg").recopy();
      CHECK(fetched(world->other(2)) == Map{{"f1", "v1"}});
    }
  }
}

// A mover gives up what it stores of a field, and a server executes that while the next change goes on.
TEST_CASE("recopy: what a mover stored is executed late: it undoes nothing, whoever dies after that") {
  using Numbers = std::array<std::size_t, 3>;
  for (const auto& [from, by_way_of, to] : {Numbers{2, 3, 2}, {3, 2, 3}, {3, 1, 2}, {2, 1, 3}, {1, 2, 3}}) {
    bool late_done = false;
    for (std::size_t late = 0; !late_done; ++late) {
      bool dead_done = false;
      for (std::size_t dead = late; !dead_done; ++dead) {
        CAPTURE(from);
        CAPTURE(by_way_of);
        CAPTURE(late);
        CAPTURE(dead);
        RecopyWorld world;
        set(world.with(from), "f", "first");
        test::ScriptedFaults faults(world.memory);
        std::optional<Request> stored;
        faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
          const bool stores = request.op == Op::add || request.op == Op::cas;
          if (stored || !stores || request.value != "first") return std::nullopt;
          stored = request;
          return test::Mishap::lost_request;
        });
        const auto given_up = attempt([&] {
          Hash(Context{faults, world.clock, world.random, {}, by_way_of}, "cfg").recopy();
        });
        CHECK(given_up.failure());
        REQUIRE(stored);
        Hash(world.other(by_way_of), "cfg").recopy();
        set(world.other(by_way_of), "f", "later");
        late_done = true;
        world.dying.before(late, [&] {
          late_done = false;
          world.memory.execute(std::span(&*stored, 1));
        });
        const bool both = dead == late;
        if (!both) world.dying.before(dead, [] { throw Died(); });
        try {
          Hash(world.dying_in(to), "cfg").recopy();
          dead_done = !both;
        } catch (const Died&) {
          // Between the removal from a single copy and the next store it is not promised.
          if (by_way_of == 1 && !holds(world, "later")) continue;
        }
        dead_done = dead_done || late_done;
        Hash(world.other(to), "cfg").recopy();
        CHECK(fetched(world.other(to)) == Map{{"f", "later"}});
      }
    }
  }
}

}  // namespace mcds::recopy_test
