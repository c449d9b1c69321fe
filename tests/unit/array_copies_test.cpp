// Arrays whose journals have copies.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/primitives/record.hpp"
#include "common/structures/array/array.hpp"
#include "tests/support/world.hpp"

namespace mcds::array_copies_test {

namespace {

using namespace std::chrono_literals;

using Texts = std::vector<std::string>;

struct World : test::World {
  explicit World(std::size_t copies = 2) : test::World(copies, copies) {}

  Array jobs{context, "jobs"};
  std::string key = copied_key(context, "array", "jobs");
  std::vector<std::size_t> servers = copy_servers(context, key);

  void without(std::size_t copy, test::Mishap mishap = test::Mishap::unreachable) {
    faults.choose([=, this](const Request& request) {
      return request.server == servers[copy] ? std::optional(mishap) : std::nullopt;
    });
  }
};

const Texts a{"\"a\""};
const Texts b{"\"b\""};
const Texts both{"\"a\"", "\"b\""};

// Three copies, of which one has a replacement by a before another change, and the others behind it.
struct Contradicting : World {
  Contradicting(std::size_t early, const Texts& other) : World(3) {
    static_cast<void>(jobs.change(both, {}));
    const Texts replacement{"! 1111111111111111.0", "+ 1111111111111111.1 \"a\""};
    for (std::size_t copy = 0; copy < 3; ++copy) {
      Texts order = copy == early ? replacement : other;
      const Texts& then = copy == early ? other : replacement;
      order.insert(order.end(), then.begin(), then.end());
      std::string text;
      for (const std::string& line : order) text += seal(line) + '\n';
      memory.execute(Request::append(key, text).on(servers[copy]));
    }
  }

