// A server is lost before every trip of every write, in turn. Then a read repair follows, and the other
// copy's server is lost. All acknowledged writes must still exist.
#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "common/structures/counter/counter.hpp"
#include "common/structures/elements/hash.hpp"
#include "tests/support/counters.hpp"
#include "tests/support/world.hpp"

namespace mcds::copies_loss_test {

namespace {

using namespace std::chrono_literals;

struct Subject {
  std::string name;
  std::function<void(Context&, const std::string&)> write;  // throws if it was not acknowledged
  std::function<std::set<std::string>(Context&)> read;
};

const Subject subjects[] = {
    {"exact counter",
     [](Context& context, const std::string&) { Counter(context).incr("e", 1, {.ttl = {}, .exact = true}); },
     [](Context& context) {
       const auto value = test::value_of(test::reading_of(context, "e"));
       std::set<std::string> counted;
       for (std::uint64_t i = 0; value && i < *value; ++i) counted.insert(std::to_string(i));
       return counted;
     }},
    {"hash",
     [](Context& context, const std::string& text) {
       const auto result = Hash(context, "h").set(std::vector<Element>{{text, text}}).front();
       if (result.failure) throw Failure(*result.failure);
     },
     [](Context& context) {
       std::set<std::string> fields;
       Hash hash(context, "h");
       CHECK(hash.fetch([&](Elements::Found& one) { fields.insert(one.value); }).complete());
       return fields;
     }},
};

// Writes 0, 1, 2 …; `victim` is lost before trip `trip` of the last write. False: there was no such trip.
bool check_loss(const Subject& subject, std::size_t victim, std::size_t other, std::size_t trip) {
  test::World world(3, 2);
  Context& calm = world.others;
  std::set<std::string> acknowledged;
  for (int i = 0; i < 3; ++i) {
    subject.write(calm, std::to_string(i));
    acknowledged.insert(std::to_string(i));
  }
  world.clock.advance(10s);
  world.rival.before(trip, [&] { world.memory.restart(victim); });
  try {
    subject.write(world.context, "3");
    acknowledged.insert("3");
  } catch (const Failure&) {
  }
  const bool hit = world.rival.trips() > trip;
  world.clock.advance(1s);
  const auto includes = [&](const std::set<std::string>& found) {
    return std::includes(found.begin(), found.end(), acknowledged.begin(), acknowledged.end());
  };
  CHECK(includes(subject.read(calm)));
  world.memory.restart(other);
  CHECK(includes(subject.read(calm)));
  world.memory.restart(victim);
  CHECK(includes(subject.read(calm)));
  return hit;
}

}  // namespace

TEST_CASE("copies: a server lost before any trip of a write costs nothing that was acknowledged") {
  for (const Subject& subject : subjects) {
    for (std::size_t victim = 0; victim < 3; ++victim) {
      for (std::size_t other = 0; other < 3; ++other) {
        std::size_t trips = 0;
        CAPTURE(subject.name);
        CAPTURE(victim);
        CAPTURE(other);
        while (other != victim && trips < 20 && check_loss(subject, victim, other, trips)) ++trips;
        if (other != victim) CHECK(trips > 0);
      }
    }
  }
}

TEST_CASE("copies: while one server does not answer everything can be begun, written and read") {
  for (const Subject& subject : subjects) {
    for (std::size_t away = 0; away < 3; ++away) {
      CAPTURE(subject.name);
      CAPTURE(away);
      test::World world(3, 2);
      world.memory.kill(away);
      std::set<std::string> written;
      for (const std::string text : {"0", "1", "2", "3", "4", "5", "6", "7", "8"}) {
        CHECK_NOTHROW(subject.write(world.context, text));
        written.insert(text);
      }
      CHECK(subject.read(world.context) == written);
    }
  }
}

}  // namespace mcds::copies_loss_test
