// Structures touched with another number of copies than they are kept in.
#include "common/primitives/several/kept.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "common/primitives/parts.hpp"
#include "common/structures/array/array.hpp"
#include "common/structures/elements/hash.hpp"
#include "common/structures/elements/table.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/world.hpp"

namespace mcds::kept_test {

namespace {

using namespace std::chrono_literals;

using Texts = std::vector<std::string>;

struct KeptWorld : test::World {
  KeptWorld() : World(5) {}

  RingShape shape{10, 6};

  Array jobs(std::size_t copies) {
    // Small, so that an array of some lines has segments.
    return {with(copies), "jobs", {.segment_size = 600, .largest_padding = 2048, .largest_change = 1024}};
  }
  Hash cfg(std::size_t copies) { return {with(copies), "cfg"}; }
  Table blocked(std::size_t copies) { return {with(copies), "blocked"}; }
  EventLog deploys(std::size_t copies) { return {with(copies), "deploys", shape}; }

  using Bytes = std::map<std::pair<std::size_t, std::string>, std::string>;
  Bytes bytes() {
    Bytes all;
    for (std::size_t server = 0; server < memory.size(); ++server) {
      for (const auto& [key, item] : memory.server(server).items()) all[{server, key}] = item.value;
    }
    return all;
  }