  void expect_everywhere(const Texts& elements) {
    for (std::size_t away = 0; away < 3; ++away) {
      without(away);
      CHECK(jobs.fetch().elements == elements);
    }
    faults.none();
    CHECK(jobs.fetch().elements == elements);
  }
};

const Texts adds_b{"+ 2222222222222222.0 \"b\""};
const Texts replaces_by_b{"! 2222222222222222.0", "+ 2222222222222222.1 \"b\""};

// "+1a": the addition of a under the id 1; "=1": it is forgotten.
std::vector<JournalLine> lines(const Texts& texts) {
  std::vector<JournalLine> lines;
  for (const std::string& text : texts)
    lines.push_back({static_cast<Change>(text[0]), text.substr(1, 1), text.substr(2)});
  return lines;
}

Texts united(const Texts& first, const Texts& second, Newer newer = Newer::neither) {
  Texts texts;
  for (const JournalLine& line : unite(lines(first), lines(second), newer))
    texts.push_back(static_cast<char>(line.change) + line.id + line.element);
  return texts;
}

}  // namespace

TEST_CASE("array copies: a JSON array that is created beside a journal in several copies is taken back") {
  for (std::size_t trip = 0; trip < 6; ++trip) {
    CAPTURE(trip);
    test::World world(5);
    Context others = world.others;
    others.copies = 2;
    std::optional<bool> theirs;
    world.rival.before(trip,
                       [&] { theirs = !attempt([&] { Array(others, "jobs").change(a, {}); }).failure(); });
    Array mine(world.with(1), "jobs");
    const bool done = !attempt([&] { mine.change(b, {}, ArrayEncoding::json); }).failure();
    if (!theirs) continue;
    CHECK(done != *theirs);
    CHECK(test::left_in(world.memory).size() == (done ? 1 : 2));
  }
}

TEST_CASE("array copies: united, what only one copy has stands behind all that it follows there") {
  CHECK(united({"+1a", "+2b"}, {"+1a", "+3c", "+2b"}) == Texts{"+1a", "+3c", "+2b"});
  CHECK(united({"+1a", "+2b"}, {"+2b", "+1a", "+3c"}) == Texts{"+1a", "+2b", "+3c"});
  CHECK(united({}, {"+1a"}) == Texts{"+1a"});
}

TEST_CASE(
    "array copies: united, a removal stays behind what it removes, although rivals came in another order") {
  CHECK(united({"+1a", "+2x"}, {"+2x", "+1a", "-3x"}) == Texts{"+1a", "+2x", "-3x"});
  CHECK(united({"-3x", "+1a"}, {"+1a", "+2x", "-3x"}) == Texts{"+2x", "-3x", "+1a"});
  CHECK(united({"+1a", "+2x"}, {"+1a", "-3x"}) == Texts{"+1a", "+2x", "-3x"});
  CHECK(united({"-3x", "+1a"}, {"+1a", "+2x"}) == Texts{"+2x", "-3x", "+1a"});
  CHECK(united({"-3x", "+1a"}, {"-3x", "+1a", "+2x"}) == Texts{"-3x", "+1a", "+2x"});
  CHECK(united({"+0x", "-3x", "+1a"}, {"+0x", "+1a", "+2x"}) == Texts{"+0x", "-3x", "+1a", "+2x"});
  CHECK(united({"!3", "+1a"}, {"+1a", "+2x", "!3"}) == Texts{"+2x", "!3", "+1a"});
}

TEST_CASE(
    "array copies: united, an addition that one copy has not is no older than a removal that only it has") {
  CHECK(united({"+1x", "-2x"}, {"+1x", "+3x"}) == Texts{"+1x", "-2x", "+3x"});
  CHECK(united({"+1x", "+3x"}, {"+1x", "-2x"}) == Texts{"+1x", "-2x", "+3x"});
  CHECK(united({"+1x", "!2"}, {"+1x", "+3y"}) == Texts{"+1x", "!2", "+3y"});
  CHECK(united({"+1x", "+3y"}, {"+1x", "!2"}) == Texts{"+1x", "!2", "+3y"});
  CHECK(united({"+1x", "-2x", "-4x"}, {"+1x", "+3x", "-4x"}) == Texts{"+1x", "-2x", "+3x", "-4x"});
}

TEST_CASE("array copies: an addition after a removal stays, whichever servers are away at each") {
  for (std::size_t first = 0; first < 3; ++first) {
    for (std::size_t then = 0; then < 3; ++then) {
      for (const bool clears : {false, true}) {
        CAPTURE(first);
        CAPTURE(then);
        CAPTURE(clears);
        World world(3);
        static_cast<void>(world.jobs.change(a, {}));
        world.without(first);
        static_cast<void>(clears ? world.jobs.clear() : world.jobs.change({}, a));
        world.without(then);
        static_cast<void>(world.jobs.change(a, {}));
        for (std::size_t away = 0; away < 3; ++away) {
          world.without(away);
          CHECK(world.jobs.fetch().elements == a);
        }
        world.faults.none();
        CHECK(world.jobs.fetch().elements == a);
      }
    }
  }
}

TEST_CASE(
    "array copies: of two replacements that reach the copies in different orders the same counts for all") {
  World world(3);
  static_cast<void>(world.jobs.replace(a));
  for (std::size_t copy = 0; copy < 3; ++copy) {
    std::vector<std::string> order{"! 1111111111111111.0", "+ 1111111111111111.1 \"a\"",
                                   "! 2222222222222222.0", "+ 2222222222222222.1 \"b\""};
    if (copy == 0) std::rotate(order.begin(), order.begin() + 2, order.end());
    std::string text;
    for (const std::string& line : order) text += seal(line) + '\n';
    world.memory.execute(Request::append(world.key, text).on(world.servers[copy]));
  }
  const Texts counts = world.jobs.fetch().elements;
  CHECK(counts == b);
  for (std::size_t away = 0; away < 3; ++away) {
    world.without(away);
    CHECK(world.jobs.fetch().elements == counts);
  }
}

TEST_CASE(
    "array copies: what a reader of two contradicting copies answered, those answer who meet the third") {
  for (std::size_t early = 0; early < 3; ++early) {
    for (const std::size_t away : {(early + 1) % 3, (early + 2) % 3}) {
      for (const bool appends : {false, true}) {
        CAPTURE(early);
        CAPTURE(away);
        Contradicting world(early, adds_b);
        world.without(away);
        CHECK(world.jobs.fetch().elements == both);
        Texts wanted = both;
        if (appends) {
          wanted.push_back("\"c\"");
          static_cast<void>(world.jobs.change(std::span(wanted).last(1), {}));
        }
        world.expect_everywhere(wanted);
      }
    }
  }
}

TEST_CASE("array copies: two readers who meet different copies that contradict each other answer the same") {
  for (std::size_t early = 0; early < 3; ++early) {
    for (const auto& [trip, dies] : std::vector<std::pair<std::size_t, bool>>{{0, false},
                                                                              {1, false},
                                                                              {2, false},
                                                                              {3, false},
                                                                              {4, false},
                                                                              {5, false},
                                                                              {1, true},
                                                                              {2, true},
                                                                              {3, true},
                                                                              {4, true},
                                                                              {5, true}}) {
      CAPTURE(early);
      CAPTURE(trip);
      CAPTURE(dies);
      Contradicting world(early, replaces_by_b);
      test::ScriptedFaults cut(world.memory);
      cut.choose([&](const Request& request) {
        return request.server == world.servers[(early + 1) % 3] ? std::optional(test::Mishap::unreachable)
                                                                : std::nullopt;
      });
      Context other{cut, world.clock, world.random, {}, 3};
      std::optional<Texts> theirs;
      world.without((early + 2) % 3);
      world.rival.before(world.rival.trips() + trip, [&] {
        theirs = Array(other, "jobs").fetch().elements;
        if (dies) world.faults.choose([](const Request&) { return test::Mishap::unreachable; });
      });
      const auto mine = attempt([&] { return world.jobs.fetch().elements; });
      REQUIRE(theirs);
      if (!dies) CHECK(mine.value() == *theirs);
      world.expect_everywhere(*theirs);
    }
  }
}

TEST_CASE("array copies: united, what one copy has not is behind what was decided there") {
  const auto decided = [](std::size_t lines_before) {
    Texts texts;
    for (const JournalLine& line :
         unite(lines({"+1x", "+2y"}), lines({"!3", "-4x", "+1x", "+2y"}), Newer::neither, lines_before))
      texts.push_back(static_cast<char>(line.change) + line.id + line.element);
    return texts;
  };
  CHECK(decided(0) == Texts{"!3", "-4x", "+1x", "+2y"});
  CHECK(decided(1) == Texts{"+1x", "!3", "-4x", "+2y"});
  CHECK(decided(2) == Texts{"+1x", "+2y", "!3", "-4x"});
}

TEST_CASE("array copies: united, what came since stands at the end") {
  CHECK(united({"+1a", "+2x"}, {"+1a", "-3x"}, Newer::second) == Texts{"+1a", "+2x", "-3x"});
  CHECK(united({"+1a", "+2b"}, {"+3c"}, Newer::second) == Texts{"+1a", "+2b", "+3c"});
}

TEST_CASE("array copies: united, what one copy has compacted away does not come back by the other") {
  CHECK(united({"+1x", "+2b"}, {"=1", "=3", "+2b"}) == Texts{"=1", "=3", "+2b"});
  CHECK(united({"=1", "=3"}, {"+1x", "+2x", "-3x"}) == Texts{"=1", "+2x", "-3x"});
}

TEST_CASE("array copies: an array is missing only when every copy says so") {
  World world;
  CHECK_FALSE(world.jobs.change({}, a).found);
  world.jobs.change(a, {});
  world.memory.restart(world.servers[1]);
  world.without(0);
  CHECK_THROWS_AS(world.jobs.change({}, a), Failure);
  CHECK_THROWS_AS(world.jobs.clear(), Failure);
}

TEST_CASE(
    "array copies: a removal reaches a copy that lost its journal, before somebody makes that whole without "
    "it") {
  World world;
  world.jobs.change(both, {});
  world.memory.restart(world.servers[0]);
  CHECK(world.jobs.change({}, a).found);
  CHECK(world.memory.server(world.servers[0]).peek("array2:jobs"));
  world.memory.restart(world.servers[1]);
  CHECK(world.jobs.fetch().elements.empty());
}

TEST_CASE("array copies: a removal between the look and the writing of a healing fetch stays") {
  for (std::size_t trip = 0; trip < 8; ++trip) {
    World world;
    world.jobs.change(both, {});
    world.memory.restart(world.servers[0]);
    test::Rival rival(world.faults);
    rival.before(trip, [&] { world.jobs.change({}, a); });
    Context healing{rival, world.clock, world.random, {}, 2};
    Array(healing, "jobs").fetch();
    CAPTURE(trip);
    if (rival.trips() <= trip) break;
    CHECK(world.jobs.fetch().elements == b);
    world.memory.restart(world.servers[1]);
    CHECK(world.jobs.fetch().elements == b);
  }
}

TEST_CASE(
    "array copies: a removal that one copy missed is not undone when the other was compacted meanwhile") {
  World world;
  world.jobs.change(both, {});
  world.without(0, test::Mishap::lost_request);
  world.jobs.change({}, a);
  world.faults.none();
  Context second = world.context;
  const Replicas copies(second);
  Journal(copies.at(1), "array2:jobs").compact([](const std::vector<JournalLine>& lines) {
    return without_removed(lines);
  });
  CHECK(world.jobs.fetch().elements == b);
  world.memory.restart(world.servers[1]);
  CHECK(world.jobs.fetch().elements == b);
}

TEST_CASE("array copies: what a copy has missed, and cannot be given, is not compacted away in the other") {
  for (const std::size_t deaf : {0U, 1U}) {
    CAPTURE(deaf);
    World world;
    world.jobs.change(both, {});
    // The other one loses all, and then alone hears of a removal.
    world.memory.restart(world.servers[1 - deaf]);
    world.clock.advance(2s);
    world.without(deaf);
    CHECK_THROWS_AS(world.jobs.change({}, a), Failure);
    world.jobs.change(Texts{"\"c\""}, {});
    world.jobs.change({}, a);
    // It can be read again, and not be written.
    world.faults.choose([&](const Request& request) {
      const bool writes = request.op == Op::cas || request.op == Op::append;
      return writes && request.server == world.servers[deaf] ? std::optional(test::Mishap::lost_request)
                                                             : std::nullopt;
    });
    CHECK_THROWS_AS(world.jobs.compact(), Failure);
    world.faults.none();
    CHECK(world.jobs.fetch().elements.size() == 2);
    CHECK(world.jobs.compact().has_value());
    CHECK(world.jobs.fetch().elements.size() == 2);
    const auto again = world.jobs.fetch().elements;
    CHECK(std::find(again.begin(), again.end(), a[0]) == again.end());
  }
}

TEST_CASE("array copies: that no server answers is told as with one copy, so that fetch --partial knows it") {
  World world;
  world.jobs.change(both, {});
  for (const std::size_t server : world.servers) world.memory.kill(server);
  CHECK_THROWS_AS(world.jobs.fetch(), NotApplied);
  CHECK_THROWS_AS(world.jobs.compact(), NotApplied);
  CHECK_THROWS_AS(world.jobs.change(a, {}), NotApplied);
}

TEST_CASE("array copies: what every copy has lost is told again and again, also after a healing read") {
  World world;
  const Journal::Options small{.segment_size = 300, .largest_padding = 1024, .largest_change = 512};
  Array big(world.context, "big", small);
  Texts values;
  for (int i = 0; i < 60; ++i) values.push_back('"' + std::to_string(i) + '"');
  big.replace(values);
  const auto servers = copy_servers(world.context, "array2:big");
  for (const std::size_t server : servers) {
    const auto root = decode_journal_root(world.memory.server(server).peek("array2:big")->value);
    REQUIRE(root->segments.size() > 2);
    CHECK(world.memory.server(server).evict("array2:big:s:" + root->segments[1].id));
  }
  const std::size_t left = big.fetch().elements.size();
  CHECK(left < values.size());
  for (int read = 0; read < 3; ++read) {
    CHECK_FALSE(big.fetch().complete());
    CHECK(big.fetch().elements.size() == left);
  }
  CHECK(big.change(a, {}).found);
  world.memory.restart(servers[0]);
  CHECK_FALSE(big.fetch().complete());
  CHECK(big.fetch().elements.size() == left + 1);
  world.memory.restart(servers[1]);
  CHECK_FALSE(big.fetch().complete());
  CHECK(big.fetch().elements.size() == left + 1);
  big.replace(b);
  CHECK(big.fetch().complete());
}

TEST_CASE("array copies: a copy that begins after the other cannot vouch for what came before it") {
  World world;
  const Journal::Options small{.segment_size = 300, .largest_padding = 1024, .largest_change = 512};
  Array big(world.context, "big", small);
  Texts values;
  for (int i = 0; i < 60; ++i) values.push_back('"' + std::to_string(i) + '"');
  big.replace(values);
  const auto servers = copy_servers(world.context, "array2:big");
  world.memory.restart(servers[0]);
  CHECK(big.change(a, {}).found);
  const auto root = decode_journal_root(world.memory.server(servers[1]).peek("array2:big")->value);
  CHECK(world.memory.server(servers[1]).evict("array2:big:s:" + root->segments[1].id));
  CHECK_FALSE(big.fetch().complete());
  CHECK_FALSE(big.fetch().complete());
}

}  // namespace mcds::array_copies_test
