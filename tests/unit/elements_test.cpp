#include "common/structures/elements/elements.hpp"

#include <doctest/doctest.h>

#include <map>

#include "common/structures/elements/hash.hpp"
#include "common/structures/elements/table.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds {

namespace {

using Texts = std::vector<std::string>;

struct World {
  FakeClock clock;
  MemoryCluster servers{clock.time(), 3};
  test::TripCounter cluster{servers};
  SeededRandom random{7};
  Context context{cluster, clock, random, ""};
  Hash cfg{context, "cfg"};
  Elements& elements = cfg.elements();

  std::vector<bool> set(const Texts& names, const std::string& value = "v", bool relist = false) {
    std::vector<Element> batch;
    for (const std::string& name : names) batch.push_back({name, value});
    return answers(cfg.set(batch, relist));
  }
  static std::vector<bool> answers(const std::vector<ElementResult>& results) {
    std::vector<bool> yes;
    for (const ElementResult& result : results) {
      REQUIRE_FALSE(result.failure);
      yes.push_back(result.yes);
    }
    return yes;
  }
  std::map<std::string, std::string> fetched() {
    std::map<std::string, std::string> all;
    elements.fetch([&](Elements::Found& found) { CHECK(all.emplace(found.name, found.value).second); });
    return all;
  }
  Elements::Listing listing() {
    return elements.fetch([](Elements::Found&) {});
  }
  std::size_t trips(const std::function<void()>& action) { return cluster.trips_of(action); }
};

Texts numbered(std::size_t count) {
  Texts names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("f" + std::to_string(i));
  return names;
}

}  // namespace

TEST_CASE("elements: set tells whether it was missing; get, remove and fetch agree") {
  World world;
  CHECK(world.fetched().empty());
  CHECK(world.set({"a", "b"}) == std::vector{true, true});
  CHECK(world.set({"b", "c"}, "w") == std::vector{false, true});
  CHECK(world.fetched() == std::map<std::string, std::string>{{"a", "v"}, {"b", "w"}, {"c", "w"}});
  CHECK(World::answers(world.elements.remove(Texts{"a", "x"})) == std::vector{true, false});
  CHECK(World::answers(world.elements.get(Texts{"a", "b"})) == std::vector{false, true});
  CHECK(world.fetched().size() == 2);
}

TEST_CASE("elements: the same name twice in a batch ends with the last value") {
  World world;
  const std::vector<Element> twice{{"a", "1"}, {"a", "2"}};
  CHECK(World::answers(world.cfg.set(twice)) == std::vector{true, false});
  CHECK(world.fetched() == std::map<std::string, std::string>{{"a", "2"}});
}

TEST_CASE("elements: any bytes are a name, up to 10 kB, and come back as they were") {
  World world;
  const Texts names{
      "", " ", "a:b", "%", "~", std::string("nul\0", 4), "\xff\r\n", std::string(max_element_size, 'x'), "é"};
  world.set(names);
  const auto all = world.fetched();
  CHECK(all.size() == names.size());
  for (const std::string& name : names) CHECK(all.contains(name));
  CHECK_THROWS_AS(check_element({std::string(max_element_size + 1, 'x'), ""}), Failure);
  CHECK_THROWS_AS(check_element({"big", std::string(max_value_size + 1, 'x')}), Failure);
  CHECK_THROWS_AS(Table(world.context, "a:v"), InvalidInput);
}

TEST_CASE("elements: round trips do not grow with the number of elements") {
  World world;
  const Texts many = numbered(500);
  CHECK(world.trips([&] { world.set({"first"}); }) == 5);
  world.set(many);
  CHECK(world.trips([&] { world.set(many); }) == 1);
  CHECK(world.trips([&] { world.set({"another", "and another"}); }) == 3);
  CHECK(world.trips([&] { world.elements.get(many); }) == 1);
  CHECK(world.trips([&] { world.fetched(); }) == 2);
  CHECK(world.trips([&] { world.elements.remove(many); }) == 1);
}