  // As before 0.2: the keys do not say that there are two copies.
  void unmark(const std::string& structure) {
    const Bytes marked = bytes();
    for (const auto& [place, value] : marked) {
      const auto& [server, key] = place;
      if (!key.starts_with(structure + "2:")) continue;
      const std::string unmarked = structure + key.substr(structure.size() + 1);
      const auto before = memory.placement().servers_of(key, 2);
      const std::size_t copy = before[0] == server ? 0 : 1;
      Request add = Request::add(unmarked, value, Exptime::never());
      add.flags = memory.server(server).peek(key)->flags;
      memory.execute(std::move(add).on(memory.placement().servers_of(unmarked, 2)[copy]));
      memory.server(server).evict(key);
    }
  }
};

Texts numbered(std::size_t count) {
  Texts texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back('"' + std::to_string(i) + '"');
  return texts;
}

void check_refused(const std::function<void()>& act, std::size_t kept) {
  const std::string told = std::to_string(kept) + (kept == 1 ? " copy" : " copies");
  bool refused = false;
  try {
    act();
  } catch (const Failure& failure) {
    refused = true;
    CHECK(failure.code() == ErrorCode::bad_data);
    CHECK(std::string(failure.what()).find("is kept in " + told) != std::string::npos);
  }
  CHECK(refused);
}

using Verb = std::function<void(KeptWorld&, std::size_t copies)>;

// Kept in every number of copies, touched with every other: refused, and nothing changed.
void check_all(const std::function<void(KeptWorld&, std::size_t copies)>& write,
               const std::map<std::string, Verb>& verbs) {
  for (const std::size_t kept : {1U, 2U, 3U}) {
    KeptWorld world;
    write(world, kept);
    const auto before = world.bytes();
    for (const std::size_t other : {1U, 2U, 3U}) {
      if (other == kept) continue;
      for (const auto& [name, verb] : verbs) {
        CAPTURE(kept);
        CAPTURE(other);
        CAPTURE(name);
        check_refused([&] { verb(world, other); }, kept);
        REQUIRE(world.bytes() == before);
      }
    }
  }
}

const std::map<std::string, Verb> array_verbs{
    {"fetch", [](KeptWorld& world, std::size_t copies) { world.jobs(copies).fetch(); }},
    {"add", [](KeptWorld& world, std::size_t copies) { world.jobs(copies).change(Texts{"\"x\""}, {}); }},
    {"delete", [](KeptWorld& world, std::size_t copies) { world.jobs(copies).change({}, Texts{"\"1\""}); }},
    {"replace", [](KeptWorld& world, std::size_t copies) { world.jobs(copies).replace(Texts{"\"x\""}); }},
    {"replace by much",
     [](KeptWorld& world, std::size_t copies) { world.jobs(copies).replace(numbered(99)); }},
    {"clear", [](KeptWorld& world, std::size_t copies) { world.jobs(copies).clear(); }},
    {"where", [](KeptWorld& world, std::size_t copies) { world.jobs(copies).keys(); }},
};

const std::map<std::string, Verb> hash_verbs{
    {"set",
     [](KeptWorld& world, std::size_t copies) {
       world.cfg(copies).set(std::vector<Element>{{"a", "x"}});
     }},
    {"set another",
     [](KeptWorld& world, std::size_t copies) {
       world.cfg(copies).set(std::vector<Element>{{"new", "x"}});
     }},
    {"set and list",
     [](KeptWorld& world, std::size_t copies) {
       world.cfg(copies).set(std::vector<Element>{{"a", "x"}}, true);
     }},
    {"get", [](KeptWorld& world, std::size_t copies) { world.cfg(copies).get(Texts{"a"}); }},
    {"remove", [](KeptWorld& world, std::size_t copies) { world.cfg(copies).remove(Texts{"a"}); }},
    {"fetch", [](KeptWorld& world, std::size_t copies) { world.cfg(copies).fetch([](Elements::Found&) {}); }},
    {"clear", [](KeptWorld& world, std::size_t copies) { world.cfg(copies).clear(); }},
    {"compact", [](KeptWorld& world, std::size_t copies) { world.cfg(copies).compact(); }},
    {"accept", [](KeptWorld& world, std::size_t copies) { world.cfg(copies).accept(); }},
    {"where", [](KeptWorld& world, std::size_t copies) { world.cfg(copies).index_keys(); }},
};

const std::map<std::string, Verb> log_verbs{
    {"put", [](KeptWorld& world, std::size_t copies) { world.deploys(copies).put("x", EventData::text); }},
    {"fetch",
     [](KeptWorld& world, std::size_t copies) {
       CollectingSink sink;
       world.deploys(copies).fetch({}, sink);
     }},
    {"deliver",
     [](KeptWorld& world, std::size_t copies) {
       CollectingSink sink;
       CursorState state;
       world.deploys(copies).deliver(state, sink);
     }},
    {"where",
     [](KeptWorld& world, std::size_t copies) { keys_of_log(world.with(copies), "deploys", world.shape); }},
};

bool nothing_to_take_back() {
  CHECK(!"there is no other");
  return false;
}

// A thing of one item, created in two copies, between whose looks `meanwhile` happens.
ErrorCode created_twice(KeptWorld& world, const std::function<void()>& meanwhile,
                        const std::function<bool()>& take_back) {
  const Context context = world.with(2);
  Kept kept(context, "array", "jobs", "", [](const std::string&, const std::string&) { return true; });
  CHECK_FALSE(kept.elsewhere());
  for (const Reply& reply : execute_copies(context, Request::add(kept.key(), "mine", Exptime::never())))
    CHECK(reply.outcome == Outcome::stored);
  meanwhile();
  const auto failure = attempt([&] { kept.confirm(take_back); }).failure();
  return failure ? failure->code() : ErrorCode();
}

}  // namespace

TEST_CASE("kept: an array touched with another number of copies stays as it is") {
  check_all([](KeptWorld& world, std::size_t copies) { world.jobs(copies).change(numbered(3), {}); },
            array_verbs);
}

TEST_CASE("kept: an array of segments touched with another number of copies stays as it is") {
  check_all(
      [](KeptWorld& world, std::size_t copies) {
        world.jobs(copies).replace(numbered(200));
        CHECK(world.jobs(copies).fetch().elements.size() == 200);
        CHECK(world.jobs(copies).keys().size() > 3);
      },
      array_verbs);
}

TEST_CASE("kept: no array with the JSON encoding begins beside journals in several copies") {
  for (const std::size_t kept : {2U, 3U}) {
    KeptWorld world;
    world.jobs(kept).change(numbered(3), {});
    const auto before = world.bytes();
    check_refused([&] { world.jobs(1).change(Texts{"1"}, {}, ArrayEncoding::json); }, kept);
    check_refused([&] { world.jobs(1).replace(Texts{"1"}, ArrayEncoding::json, true); }, kept);
    CHECK(world.bytes() == before);
  }
}

TEST_CASE("kept: a hash touched with another number of copies stays as it is") {
  check_all(
      [](KeptWorld& world, std::size_t copies) {
        world.cfg(copies).set(std::vector<Element>{{"a", "1"}, {"b", "2"}, {"c", "3"}});
      },
      hash_verbs);
}

TEST_CASE("kept: an event log touched with another number of copies stays as it is") {
  check_all([](KeptWorld& world, std::size_t copies) { world.deploys(copies).put("v1", EventData::text); },
            log_verbs);
}

TEST_CASE("kept: what is missing costs one more trip, once") {
  KeptWorld world;
  world.blocked(1).add(Texts{"a"});
  Table blocked = world.blocked(1);
  CHECK(world.trips.trips_of([&] { CHECK(blocked.get(Texts{"a"}).front().yes); }) == 1);
  CHECK(world.trips.trips_of([&] { CHECK_FALSE(blocked.get(Texts{"b"}).front().yes); }) == 2);
  CHECK(world.trips.trips_of([&] { CHECK_FALSE(blocked.get(Texts{"c"}).front().yes); }) == 1);
}

TEST_CASE("kept: while the other number's servers do not answer, a second structure begins and harms none") {
  KeptWorld world;
  world.jobs(1).change(numbered(3), {});
  const std::size_t owner = world.memory.placement().server_of("array:jobs");
  world.memory.stop(owner);
  static_cast<void>(world.jobs(2).change(Texts{"\"x\""}, {}));
  world.memory.proceed(owner);
  CHECK(world.jobs(1).fetch().elements == numbered(3));
  CHECK(world.jobs(2).fetch().elements == Texts{"\"x\""});
}

TEST_CASE("kept: a part lies with what it continues, for any number of copies") {
  for (const std::size_t copies : {1U, 2U, 3U}) {
    KeptWorld one;
    one.jobs(copies).replace(numbered(200));
    for (const PlacedKey& key : one.jobs(copies).keys()) {
      const auto servers = copy_servers(one.with(copies), key.placed_by());
      CHECK(servers == copy_servers(one.with(copies), one.jobs(copies).keys().front().key));
      if (key.with.empty()) CHECK(one.memory.server(servers.front()).peek(key.key));
    }
    std::size_t segments = 0;
    for (std::size_t server = 0; server < one.memory.size(); ++server) {
      for (const auto& [key, item] : one.memory.server(server).items())
        segments += key.find(":s:") != std::string::npos ? 1 : 0;
    }
    CHECK(segments > copies);
  }
}

TEST_CASE("kept: a part is known by its key, and nothing else is taken for one") {
  const std::string id = ":s:0123456789abcdef";
  const std::map<std::string, std::string> parts{
      {"ns:array:jobs" + id, "ns:array:jobs"},
      {"ns:array2:jobs" + id, "ns:array2:jobs"},
      {"ns:table:blocked:i" + id, "ns:table:blocked:i"},
      {"ns:hash3:cfg:i:15" + id, "ns:hash3:cfg:i:15"},
      {"ns:eventlog:deploys:60x60:29920568.1003", "ns:eventlog:deploys:60x60:29920568"},
      {"ns:eventlog2:deploys:60x60:29920568.1", "ns:eventlog2:deploys:60x60:29920568"},
      {"ns:lock:nightly:fence", "ns:lock:nightly"},
  };
  for (const auto& [part, with] : parts) {
    CHECK(placed(part, "ns:").with == with);
    CHECK(is_segment(placed(part, "ns:")) == part.ends_with(id));
  }
  for (const std::string& key : std::vector<std::string>{
           "ns:array:jobs", "ns:array:jobs:json", "ns:table:blocked" + id, "ns:hash:cfg:v:a",
           "array:jobs" + id, "ns:sessions" + id, "ns:eventlog:deploys:60x60:29920568",
           "ns:eventlog:deploys:conf", "ns:price:60x60:1.5", "ns:counter:a:fence"}) {
    CAPTURE(key);
    CHECK(placed(key, "ns:").with.empty());
  }
}

TEST_CASE("kept: segments that an earlier version placed by their own bytes are read, and compacted") {
  KeptWorld world;
  world.jobs(1).replace(numbered(200));
  const auto keys = world.jobs(1).keys();
  std::size_t moved = 0;
  for (const PlacedKey& key : keys) {
    if (key.with.empty()) continue;
    const std::size_t own = world.memory.placement().server_of(key.key);
    const std::size_t with = world.memory.placement().server_of(key.with);
    if (own == with) continue;
    const auto item = world.memory.server(with).peek(key.key);
    REQUIRE(item);
    world.memory.server(own).execute(Request::add(key.key, item->value, Exptime::never()));
    REQUIRE(world.memory.server(with).evict(key.key));
    ++moved;
  }
  REQUIRE(moved > 0);
  Array jobs = world.jobs(1);
  CHECK(jobs.fetch().complete());
  CHECK(jobs.fetch().elements == numbered(200));
  CHECK(jobs.change(Texts{"\"x\""}, Texts{"\"7\""}).found);
  CHECK(jobs.compact());
  CHECK(jobs.fetch().elements.size() == 200);
}

TEST_CASE(
    "kept: an event log's parts are delivered from the thousandth on, and those placed by their own bytes") {
  KeptWorld world;
  for (std::size_t server = 0; server < world.memory.size(); ++server)
    world.memory.server(server).options().item_size = 80000;
  EventLog log = world.deploys(1);
  const std::string text(41000, 'x');
  std::size_t put = 0;
  for (; put < 1010; ++put) log.put(text, EventData::text);
  CollectingSink fetched;
  world.deploys(1).fetch({}, fetched);
  CHECK(fetched.events.size() == put);
  CHECK(fetched.gaps.empty());
  CollectingSink delivered;
  CursorState state;
  world.deploys(1).deliver(state, delivered);
  CHECK(delivered.events.size() == put);

  const LogKeys keys = log.keys();
  const std::int64_t chunk = world.shape.chunk_of(world.clock.wall());
  const std::size_t with = world.memory.placement().server_of(keys.part({chunk, 0}));
  std::size_t moved = 0;
  for (const std::int64_t part : {1, 2, 3, 500, 1003}) {
    const std::string key = keys.part({chunk, part});
    const std::size_t own = world.memory.placement().server_of(key);
    if (own == with) continue;
    world.memory.server(own).execute(
        Request::add(key, world.memory.server(with).peek(key)->value, Exptime::never()));
    world.memory.server(with).evict(key);
    ++moved;
  }
  REQUIRE(moved > 0);
  CollectingSink again;
  world.deploys(1).fetch({}, again);
  CHECK(again.events.size() == put);
  CHECK(again.gaps.empty());
}

TEST_CASE("kept: what an earlier version kept in several copies goes on under its unmarked keys") {
  KeptWorld world;
  const auto servers = world.memory.placement().servers_of("array:jobs", 3);
  for (std::size_t copy = 0; copy < 2; ++copy) {
    world.memory.server(servers[copy])
        .execute(Request::append_or_create(
            "array:jobs", journal_header(copy == 0 ? "b000000000000001" : "b000000000000002"),
            encode(JournalLine{Change::add, "a000000000000001.0", "\"old\""}), Exptime::never()));
  }
  CHECK(world.jobs(2).fetch().elements == Texts{"\"old\""});
  CHECK_FALSE(world.jobs(2).change(Texts{"\"new\""}, {}).created);
  CHECK(world.jobs(2).fetch().elements == Texts{"\"old\"", "\"new\""});
  CHECK(world.jobs(2).keys().front().key == "array:jobs");
  world.memory.server(servers[2])
      .execute(Request::append_or_create("array:jobs", journal_header("b000000000000003"),
                                         encode(JournalLine{Change::add, "a000000000000001.0", "\"old\""}),
                                         Exptime::never()));
  check_refused([&] { world.jobs(2).fetch(); }, 3);
}

TEST_CASE("kept: what an earlier version kept in two copies stays as it is, whatever number is given") {
  const std::map<std::string, std::pair<Verb, const std::map<std::string, Verb>*>> structures{
      {"array",
       {[](KeptWorld& world, std::size_t two) { world.jobs(two).change(numbered(3), {}); }, &array_verbs}},
      {"hash",
       {[](KeptWorld& world, std::size_t two) {
          world.cfg(two).set(std::vector<Element>{{"a", "1"}, {"b", "2"}});
        },
        &hash_verbs}},
      {"eventlog",
       {[](KeptWorld& world, std::size_t two) { world.deploys(two).put("v1", EventData::text); },
        &log_verbs}},
  };
  for (const auto& [structure, of] : structures) {
    KeptWorld world;
    of.first(world, 2);
    world.unmark(structure);
    const auto before = world.bytes();
    // With one copy the first server's is the only one: nobody says that there are more.
    for (const std::size_t other : {3U, 4U}) {
      for (const auto& [name, verb] : *of.second) {
        CAPTURE(structure);
        CAPTURE(other);
        CAPTURE(name);
        check_refused([&] { verb(world, other); }, 2);
        REQUIRE(world.bytes() == before);
      }
    }
  }
}

TEST_CASE("kept: a root that is left on another server is not taken for a copy") {
  KeptWorld world;
  const auto servers = world.memory.placement().servers_of("array:jobs", 2);
  world.memory.server(servers[1])
      .execute(Request::append_or_create("array:jobs", journal_header("b000000000000002"),
                                         encode(JournalLine{Change::add, "a000000000000002.0", "\"stale\""}),
                                         Exptime::never()));
  world.jobs(1).change(numbered(2), {});
  const auto before = world.bytes();
  check_refused([&] { world.jobs(2).fetch(); }, 1);
  CHECK(world.bytes() == before);
}

TEST_CASE("kept: who creates looks again, and takes its own back where another was created meanwhile") {
  const auto take_back = [](KeptWorld& world) {
    return [&world] {
      bool all = true;
      for (const Reply& found : execute_copies(world.with(2), Request::gets("array2:jobs"))) {
        const Request removal = Request::remove_if("array2:jobs", found.cas).on(found.server);
        all = world.memory.execute(removal).outcome == Outcome::deleted && all;
      }
      return all;
    };
  };
  for (const std::size_t other : {1U, 3U}) {
    KeptWorld world;
    const auto theirs = [&] {
      const std::string key = other == 1 ? "array:jobs" : "array3:jobs";
      for (const std::size_t server : copy_servers(world.with(other), key))
        world.memory.execute(Request::add(key, "theirs", Exptime::never()).on(server));
    };
    CHECK(created_twice(world, theirs, take_back(world)) == ErrorCode::bad_data);
    for (const auto& [place, value] : world.bytes()) CHECK(value == "theirs");
  }
  KeptWorld alone;
  CHECK(created_twice(
            alone, [] {}, nothing_to_take_back) == ErrorCode());
  KeptWorld changed;
  const auto theirs = [&] { changed.memory.execute(Request::add("array:jobs", "x", Exptime::never())); };
  CHECK(created_twice(changed, theirs, [] { return false; }) == ErrorCode::unknown_outcome);
  for (std::size_t server = 0; server < 5; ++server) {
    KeptWorld cut;
    const bool asked = cut.memory.server_of(Request::get("array:jobs")) == server;
    const auto stop = [&] { cut.memory.stop(server); };
    const ErrorCode code = created_twice(cut, stop, nothing_to_take_back);
    if (asked) CHECK(code == ErrorCode::unknown_outcome);
    KeptWorld dead;
    if (copy_servers(dead.with(2), "array2:jobs")[0] == server ||
        copy_servers(dead.with(2), "array2:jobs")[1] == server)
      continue;
    dead.memory.stop(server);
    CHECK(created_twice(
              dead, [] {}, nothing_to_take_back) == ErrorCode());
  }
}

}  // namespace mcds::kept_test
