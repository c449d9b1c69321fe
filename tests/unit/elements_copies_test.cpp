// Tables and hashes with several copies: what remains when servers lose everything.
#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "common/replication/versions.hpp"
#include "common/structures/elements/hash.hpp"
#include "tests/support/world.hpp"

namespace mcds::elements_copies_test {

namespace {

using Texts = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

struct World : test::World {
  explicit World(MemoryServerOptions options = {}) : test::World(3, 2, options) {}

  Hash cfg{context, "cfg"};
  Elements& elements = cfg;

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

// Lets a concurrent writer act when the first copy's shard has been created, but not yet the second one's.
class BetweenCopies final : public Decorator {
 public:
  using Cluster::execute;
  BetweenCopies(Cluster& inner, std::function<void()> rival) : Decorator(inner), rival_(std::move(rival)) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    const auto creates = [](const Request& request) { return request.op == Op::append_or_create; };
    const auto first = std::find_if(batch.begin(), batch.end(), creates);
    if (acted_ || first == batch.end()) return inner().execute(batch);
    acted_ = true;
    const auto split = static_cast<std::size_t>(first - batch.begin()) + 1;
    std::vector<Reply> replies = inner().execute(batch.first(split));
    rival_();
    for (Reply& reply : inner().execute(batch.subspan(split))) replies.push_back(std::move(reply));
    return replies;
  }
  bool acted() const { return acted_; }

 private:
  std::function<void()> rival_;
  bool acted_ = false;
};

}  // namespace

TEST_CASE("elements: a name that a batch gives twice has the last value, in any number of copies") {
  for (const std::size_t copies : {1, 2, 3}) {
    CAPTURE(copies);
    test::World world(3, copies);
    Hash cfg(world.context, "cfg");
    for (const std::string last : {"a", "z", "m"}) {
      const std::vector<Element> batch{{"f", "x"}, {"g", "1"}, {"f", "y"}, {"f", last}};
      const auto results = cfg.set(batch);
      for (const ElementResult& result : results) CHECK_FALSE(result.failure);
      CHECK(results[0].yes == (last == "a"));
      CHECK_FALSE(results[2].yes);
      CHECK_FALSE(results[3].yes);
      const std::string name = "f";
      CHECK(cfg.get(std::span(&name, 1)).front().value == last);
    }
  }
}

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
  CHECK(world.elements.fetch([](Elements::Found&) {}).repaired == 0);
}