TEST_CASE("table: has 1, remove 1, add of an existing member 1 round trip") {
  World world;
  Table blocked(world.context, "blocked");
  CHECK(World::answers(blocked.add(Texts{"10.1.2.3"})) == std::vector{true});
  CHECK(world.trips([&] { CHECK(blocked.add(Texts{"10.1.2.3"})[0].yes == false); }) == 1);
  CHECK(world.trips([&] { CHECK(blocked.has(Texts{"10.1.2.3"})[0].yes); }) == 1);
  CHECK(world.cluster.execute(Request::get("table:blocked:v:10.1.2.3")).value == "1");
  CHECK(world.trips([&] { blocked.elements().remove(Texts{"10.1.2.3"}); }) == 1);
  CHECK_FALSE(blocked.has(Texts{"10.1.2.3"})[0].yes);
}

TEST_CASE(
    "elements: an evicted shard is told, also after it was created anew; relisting and accepting heals") {
  World world;
  const Texts names = numbered(100);
  world.set(names);
  CHECK(world.listing().complete());
  const std::string shard = world.elements.index_keys()[3];
  REQUIRE(world.servers.evict(shard));
  CHECK(world.listing().lost == Texts{shard});
  world.set(numbered(200));
  CHECK(world.listing().lost == Texts{shard});
  CHECK_FALSE(world.elements.compact());
  CHECK(world.listing().lost == Texts{shard});
  CHECK(world.fetched().size() < 200);
  world.set(names, "v", true);
  world.elements.accept();
  CHECK(world.listing().complete());
  CHECK(world.fetched().size() == 200);
}

TEST_CASE("elements: a lost manifest is told") {
  World world;
  world.set(numbered(100));
  const std::string manifest = world.elements.index_keys()[0];
  REQUIRE(world.servers.evict(manifest));
  CHECK(world.listing().lost == Texts{manifest});
  world.elements.accept();
  CHECK(world.listing().complete());
  CHECK(world.fetched().size() == 100);
}

TEST_CASE("elements: compaction drops what is absent and older than the grace, and nothing else") {
  World world;
  world.set(numbered(100));
  world.elements.remove(numbered(90));
  CHECK(world.elements.compact());
  CHECK(world.listing().lines >= 100);
  world.clock.advance(std::chrono::seconds(61));
  world.set({"young"});
  world.elements.remove(Texts{"young"});
  CHECK(world.elements.compact());
  CHECK(world.listing().names == 11);
  CHECK(world.fetched().size() == 10);
  CHECK(world.listing().complete());
}

TEST_CASE("elements: clear removes what is listed, and starts a damaged index anew") {
  World world;
  world.set(numbered(100));
  CHECK(world.elements.clear() == 100);
  CHECK(world.fetched().empty());
  world.set(numbered(50));
  world.servers.evict(world.elements.index_keys()[5]);
  CHECK(world.elements.clear() < 50);
  CHECK(world.listing().complete());
  CHECK(world.fetched().empty());
}

TEST_CASE("elements: an index past one item goes on in segments and loses nothing") {
  World world;
  Texts names;
  for (int i = 0; i < 3000; ++i) names.push_back(std::to_string(i) + std::string(9000, 'x'));
  for (std::size_t i = 0; i < names.size(); i += 500) {
    world.set(Texts(names.begin() + static_cast<std::ptrdiff_t>(i),
                    names.begin() + static_cast<std::ptrdiff_t>(i) + 500),
              "1");
  }
  CHECK(world.listing().complete());
  CHECK(world.fetched().size() == names.size());
}

TEST_CASE("elements: a foreign value under an index key is no empty index") {
  World world;
  world.cluster.execute(Request::set("hash:cfg:i", "mine", Exptime::never()));
  CHECK_THROWS_AS(world.fetched(), CorruptData);
}

}  // namespace mcds
