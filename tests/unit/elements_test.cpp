#include "common/structures/elements/elements.hpp"

#include <doctest/doctest.h>

#include <map>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/journal/lines.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/elements/hash.hpp"
#include "common/structures/elements/index.hpp"
#include "common/structures/elements/index_lines.hpp"
#include "common/structures/elements/table.hpp"
#include "tests/support/world.hpp"

namespace mcds::elements_test {

namespace {

using Texts = std::vector<std::string>;

struct World : test::World {
  using test::World::World;
  Hash cfg{context, "cfg"};
  Elements& elements = cfg;

  std::vector<bool> set(const Texts& names, const std::string& value = "v") {
    std::vector<Element> batch;
    for (const std::string& name : names) batch.push_back({name, value});
    return answers(cfg.set(batch));
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

TEST_CASE("elements: with a ttl they expire, and every set decides the end") {
  World world;
  const std::vector<Element> batch{{"a", "1"}, {"b", "1"}};
  CHECK(World::answers(world.cfg.set(batch, std::chrono::seconds(10))) == std::vector{true, true});
  CHECK(World::answers(world.cfg.set(std::span(batch).first(1))) == std::vector{false});
  world.clock.advance(std::chrono::seconds(13));
  CHECK(world.fetched() == std::map<std::string, std::string>{{"a", "1"}});
  CHECK(World::answers(world.elements.get(Texts{"a", "b"})) == std::vector{true, false});
  CHECK(world.listing().complete());
  // The next compaction drops the line of an expired element. That is no loss.
  world.clock.advance(std::chrono::seconds(61));
  world.elements.compact();
  CHECK(world.listing().names == 1);
  CHECK(World::answers(world.cfg.set(batch, std::chrono::seconds(10))) == std::vector{false, true});
  CHECK(world.fetched().size() == 2);
  world.clock.advance(std::chrono::seconds(13));
  CHECK(world.fetched().empty());
}

TEST_CASE("elements: one that expires costs no trip more, and has one copy") {
  World world;
  world.set(numbered(200));
  world.set({"f1"});
  const auto hour = std::chrono::hours(1);
  const std::vector<Element> batch{{"f7", "2"}};
  CHECK(world.trips.trips_of([&] { world.cfg.set(batch, hour); }) == 1);
  CHECK_THROWS_AS(world.cfg.set(batch, Duration::zero()), InvalidInput);
  Context two = world.context;
  two.copies = 2;
  Hash copied(two, "cfg");
  CHECK_THROWS_AS(copied.set(batch, hour), InvalidInput);
}

TEST_CASE("elements: behind a batch of new ones one trip is saved, and one that exists costs one more") {
  World world;
  world.set(numbered(200));  // every shard exists then
  CHECK(world.trips.trips_of([&] { CHECK(world.set({"newer", "newest"}) == std::vector{true, true}); }) == 2);
  const std::vector<Element> batch{{"f7", "2"}, {"last", "1"}, {"last", "2"}};
  std::vector<ElementResult> results;
  CHECK(world.trips.trips_of([&] { results = world.elements.set(batch); }) == 3);
  CHECK(!results[0].yes);
  CHECK(results[1].yes);
  CHECK(!results[2].yes);
  CHECK(world.elements.get(Texts{"f7"})[0].value == "2");
  CHECK(world.elements.get(Texts{"last"})[0].value == "2");
  CHECK(world.trips.trips_of([&] { world.set({"last"}); }) == 1);
}

TEST_CASE("elements: while one batch is on its way the next is listed, and of one name the last one stays") {
  World world;
  world.set({"new"});
  const std::vector<Element> b{{"b", "1"}}, c{{"c", "1"}}, other_b{{"b", "2"}},
      again{{"new", "3"}, {"d", "3"}};
  const auto first = world.cfg.begin_set(b);
  const auto second = world.cfg.begin_set(c);
  const auto third = world.cfg.begin_set(other_b);
  CHECK(world.answers(first()) == std::vector{true});
  CHECK(world.answers(second()) == std::vector{true});
  CHECK(world.answers(third()) == std::vector{false});
  world.set({"newest"});
  const auto fourth = world.cfg.begin_set(again);
  const auto fifth = world.cfg.begin_set(other_b);
  CHECK(world.answers(fourth()) == std::vector{false, true});
  CHECK(world.answers(fifth()) == std::vector{false});
  CHECK(world.fetched() == std::map<std::string, std::string>{
                               {"b", "2"}, {"c", "1"}, {"d", "3"}, {"new", "3"}, {"newest", "v"}});
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
  CHECK(world.trips.trips_of([&] { world.set({"first"}); }) == 6);
  world.set(many);
  CHECK(world.trips.trips_of([&] { world.set(many); }) == 3);  // assumed to be new, as all were before
  CHECK(world.trips.trips_of([&] { world.set(many); }) == 1);
  CHECK(world.trips.trips_of([&] { world.set({"another", "and another"}); }) == 3);
  CHECK(world.trips.trips_of([&] { world.elements.get(many); }) == 1);
  CHECK(world.trips.trips_of([&] { world.fetched(); }) == 2);
  CHECK(world.trips.trips_of([&] { world.elements.remove(many); }) == 1);
}

TEST_CASE("elements: all parts of a new index are named in one change, not in a trip each") {
  World one;
  CHECK(one.trips.trips_of([&] { one.set({"first"}); }) == 6);
  World many;
  CHECK(many.trips.trips_of([&] { many.set(numbered(500)); }) == 6);
  CHECK(many.listing().complete());
}

TEST_CASE("table: has 1, remove 1, add of an existing member 1 round trip") {
  World world;
  Table blocked(world.context, "blocked");
  CHECK(World::answers(blocked.add(Texts{"10.1.2.3"})) == std::vector{true});
  Table again(world.context, "blocked");
  CHECK(world.trips.trips_of([&] { CHECK(again.add(Texts{"10.1.2.3"})[0].yes == false); }) == 1);
  CHECK(world.trips.trips_of([&] { CHECK(blocked.get(Texts{"10.1.2.3"})[0].yes); }) == 1);
  CHECK(world.trips.execute(Request::get("table:blocked:v:10.1.2.3")).value == "1");
  CHECK(world.trips.trips_of([&] { blocked.remove(Texts{"10.1.2.3"}); }) == 1);
  CHECK_FALSE(blocked.get(Texts{"10.1.2.3"})[0].yes);
}

TEST_CASE(
    "elements: an evicted shard is reported, also after it was created again; setting all again and "
    "accepting "
    "heals") {
  World world;
  const Texts names = numbered(100);
  world.set(names);
  CHECK(world.listing().complete());
  const std::string shard = world.elements.index_keys()[3];
  REQUIRE(world.memory.evict(shard));
  CHECK(world.listing().lost == Texts{shard});
  world.set(names);  // assumed to be new, so listed again; not tested here
  REQUIRE(world.memory.evict(shard));
  world.set(numbered(200));
  CHECK(world.listing().lost == Texts{shard});
  world.elements.compact();
  CHECK(world.listing().lost == Texts{shard});
  CHECK(world.fetched().size() < 200);
  std::vector<Element> batch;
  for (const std::string& name : numbered(200)) batch.push_back({name, "v"});
  Hash again(world.context, "cfg");
  World::answers(again.set(batch));
  again.accept();
  CHECK(world.listing().complete());
  CHECK(world.fetched().size() == 200);
}

TEST_CASE(
    "elements: whoever sets several again lists them again while a part of the index is lost, in any number "
    "of copies, and not otherwise") {
  for (const std::size_t copies : {1U, 2U, 3U}) {
    for (const std::string lost : {"", "shard", "shard created anew", "shard damaged", "manifest",
                                   "both created anew", "all", "a copy"}) {
      CAPTURE(copies);
      CAPTURE(lost);
      test::World world(5, copies);
      const Texts names = numbered(40);
      std::vector<Element> batch;
      for (const std::string& name : names) batch.push_back({name, "v"});
      World::answers(Hash(world.context, "cfg").set(batch));
      const Texts keys = Hash(world.context, "cfg").index_keys();
      const auto lose = [&](const std::string& key) {
        for (std::size_t server = 0; server < 5; ++server) world.memory.server(server).evict(key);
      };
      const std::string shard = keys[index_shard_of(names.front()) + 1];
      if (lost == "shard" || lost.ends_with("created anew")) lose(shard);
      if (lost == "both created anew") lose(keys.front());
      for (std::size_t server = 0; lost == "shard damaged" && server < 5; ++server) {
        std::string value = world.memory.server(server).execute(Request::get(shard)).value;
        if (value.empty()) continue;
        value[value.size() / 2] ^= 1;
        world.memory.server(server).execute(Request::set(shard, value, Exptime::never()));
      }
      if (lost == "manifest" || lost == "all") lose(keys.front());
      for (std::size_t i = 1; lost == "all" && i < keys.size(); ++i) lose(keys[i]);
      if (lost == "a copy") world.memory.server_for(keys.front()).evict(keys.front());
      if (lost.ends_with("created anew")) {
        std::string other = "g";
        while (index_shard_of(other) != index_shard_of(names.front())) other += 'g';
        const Element one{other, "v"};
        World::answers(Hash(world.others, "cfg").set(std::span(&one, 1)));
      }
      const auto listed = [&] {
        std::size_t count = 0;
        const auto listing = Hash(world.others, "cfg").fetch([&](Elements::Found& found) {
          count += found.name.starts_with('f') ? 1 : 0;
        });
        return std::pair(count, listing.lines);
      };
      const auto before = listed();
      std::size_t trips = 0;
      Hash again(world.context, "cfg");
      trips = world.trips.trips_of([&] { World::answers(again.set(batch)); });
      const bool is_lost = !lost.empty() && (copies == 1 || lost != "a copy");
      if (!is_lost) {
        CHECK(trips <= (copies == 1 ? 1 : 3));
        CHECK(listed() == before);
        continue;
      }
      CHECK(listed().first == names.size());
      again.accept();
      CHECK(Hash(world.others, "cfg").fetch([](Elements::Found&) {}).complete());
      CHECK(listed().first == names.size());
      Hash third(world.context, "cfg");
      CHECK(world.trips.trips_of([&] { World::answers(third.set(batch)); }) <= (copies == 1 ? 1 : 3));
    }
  }
}

TEST_CASE(
    "elements: a shard whose creator died before naming it is no loss, and is named by the next fetch") {
  World world;
  world.set({"a"});
  const Texts keys = world.elements.index_keys();
  // The shard as its creator leaves it: the first line is `born`, and no line is `named`.
  const std::size_t shard = crc32("b") % index_shards;
  REQUIRE(shard != crc32("a") % index_shards);
  const std::string born = encode(JournalLine{Change::remove, "6920f3d5b7c1e0f2.1", "born"});
  const std::string line = encode(JournalLine{Change::add, "6920f3d5b7c1e0f2.0", quote_bytes("b")});
  const auto leave_unnamed = [&](const std::string& first) {
    static_cast<void>(world.memory.execute(
        Request::set(keys[shard + 1], journal_header("5be1d27348a0c6f1") + first + line, Exptime::never())));
  };
  leave_unnamed(born);
  CHECK(world.listing().complete());
  CHECK(world.trips.trips_of([&] { CHECK(world.listing().complete()); }) == 2);
  REQUIRE(world.memory.evict(keys[shard + 1]));
  CHECK(world.listing().lost == Texts{keys[shard + 1]});
  world.elements.accept();
  // A manifest that was lost since is reported, as is an unnamed shard without a `born` line.
  leave_unnamed(born);
  CHECK(world.listing().complete());
  REQUIRE(world.memory.evict(keys[0]));
  CHECK(world.listing().lost == Texts{keys[0]});
  world.elements.accept();
  CHECK(world.listing().complete());
  REQUIRE(world.memory.evict(keys[shard + 1]));
  world.elements.accept();
  leave_unnamed("");
  CHECK(world.listing().lost == Texts{keys[0]});
}

TEST_CASE("elements: a shard that comes back after its loss was recorded leaves no loss") {
  World world;
  world.set(numbered(100));
  const std::string shard = world.elements.index_keys()[3];
  const std::string value = world.trips.execute(Request::get(shard)).value;
  REQUIRE(world.memory.evict(shard));
  const auto finds_loss = [&] { CHECK(world.listing().lost == Texts{shard}); };
  const std::size_t recording = world.trips.trips_of(finds_loss);
  CHECK(world.trips.trips_of(finds_loss) + 1 == recording);
  static_cast<void>(world.memory.execute(Request::set(shard, value, Exptime::never())));
  CHECK(world.listing().complete());
  // Others list nothing again.
  Hash other(world.others, "cfg");
  const std::size_t lines = world.listing().lines;
  std::vector<Element> batch;
  for (const std::string& name : numbered(100)) batch.push_back({name, "w"});
  World::answers(other.set(batch));
  CHECK(world.listing().lines == lines);
}

TEST_CASE("elements: a lost manifest is reported") {
  World world;
  world.set(numbered(100));
  const std::string manifest = world.elements.index_keys()[0];
  REQUIRE(world.memory.evict(manifest));
  CHECK(world.listing().lost == Texts{manifest});
  world.elements.accept();
  CHECK(world.listing().complete());
  CHECK(world.fetched().size() == 100);
}

TEST_CASE(
    "elements: what is accepted beside a drop is no loss when the drop ends; one that died is accepted") {
  for (const bool died : {false, true}) {
    World world;
    world.set({"a"});
    const std::size_t shard = crc32("a") % index_shards;
    const Texts keys = world.elements.index_keys();
    const std::string value = world.trips.execute(Request::get(keys[shard + 1])).value;
    const auto now = static_cast<std::uint64_t>(unix_seconds(world.clock.wall()));
    const std::string dropped =
        encode(JournalLine{Change::remove, journal_line_id(hex64(now << 32), 0),
                           manifest_entry(shard, decode_journal_root(value)->incarnation)});
    static_cast<void>(world.memory.execute(Request::append(keys[0], dropped)));
    if (died) world.clock.advance(ElementIndex::grace + std::chrono::seconds(1));
    world.elements.accept();
    REQUIRE(world.memory.evict(keys[shard + 1]));
    CHECK(world.listing().complete() != died);
  }
}

TEST_CASE("elements: compaction keeps the lines that only a later version knows") {
  World world;
  world.set(numbered(100));
  world.elements.remove(numbered(90));
  world.clock.advance(ElementIndex::grace + std::chrono::seconds(1));
  const std::string shard = world.elements.index_keys()[3];
  const std::string later = encode(JournalLine{Change::add, "6920f3d5b7c1e0f2.0", "5"}) +
                            encode(JournalLine{Change::remove, "6920f3d5b7c1e0f2.1", "later:5"});
  static_cast<void>(world.memory.execute(Request::append(shard, later)));
  const auto value = [&] { return world.trips.execute(Request::get(shard)).value; };
  const std::size_t before = value().size();
  world.elements.compact();
  CHECK(value().size() < before);
  for (const char* element : {" 5 *", " later:5 *"}) CHECK(value().find(element) != std::string::npos);
}

TEST_CASE("elements: compaction drops what is absent and older than the grace, and nothing else") {
  World world;
  world.set(numbered(100));
  world.elements.remove(numbered(90));
  world.elements.compact();
  CHECK(world.listing().lines >= 100);
  world.clock.advance(std::chrono::seconds(61));
  world.set({"young"});
  world.elements.remove(Texts{"young"});
  world.elements.compact();
  CHECK(world.listing().names <= 21);
  CHECK(world.fetched().size() == 10);
  CHECK(world.listing().complete());
}

TEST_CASE(
    "elements: a fetch that finds more than half of a shard dead and old compacts it, a young one not") {
  World world;
  world.set(numbered(16000));
  Texts gone = numbered(15000);
  for (std::size_t i = 0; i < gone.size(); i += 500)  // as many commands: none removes much
    Hash(world.context, "cfg").remove(std::span(gone).subspan(i, 500));
  CHECK(world.listing().names == 16000);
  world.clock.advance(std::chrono::seconds(61));
  const std::size_t fetching = world.trips.requests();
  CHECK(world.listing().names == 16000);
  const std::size_t requests = world.trips.requests() - fetching;
  CHECK(world.listing().names == 1000);
  CHECK(world.fetched().size() == 1000);
  CHECK(world.listing().complete());
  // Compaction at most doubles the fetch's one request per name, plus a few for each shard.
  CHECK(requests < 2 * 16000 + 17 + index_shards * 12);
  const std::size_t trips = world.trips.trips();
  world.fetched();
  CHECK(world.trips.trips() - trips == 2);
}

TEST_CASE("elements: a hash that only grows is not asked for its elements each time a shard has doubled") {
  MemoryServerOptions small;
  small.item_size = 8192;
  World world(3, 1, small);
  const std::string filler(40, 'x');  // some hundred names fill a shard's root
  for (std::size_t batch = 0; batch < 40; ++batch) {
    std::vector<Element> elements;
    for (std::size_t i = 0; i < 500; ++i) elements.push_back({filler + std::to_string(batch * 500 + i), ""});
    World::answers(Hash(world.context, "cfg").set(elements));
    world.clock.advance(std::chrono::seconds(61));
  }
  // It takes two requests for each element, and samples of the shards. Reading whole shards took 60,026.
  CHECK(world.trips.requests() < 52'000);
}

TEST_CASE("elements: who has removed many drops their names, unless another client lists one meanwhile") {
  World world;
  const Texts names = numbered(8000);
  for (int round = 0; round < 3; ++round) {
    Hash adder(world.context, "cfg");
    std::vector<Element> batch;
    for (const std::string& name : names) batch.push_back({name, "v"});
    World::answers(adder.set(batch));
    Hash remover(world.context, "cfg");
    World::answers(remover.remove(names));
    if (round == 2) {
      const Element one{"f7", "again"};
      World::answers(Hash(world.others, "cfg").set(std::span(&one, 1)));
    }
    const std::size_t requests = world.trips.requests(), trips = world.trips.trips();
    remover.compact_removed();
    CHECK(world.trips.requests() - requests < names.size() + index_shards * 12);
    CHECK(world.trips.trips() - trips < index_shards * 12);
    CHECK(world.listing().names == (round == 2 ? 1 : 0));
    CHECK(world.listing().complete());
  }
  CHECK(world.fetched() == std::map<std::string, std::string>{{"f7", "again"}});
  // If only a few were removed, other clients drop them.
  World few;
  few.set(numbered(100));
  few.elements.remove(numbered(100));
  CHECK(few.trips.trips_of([&] { few.elements.compact_removed(); }) == 0);
}

// Between the removal and its compaction, another client drops the old line of the name and a third one lists
// it.
TEST_CASE("elements: who removed a name before others listed it again leaves their line") {
  const Journal::Options eager{.min_dead = 0};
  for (const int seconds : {0, 20}) {
    for (std::size_t trip = 0; trip < 6; ++trip) {
      CAPTURE(seconds);
      CAPTURE(trip);
      World world;
      world.set(numbered(40));
      world.clock.advance(ElementIndex::grace + std::chrono::seconds(1));
      Elements remover(world.others, "hash", "cfg", eager);
      World::answers(remover.remove(numbered(40)));
      world.clock.advance(std::chrono::seconds(seconds));
      Elements(world.others, "hash", "cfg", eager).compact();
      CHECK(world.listing().names == 0);
      world.clock.set_skew(std::chrono::seconds(-seconds));  // of who lists it again
      world.rival.before(world.rival.trips() + trip, [&] {
        world.clock.set_skew({});
        remover.compact_removed();
        world.clock.set_skew(std::chrono::seconds(-seconds));
      });
      CHECK(world.set({"f7"}, "again") == std::vector<bool>{true});
      remover.compact_removed();
      CHECK(world.fetched() == std::map<std::string, std::string>{{"f7", "again"}});
      CHECK(world.listing().complete());
    }
  }
}

TEST_CASE("elements: lines that only a later version can read are kept, and reported, also by accept") {
  World world;
  world.set(numbered(200));
  const std::string later = seal("~ 6b0e00271a7c1599.0 \"f7\"") + '\n';
  for (const std::string& key : world.elements.index_keys())
    world.memory.execute(Request::append(key, later));
  world.elements.remove(numbered(190));
  world.clock.advance(ElementIndex::grace + std::chrono::seconds(1));
  world.elements.compact();
  world.elements.accept();
  for (const std::string& key : world.elements.index_keys()) {
    CAPTURE(key);
    CHECK(world.stored(key).find(later) != std::string::npos);
  }
  CHECK(world.listing().lost == world.elements.index_keys());
  CHECK(world.fetched().size() == 10);
}

TEST_CASE("elements: drop leaves another program's value where it is, and removes nothing beside it") {
  for (const std::string key : {"hash:cfg:i", "hash:cfg:i:3"}) {
    World world;
    world.set({"a"});
    static_cast<void>(world.trips.execute(Request::set(key, "mine", Exptime::never())));
    CHECK_THROWS_AS(world.elements.drop(), CorruptData);
    CHECK(world.elements.get(Texts{"a"})[0].yes);
    CHECK(world.stored(key) == "mine");
  }
}

TEST_CASE("elements: drop waits only where another client may be about to set what it has listed") {
  World world;
  const auto dropping = [&] {
    const SteadyTime before = world.clock.steady();
    CHECK(world.elements.drop());
    return world.clock.steady() - before;
  };
  world.set(numbered(100));
  CHECK(world.trips.trips_of([&] { CHECK(dropping() == Duration::zero()); }) <= 6 + 2 * index_shards);
  CHECK(test::left_in(world.memory).empty());
  world.set(numbered(100));
  world.elements.remove(Texts{"f7"});
  CHECK(dropping() >= std::chrono::seconds(2));
  world.set(numbered(100));
  world.elements.remove(Texts{"f7"});
  world.clock.advance(std::chrono::seconds(61));
  CHECK(dropping() == Duration::zero());
  CHECK(test::left_in(world.memory).empty());
  CHECK_FALSE(world.elements.drop());
}

TEST_CASE(
    "elements: a drop that dies, or gets no reply, at any step loses nothing that is set afterwards, and a "
    "second one ends it, in any number of copies") {
  for (const std::size_t copies : {1U, 2U, 3U}) {
    for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request, test::Mishap::refused}) {
      for (int step = 0; step < 300; ++step) {
        CAPTURE(copies);
        CAPTURE(step);
        test::World world(5, copies);
        std::vector<Element> batch;
        for (const std::string& name : numbered(12)) batch.push_back({name, "old"});
        World::answers(Hash(world.others, "cfg").set(batch));
        int left = step;
        bool met = false;
        // The client has died: no further request gets through.
        world.faults.choose([&](const Request&) -> std::optional<test::Mishap> {
          if (left-- > 0) return std::nullopt;
          return std::exchange(met, true) ? test::Mishap::unreachable : mishap;
        });
        const auto dropped = attempt([&] { return Hash(world.context, "cfg").drop(); });
        world.faults.none();
        CHECK(met == dropped.failure().has_value());
        const Element mine{"mine", "new"}, again{"f3", "new"};
        World::answers(Hash(world.others, "cfg").set(std::span(&mine, 1)));
        World::answers(Hash(world.others, "cfg").set(std::span(&again, 1)));
        world.clock.advance(std::chrono::minutes(5));
        std::map<std::string, std::string> found;
        const auto listing =
            Hash(world.others, "cfg").fetch([&](Elements::Found& one) { found[one.name] = one.value; });
        CHECK(listing.complete());
        CHECK(found["mine"] == "new");
        CHECK(found["f3"] == "new");
        CHECK(Hash(world.others, "cfg").drop());
        world.clock.advance(std::chrono::hours(2));
        CHECK(test::left_in(world.memory).empty());
        if (!met) break;
      }
    }
  }
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

TEST_CASE("elements: a compaction that drops nothing leaves no further segment behind") {
  World world;
  Texts names;
  for (int i = 0; i < 3000; ++i) names.push_back(std::to_string(i) + std::string(9000, 'x'));
  world.set(names, "1");
  world.clock.advance(std::chrono::seconds(61));
  world.elements.compact();
  for (int i = 0; i < 3; ++i) {
    world.set({"new" + std::to_string(i)}, "1");
    const std::size_t items = test::left_in(world.memory).size();
    world.elements.compact();
    CHECK(test::left_in(world.memory).size() == items);
  }
  CHECK(world.fetched().size() == names.size() + 3);
}

TEST_CASE("elements: a line of another program whose id begins with no time is not dropped as old") {
  constexpr std::int64_t now = 0x6a0abc00;
  CHECK(is_old("6a0abb000123abcd.0", now));
  CHECK_FALSE(is_old("6a0abbff0123abcd.0", now));
  for (const char* id : {"perl-7f3a.12_x.0", "0000000perl.1", "zzzz.0", "6a.0"}) CHECK_FALSE(is_old(id, now));
}

TEST_CASE("elements: a foreign value under an index key is no empty index") {
  World world;
  world.trips.execute(Request::set("hash:cfg:i", "mine", Exptime::never()));
  CHECK_THROWS_AS(world.fetched(), CorruptData);
}

}  // namespace mcds::elements_test