TEST_CASE(
    "elements, copies: while one server is away everything new is set, and it stays listed when it is back") {
  for (const std::size_t away : {0U, 1U, 2U}) {
    for (const bool compacts : {false, true}) {
      World world;
      world.faults.cut_off(away);
      const Map fields = numbered(100);
      world.set(fields);
      CHECK(world.fetched() == fields);
      world.faults.none();
      // The pause exceeds the grace period: a name without an element would be dropped.
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

TEST_CASE(
    "elements, copies: behind new ones a batch is read and listed while they are on their way, and what "
    "there "
    "was, in one copy or in both, is replaced") {
  World world;
  world.set({{"old", "1"}, {"lost", "1"}, {"lost too", "1"}, {"gone", "1"}});
  world.set({{"lost too", "8"}});
  static_cast<void>(world.remove("gone"));
  world.set({{"new", "1"}});
  const auto lose = [&](const std::string& name, std::size_t copy) {
    const std::string key = world.elements.key_of(name);
    const auto copies = copy_servers(world.context, key);
    static_cast<void>(world.context.cluster.execute(Request::remove(key).on(copies[copy])));
  };
  world.clock.advance(std::chrono::seconds(11));
  lose("lost", 0);
  lose("lost too", 1);
  const std::vector<Element> b{{"b", "1"}}, c{{"c", "1"}}, other_b{{"b", "2"}},
      rest{{"old", "2"}, {"lost", "2"}, {"lost too", "2"}, {"gone", "2"}};
  const auto yes = [](const Elements::Answers& answers) {
    std::vector<bool> created;
    for (const ElementResult& result : answers()) {
      CHECK_FALSE(result.failure);
      created.push_back(result.yes);
    }
    return created;
  };
  const auto first = world.cfg.begin_set(b);
  const auto second = world.cfg.begin_set(c);
  const auto third = world.cfg.begin_set(rest);
  const auto fourth = world.cfg.begin_set(other_b);
  CHECK(yes(first) == std::vector{true});
  CHECK(yes(second) == std::vector{true});
  CHECK(yes(third) == std::vector{false, false, false, true});
  CHECK(yes(fourth) == std::vector{false});
  const Map all{{"old", "2"}, {"lost", "2"}, {"lost too", "2"}, {"gone", "2"},
                {"new", "1"}, {"b", "2"},    {"c", "1"}};
  CHECK(world.fetched() == all);
  for (const auto& [name, value] : all) {
    for (const Reply& reply : world.context.cluster.execute(
             to_copies(world.context, std::array{Request::get(world.elements.key_of(name))})))
      CHECK(reply.value == value);
  }
}

TEST_CASE(
    "elements, copies: who has just begun it reads nothing before it sets something new, and replaces what "
    "another client did meanwhile, whichever copy has forgotten that") {
  World world;
  world.set(numbered(200));
  Hash rival(world.context, "cfg");
  const auto lose = [&](const std::string& name, std::size_t copy) {
    const std::string key = world.elements.key_of(name);
    const auto copies = copy_servers(world.context, key);
    static_cast<void>(world.context.cluster.execute(Request::remove(key).on(copies[copy])));
  };
  Map mine;
  const std::vector<std::string> words{"set", "set twice", "removed"};
  for (const std::string& word : words) {
    for (const std::string copy : {"", "0", "1"}) {
      const std::string name = word + copy;
      const Element element{name, "9"};
      rival.set(std::span(&element, 1));
      if (word == "set twice") rival.set(std::span(&element, 1));
      if (word == "removed") rival.remove(std::span(&name, 1));
      if (!copy.empty()) lose(name, copy == "0" ? 0 : 1);
      mine[name] = "2";
    }
  }
  const std::vector<bool> created = world.set(mine);
  std::size_t i = 0;
  for (const auto& [name, value] : mine) {
    CAPTURE(name);
    // While the first copy still exists, it is known that the element existed.
    CHECK(created[i++] == (name.starts_with("removed") || name.ends_with('0')));
    for (const Reply& reply : world.context.cluster.execute(
             to_copies(world.context, std::array{Request::get(world.elements.key_of(name))})))
      CHECK(reply.value == "2");
  }
  world.set({{"new", "1"}});
  std::size_t before = world.trips.requests();
  CHECK(world.trips.trips_of([&] { world.set({{"newer", "1"}}); }) <= 3);
  CHECK(world.trips.requests() - before == 4);
  world.clock.advance(std::chrono::seconds(11));
  world.set({{"later", "1"}});
  before = world.trips.requests();
  world.set({{"still later", "1"}});
  CHECK(world.trips.requests() - before == 5);
}

TEST_CASE(
    "elements, copies: behind new ones a first copy that does not answer does not undo what was set, when it "
    "is back with something older") {
  for (const std::size_t away : {0U, 1U, 2U}) {
    World world;
    const Map fields = numbered(30);
    world.set(fields);
    for (int i = 0; i < 3; ++i) world.set(fields);
    world.set({{"new", "1"}});
    // Half of them have lost what the first copy holds; the others never had anything.
    Map changed;
    for (const auto& [name, value] : fields) {
      const std::string key = world.elements.key_of(name);
      const auto copies = copy_servers(world.context, key);
      if (copies[0] != away) continue;
      static_cast<void>(world.context.cluster.execute(Request::remove(key).on(copies[1])));
      changed[name] = "0 changed";
      changed[name + "new"] = "1";
    }
    REQUIRE(!changed.empty());
    world.faults.cut_off(away);
    for (const bool created : world.set(changed)) CHECK(created);
    world.faults.none();
    for (const auto& [name, value] : changed) CHECK(world.get(name).value == value);
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

TEST_CASE("elements, copies: a removal replaces an older one that a copy is late with") {
  test::World world(3, 2);
  const std::string key = "hash2:cfg:v:a";
  const Versions versions(world.context);
  const auto write = [&](std::uint32_t number, const std::string& value) {
    auto items = versions.read(std::span(&key, 1));
    VersionedWrite write{.item = &items.front(), .number = number, .value = value};
    versions.write(std::span(&write, 1));
  };
  write(1, "one");
  auto items = versions.read(std::span(&key, 1));
  // A write that was in flight to the second copy arrives after the copy was read.
  const std::size_t late = items.front().copies[1].server;
  Request word = Request::set(key, "removed by 00000000000000a1", Exptime::never()).on(late);
  word.flags = 0x80000002;
  world.memory.execute(word);
  VersionedRemoval removal{.item = &items.front(), .number = 4};
  versions.remove(std::span(&removal, 1));
  CHECK_FALSE(removal.failure);
  CHECK(world.memory.server(late).peek(key)->flags == 0x80000004);
}

TEST_CASE("elements, copies: what is set over a tombstone is listed, though nobody had listed it") {
  World world;
  CHECK_FALSE(world.remove("a").yes);
  CHECK(world.set({{"a", "2"}}) == std::vector{true});
  CHECK(world.fetched() == Map{{"a", "2"}});
}

TEST_CASE(
    "elements, copies: the round trips of one copy, one more to set what is there, two more to remove") {
  World one, world;
  const std::size_t creation = one.trips.trips_of([&] { one.set({{"first", "1"}}); });
  CHECK(world.trips.trips_of([&] { world.set(numbered(200)); }) == creation);
  // After new elements, they are listed while only their first copy is read.
  CHECK(world.trips.trips_of([&] { world.set(numbered(200)); }) == 4);
  CHECK(world.trips.trips_of([&] { world.set(numbered(200)); }) == 2);
  CHECK(world.trips.trips_of([&] { world.set({{"new", "1"}}); }) <= 4);
  CHECK(world.trips.trips_of([&] { world.get("f1"); }) == 1);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 2);
  CHECK(world.trips.trips_of([&] { world.remove("f1"); }) == 3);
}

TEST_CASE(
    "elements, copies: what a client overwrote, removed or added again that missed one server stays so") {
  for (const std::size_t copies : {2U, 3U}) {
    for (std::size_t away = 0; away < 3; ++away) {
      CAPTURE(copies);
      CAPTURE(away);
      World world;
      world.context.copies = copies;
      Hash cfg(world.context, "cfg");
      const auto set = [&](const std::string& name, const std::string& value) {
        const Element element{name, value};
        CHECK_FALSE(cfg.set(std::span(&element, 1)).front().failure);
      };
      const auto remove = [&](const std::string& name) {
        CHECK_FALSE(cfg.remove(std::span(&name, 1)).front().failure);
      };
      for (int i = 0; i < 12; ++i) {
        set("over" + std::to_string(i), "old");
        set("gone" + std::to_string(i), "old");
        set("back" + std::to_string(i), "old");
        remove("back" + std::to_string(i));
      }
      world.faults.cut_off(away);
      for (int i = 0; i < 12; ++i) {
        set("over" + std::to_string(i), "new");
        remove("gone" + std::to_string(i));
        set("back" + std::to_string(i), "new");
      }
      world.faults.none();
      const auto check = [&] {
        for (int i = 0; i < 12; ++i) {
          for (const std::string name : {"over", "gone", "back"}) {
            const std::string field = name + std::to_string(i);
            const auto got = cfg.get(std::span(&field, 1)).front();
            CHECK(got.yes == (name != "gone"));
            if (got.yes) CHECK(got.value == "new");
          }
        }
      };
      check();
      world.clock.advance(std::chrono::minutes(2));
      check();
      std::size_t count = 0;
      const auto listing = cfg.fetch([&](Elements::Found& found) {
        ++count;
        CHECK(found.value == "new");
      });
      CHECK(count == 24);
      CHECK(listing.complete());
      CHECK(listing.copies_whole);
      // Each copy alone shows the same: readers have repaired the copies that missed a write.
      for (std::size_t lost = 0; lost < 3; ++lost) {
        world.memory.restart(lost);
        check();
      }
    }
  }
}

TEST_CASE(
    "elements, copies: what a client with one of two servers removes, or does not find, undoes nobody's "
    "answer") {
  // Before a trip of ours, a client that lacks one of the two servers acts: r removes, s sets.
  for (const std::string theirs : {"r", "rr", "rs", "rsr", "srr"}) {
    for (const bool removes : {false, true}) {
      for (const bool there : {false, true}) {
        for (std::size_t step = 0; step < 24; ++step) {
          CAPTURE(theirs);
          CAPTURE(removes);
          CAPTURE(there);
          CAPTURE(step);
          World world;
          world.set({{"other", "1"}, {"lost", "1"}});
          if (there) world.set({{"f", "old"}});
          const std::size_t away = copy_servers(world.context, "hash2:cfg:v:f")[step % 2];
          test::ScriptedFaults cut(world.memory);
          cut.cut_off(away);
          Hash others({cut, world.clock, world.random, {}, 2}, "cfg");
          const std::string name = "f";
          const Element element{name, "theirs"};
          int removed = 0, sets = there ? 1 : 0;
          world.rival.before(world.rival.trips() + step / 2, [&] {
            for (const char what : theirs) {
              const auto done = what == 'r' ? others.remove(std::span(&name, 1)).front()
                                            : others.set(std::span(&element, 1)).front();
              if (done.failure) continue;
              (what == 'r' ? removed : sets) += what == 's' || done.yes ? 1 : 0;
            }
          });
          const Element ours{name, "ours"};
          Hash cfg(world.context, "cfg");  // which guesses nothing
          const auto done =
              removes ? cfg.remove(std::span(&name, 1)).front() : cfg.set(std::span(&ours, 1)).front();
          if (removes && !done.failure) removed += done.yes ? 1 : 0;
          if (!removes && !done.failure) ++sets;
          const auto left = world.get(name);
          CHECK(removed + (left.yes ? 1 : 0) <= sets + (removes || !done.failure ? 0 : 1));
          // The element was set, and no client removed it.
          if (!removes && !done.failure && removed == 0) CHECK(left.yes);
        }
      }
    }
  }
}

// A copy vanishes between the reading and the write, so that the write is made again. If that fails, the copy
// that was written stays so.
TEST_CASE("elements, copies: a set that begins again after one copy was written may have set the element") {
  std::size_t failed = 0;
  for (std::size_t trip = 2; trip < 8; ++trip) {
    CAPTURE(trip);
    World world;
    world.set({{"a", "old"}});
    Hash cfg(world.context, "cfg");  // which guesses nothing
    const std::string key = cfg.key_of("a");
    const std::size_t second = copy_servers(world.context, key)[1];
    const std::size_t now = world.rival.trips();
    world.rival.before(now + 1, [&] { world.memory.execute(Request::remove(key).on(second)); });
    world.rival.before(now + trip, [&] {
      world.faults.choose([](const Request&) { return std::optional(test::Mishap::unreachable); });
    });
    const auto ours = cfg.set(std::vector<Element>{{"a", "new"}}).front();
    world.faults.none();
    const std::string name = "a";
    CHECK(Hash(world.others, "cfg").get(std::span(&name, 1)).front().value == "new");
    if (!ours.failure) continue;
    ++failed;
    CHECK(ours.failure->code() == ErrorCode::unknown_outcome);
  }
  CHECK(failed > 1);
}

TEST_CASE("elements, copies: what vanishes between the reading and the write is listed before it is set") {
  for (const std::size_t copies : {2U, 3U}) {
    CAPTURE(copies);
    World world;
    world.context.copies = world.others.copies = copies;
    const std::vector<Element> old{{"a", "old"}}, ours{{"a", "new"}};
    Hash(world.context, "cfg").set(old);
    Hash cfg(world.context, "cfg");  // which guesses nothing
    world.rival.before(world.rival.trips() + 1, [&] {
      for (std::size_t server = 0; server < world.memory.size(); ++server) world.memory.restart(server);
    });
    CHECK_FALSE(cfg.set(ours).front().failure);
    Map found;
    Hash(world.others, "cfg").fetch([&](Elements::Found& one) { found[one.name] = one.value; });
    CHECK(found == Map{{"a", "new"}});
  }
}

TEST_CASE("elements, copies: values without version that differ are reported, and left alone") {
  World world;
  const std::string key = world.elements.key_of("a");
  world.set({{"a", "1"}});
  std::vector<std::size_t> servers = copy_servers(world.context, key);
  for (std::size_t i = 0; i < servers.size(); ++i)
    world.memory.execute(Request::set(key, std::to_string(i), Exptime::never()).on(servers[i]));
  CHECK(world.get("a").value == "0");
  const auto listing = world.elements.fetch([](Elements::Found&) {});
  CHECK_FALSE(listing.copies_whole);
  REQUIRE(listing.divergent.size() == 1);
  CHECK(listing.divergent.front().values == Texts{"0", "1"});
  world.set({{"a", "2"}});
  CHECK(world.get("a").value == "2");
  CHECK(world.elements.fetch([](Elements::Found&) {}).divergent.empty());
}

TEST_CASE("elements, copies: an index that lost its names and was written since does not vouch for them") {
  for (const bool fetched_between : {false, true}) {
    World world;
    world.context.copies = 3;  // on all servers
    Hash cfg(world.context, "cfg");
    const auto add = [&](const Map& fields) {
      std::vector<Element> batch;
      for (const auto& [name, value] : fields) batch.push_back({name, value});
      cfg.set(batch);
    };
    add(numbered(200));
    world.memory.restart(0);
    add({{"new", "1"}});
    if (fetched_between) cfg.fetch([](Elements::Found&) {});
    world.memory.restart(1);
    world.memory.restart(2);
    std::size_t count = 0;
    const auto listing = cfg.fetch([&](Elements::Found&) { ++count; });
    CHECK(listing.complete() == fetched_between);
    CHECK(count == (fetched_between ? 201 : 1));
    // It reports the loss again.
    CHECK(cfg.fetch([](Elements::Found&) {}).complete() == fetched_between);
    if (!fetched_between) cfg.accept();
    CHECK(cfg.fetch([](Elements::Found&) {}).complete());
  }
}

TEST_CASE("elements, copies: a lost index is restored though none of its names is an element any more") {
  for (const bool compacted : {false, true}) {
    World world;
    world.context.copies = 3;  // on all servers
    Hash cfg(world.context, "cfg");
    cfg.set(std::vector<Element>{{"a", "1"}, {"b", "2"}});
    cfg.remove(Texts{"a", "b"});
    world.clock.advance(std::chrono::minutes(2));
    if (compacted) cfg.compact();
    const auto parts_on = [&](std::size_t server) {
      Texts parts;
      for (const std::string& key : cfg.index_keys()) {
        if (world.memory.execute(Request::get(key).on(server)).outcome == Outcome::hit) parts.push_back(key);
      }
      return parts;
    };
    const Texts before = parts_on(0);
    REQUIRE(before.size() > 1);
    world.memory.restart(0);
    const auto listing = cfg.fetch([](Elements::Found&) {});
    CHECK(listing.complete());
    CHECK(listing.copies_whole);
    CHECK(parts_on(0) == before);
    world.memory.restart(1);
    CHECK(cfg.fetch([](Elements::Found&) {}).complete());
    world.memory.restart(2);
    CHECK(cfg.fetch([](Elements::Found&) {}).complete());
    CHECK(parts_on(2) == before);
  }
}

TEST_CASE("elements, copies: a line that two copies restored alone does not come twice to the third") {
  World world;
  world.context.copies = 3;  // on all servers
  Hash cfg(world.context, "cfg");
  const auto set = [&] { return cfg.set(std::vector<Element>{{"a", "1"}}).front(); };
  CHECK(set().yes);
  cfg.remove(Texts{"a"});
  world.clock.advance(std::chrono::minutes(2));
  for (const std::size_t server : {0, 2}) {
    world.memory.restart(server);
    CHECK(cfg.fetch([](Elements::Found&) {}).complete());
  }
  // The tombstones expire.
  for (const std::size_t server : {0, 1, 2})
    world.memory.execute(Request::remove(cfg.key_of("a")).on(server));
  world.memory.restart(1);
  CHECK(set().yes);
  CHECK(cfg.fetch([](Elements::Found&) {}).present == 1);
}

TEST_CASE("elements, copies: of two that create a field with different values one is told so") {
  for (const std::size_t copies : {2U, 3U}) {
    for (const bool tombstone : {false, true}) {
      for (const std::string theirs : {"a", "m", "z"}) {
        for (std::size_t trip = 0; trip < 6; ++trip) {
          INFO(copies, theirs, trip, tombstone);
          World world;
          world.context.copies = copies;
          Hash cfg(world.context, "cfg");
          cfg.set(std::vector<Element>{{"other", "1"}, {"f", "1"}});
          if (tombstone) cfg.remove(Texts{"f"});
          const std::string name = tombstone ? "f" : "g";
          std::optional<bool> rivals;
          world.rival.before(world.rival.trips() + trip, [&] {
            Hash other({world.memory, world.clock, world.random, {}, copies}, "cfg");
            rivals = other.set(std::vector<Element>{{name, theirs}}).front().yes;
          });
          const auto ours = cfg.set(std::vector<Element>{{name, "m"}}).front();
          CHECK_FALSE(ours.failure);
          CHECK(ours.yes != rivals.value_or(false));
        }
      }
    }
  }
}

TEST_CASE("elements, copies: two clients that create a shard at once do not take each other's for lost") {
  for (int name = 0; name < 40; ++name) {
    World world;
    world.context.copies = 2;
    const auto set = [](const Context& context, const std::string& field) {
      const Element element{field, "1"};
      CHECK_FALSE(Hash(context, "cfg").set(std::span(&element, 1)).front().failure);
    };
    BetweenCopies between(world.memory, [&] { set(world.context, "f0"); });
    set({between, world.clock, world.random, {}, 2}, "f" + std::to_string(name));
    CHECK(between.acted());
    const auto listing = Hash(world.context, "cfg").fetch([](Elements::Found&) {});
    CHECK(listing.complete());
    CHECK(listing.present == (name == 0 ? 1 : 2));
  }
}

TEST_CASE("elements, copies: each copy is reported, and more than there are servers are refused") {
  World world;
  world.set({{"a", "1"}});
  CHECK(world.get("a").copies.size() == 2);
  CHECK(world.get("a").copies[0].server != world.get("a").copies[1].server);
  Context greedy = world.context;
  greedy.copies = 4;
  CHECK_THROWS_AS(Hash(greedy, "cfg"), InvalidInput);
}

// After ring move, whose new placement changes the order of each key's copies: nothing was lost, but every
// fetch reported a lost index, because a copy's manifest named the shards of the other copy.
TEST_CASE("elements, copies: an index whose copies are in another order has lost nothing") {
  World world;
  const Map all = numbered(200);
  world.set(all);
  const auto swap = [&](const std::string& key) {
    const auto servers = world.memory.placement().servers_of(key, 2);
    std::vector<Request> sets;
    for (std::size_t i = 0; i < 2; ++i) {
      const Reply reply = world.memory.execute(Request::get(key).on(servers[i]));
      REQUIRE(reply.outcome == Outcome::hit);
      sets.push_back(Request::set(key, reply.value, Exptime::never()).on(servers[1 - i]));
    }
    world.memory.execute(sets);
  };
  for (int shard = 0; shard < 16; shard += 3) swap("hash2:cfg:i:" + std::to_string(shard));
  CHECK(world.fetched() == all);
  // It then behaves as if this order had always been used.
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 2);
  swap("hash2:cfg:i");
  CHECK(world.fetched() == all);
  world.memory.restart(0);
  CHECK(world.fetched() == all);
}

TEST_CASE("elements, copies: an index whose copies are in another order is compacted, and dropped") {
  for (const bool drops : {false, true}) {
    World world;
    const Map all = numbered(200);
    world.set(all);
    for (int shard = -1; shard < 16; shard += 2) {
      const std::string key = "hash2:cfg:i" + (shard < 0 ? "" : ':' + std::to_string(shard));
      const auto servers = world.memory.placement().servers_of(key, 2);
      for (const std::size_t server : servers) REQUIRE(world.memory.server(server).peek(key));
      const std::string first = world.stored_on(servers[0], key), second = world.stored_on(servers[1], key);
      world.memory.execute(Request::set(key, second, Exptime::never()).on(servers[0]));
      world.memory.execute(Request::set(key, first, Exptime::never()).on(servers[1]));
    }
    if (drops) {
      CHECK(world.elements.drop());
      world.clock.advance(std::chrono::hours(2));
      CHECK(test::left_in(world.memory).empty());
    } else {
      world.elements.compact();
      CHECK(world.fetched() == all);
    }
  }
}

TEST_CASE(
    "elements, copies: who stands still between listing and adding is listed, though both lines were lost") {
  std::size_t slept = 0;
  for (std::size_t trip = 1; trip < 8; ++trip) {
    CAPTURE(trip);
    World world;
    const Context others{world.memory, world.clock, world.random, {}, 2};
    world.set(numbered(3));
    const auto listing = [&] { return Hash(others, "cfg").fetch([](Elements::Found&) {}); };
    test::Rival rival(world.memory);
    rival.before(trip, [&] {
      ++slept;
      world.clock.advance(std::chrono::seconds(5));
      for (std::size_t server = 0; server < world.memory.size(); ++server) {
        world.memory.restart(server);
        CHECK(listing().complete());
      }
    });
    const Element late{"late", "v"};
    Hash slow({rival, world.clock, world.random, {}, 2}, "cfg");
    const auto result = slow.set(std::span(&late, 1)).front();
    if (result.failure) continue;
    std::size_t found = 0;
    Hash(others, "cfg").fetch([&](Elements::Found& one) { found += one.name == "late" ? 1 : 0; });
    CHECK(found == 1);
  }
  CHECK(slept > 2);
}

TEST_CASE("elements, copies: a shard lost in every copy is reported") {
  World world;
  world.set(numbered(200));
  const std::string shard = world.elements.index_keys()[4];
  world.memory.evict(shard);
  CHECK(world.elements.fetch([](Elements::Found&) {}).complete());
  for (std::size_t server = 0; server < 3; ++server) world.trips.execute(Request::remove(shard).on(server));
  const auto listing = world.elements.fetch([](Elements::Found&) {});
  CHECK(listing.lost == Texts{shard});
}

TEST_CASE("elements, copies: of names that share a line compaction drops those that are no elements") {
  for (const std::size_t item_size : {std::size_t{1} << 20, std::size_t{2048}}) {
    CAPTURE(item_size);
    World world(MemoryServerOptions{.item_size = item_size});
    Map all = numbered(300);
    all["tab\tand \"quote\""] = "1";
    all[std::string("\xff\t\n", 3)] = "2";
    world.set(all);
    std::string index;
    for (const std::string& key : world.elements.index_keys()) {
      const auto servers = world.memory.placement().servers_of(key, 2);
      index += world.stored_on(servers[1], key);
    }
    CHECK(index.find("\"\t\"f") != std::string::npos);
    CHECK(world.fetched() == all);
    Texts gone;
    for (int i = 0; i < 300; ++i) {
      if (i % 10 != 1) gone.push_back("f" + std::to_string(i));
    }
    for (const ElementResult& result : world.elements.remove(gone)) CHECK(result.yes);
    for (const std::string& name : gone) all.erase(name);
    world.set({{"f1", "1"}});
    world.elements.compact();
    const auto names = [&] { return world.elements.fetch([](Elements::Found&) {}).names; };
    CHECK(names() == all.size() + gone.size());  // within the grace
    world.clock.advance(std::chrono::hours(2));
    world.elements.compact();
    CHECK(names() == all.size());
    CHECK(world.fetched() == all);
  }
}

TEST_CASE("elements, copies: names that are too many for one item are listed in pieces") {
  World world(MemoryServerOptions{.item_size = 1024});
  Map all;
  for (int i = 0; i < 300; ++i) all[std::string(100, 'x') + std::to_string(i)] = "v";  // 2 KiB a shard
  const auto created = world.set(all);
  CHECK(std::count(created.begin(), created.end(), true) == 300);
  CHECK(world.fetched() == all);
}

}  // namespace mcds::elements_copies_test
