// Arrays changed by many processes through proxies that lose replies, while others compact and read them, on
// real servers. MCDS_TEST_SECONDS sets for how long; 3 without it.
#include "common/structures/array/array.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "tests/support/lossy_pair.hpp"

namespace mcds::array_test {

namespace {

using namespace std::chrono_literals;
using Protocol = ConnectOptions::Protocol;
using Elements = std::vector<std::string>;

using test::processes;
constexpr std::size_t max_steps = 20000;

using Client = test::RealClient;

enum class State : std::uint8_t { not_begun, begun, acknowledged, unknown, refused };

// What each step of each process came to. Step i adds its element and removes that of step i - kept, at once.
struct Steps {
  std::atomic<State> of[processes][max_steps];
  std::atomic<std::uint64_t> acknowledged, unknown, refused, compactions;
  std::atomic<bool> done;
};

using Snapshot = std::vector<std::vector<State>>;

Snapshot snapshot(const Steps& steps) {
  Snapshot copy(processes);
  for (std::size_t process = 0; process < processes; ++process) {
    for (const auto& state : steps.of[process]) {
      if (state == State::not_begun) break;
      copy[process].push_back(state);
    }
  }
  return copy;
}

struct Load {
  Protocol protocol = Protocol::automatic;
  ArrayEncoding encoding = ArrayEncoding::journal;
  std::size_t kept = 40;  // elements of each process
  std::size_t padding = 1000;
};

std::string element(std::size_t process, std::size_t step, std::size_t padding) {
  return quote_bytes(std::to_string(process) + '.' + std::to_string(step) + '.' + std::string(padding, 'x'));
}

void write(const Pool& pool, const Load& load, std::size_t process, SteadyTime end, Steps& steps) {
  Client client(pool, load.protocol, 200ms);
  Array array(client.context(), "x");
  for (std::size_t i = 0; i < max_steps && client.clock.steady() < end; ++i) {
    std::atomic<State>& state = steps.of[process][i];
    state = State::begun;
    Elements old;
    if (i >= load.kept) old.push_back(element(process, i - load.kept, load.padding));
    try {
      array.change(Elements{element(process, i, load.padding)}, old, load.encoding);
      state = State::acknowledged;
      ++steps.acknowledged;
    } catch (const UnknownOutcome&) {
      state = State::unknown;
      ++steps.unknown;
    } catch (const Failure&) {
      state = State::refused;
      ++steps.refused;
    }
  }
}

void compact_meanwhile(const Pool& pool, const Load& load, SteadyTime end, Steps& steps) {
  Client client(pool, load.protocol, 1s);
  const Context context = client.context();
  Journal journal(context, "array:x");
  const auto at_least_one = [&] { return steps.compactions == 0 && client.clock.steady() < end + 20s; };
  while (client.clock.steady() < end || at_least_one()) {
    client.clock.sleep_for(100ms);
    try {
      steps.compactions += journal.compact(compacted) ? 1 : 0;
    } catch (const Failure&) {
    }
  }
}

// How often each step of each process is there.
std::vector<std::vector<int>> counted(const Elements& elements) {
  std::vector<std::vector<int>> counts(processes, std::vector<int>(max_steps));
  for (const std::string& quoted : elements) {
    const std::string text = unquote_bytes(quoted).value();
    const auto dot = text.find('.');
    ++counts.at(std::stoul(text)).at(std::stoul(text.substr(dot + 1)));
  }
  return counts;
}

// What a fetch between the two snapshots may not show, or must.
struct Violations {
  int missing = 0, repeated = 0, removed_but_there = 0, refused_but_there = 0, half_changes = 0;
  int all() const { return missing + repeated + removed_but_there + refused_but_there + half_changes; }
};

Violations check(const Elements& elements, const Snapshot& before, const Snapshot& after, std::size_t kept) {
  Violations found;
  const auto counts = counted(elements);
  for (std::size_t process = 0; process < processes; ++process) {
    const auto was = [&](std::size_t i) {
      return i < before[process].size() ? before[process][i] : State::not_begun;
    };
    const auto is = [&](std::size_t i) {
      return i < after[process].size() ? after[process][i] : State::not_begun;
    };
    for (std::size_t i = 0; i < after[process].size(); ++i) {
      const int count = counts[process][i];
      const State removal = is(i + kept);
      const bool kept_for_sure = removal == State::not_begun || removal == State::refused;
      found.missing += was(i) == State::acknowledged && kept_for_sure && count == 0 ? 1 : 0;
      found.repeated += count > 1 ? 1 : 0;
      found.refused_but_there += is(i) == State::refused && count != 0 ? 1 : 0;
      if (is(i) != State::acknowledged) continue;  // may come late, after its removal
      found.removed_but_there += was(i + kept) == State::acknowledged && count != 0 ? 1 : 0;
      found.half_changes += count != 0 && counts[process][std::min(i + kept, max_steps - 1)] != 0 ? 1 : 0;
    }
  }
  return found;
}

void check_many_processes(const Load& load) {
  const auto duration = std::chrono::seconds(test::amount("MCDS_TEST_SECONDS", 3));
  test::LossyPair servers(0.01);
  const Pool pool = servers.lossy();
  test::Shared<Steps> steps;
  test::Children children;
  const SteadyTime end = SystemClock().steady() + duration;
  for (std::size_t process = 0; process < processes; ++process) {
    children.spawn([&, process] { write(pool, load, process, end, *steps); });
  }
  if (load.encoding == ArrayEncoding::journal)
    children.spawn([&] { compact_meanwhile(pool, load, end, *steps); });
  Client reader(servers.honest(), Protocol::automatic, 5s);
  Array array(reader.context(), "x");
  int violations = 0;
  int looks = 0;
  const auto look = [&] {
    const Snapshot before = snapshot(*steps);
    const auto contents = array.fetch(load.encoding);
    const Violations found = check(contents.elements, before, snapshot(*steps), load.kept);
    INFO("missing ", found.missing, ", repeated ", found.repeated, ", removed but there ",
         found.removed_but_there, ", refused but there ", found.refused_but_there, ", halves ",
         found.half_changes);
    CHECK(found.all() == 0);
    CHECK(contents.complete());
    violations += found.all();
    ++looks;
  };
  while (reader.clock.steady() < end) {
    look();
    reader.clock.sleep_for(50ms);
  }
  CHECK(children.wait_all() == 0);
  look();
  const auto contents = array.fetch(load.encoding);
  MESSAGE("changes acknowledged ", steps->acknowledged.load(), ", unknown ", steps->unknown.load(),
          ", not applied ", steps->refused.load(), ", compactions ", steps->compactions.load(),
          ", fetches checked ", looks, ", violations ", violations, ", elements ", contents.elements.size(),
          " in ", array.keys().size(), " items, faults ", servers.faults());
  CHECK(servers.faults() > 0);
  CHECK(steps->acknowledged > processes);
  if (load.encoding == ArrayEncoding::json) return;
  CHECK(steps->compactions > 0);
  CHECK(array.keys().size() > 2);
  const Elements fetched = array.fetch().elements;
  const Context context = reader.context();
  REQUIRE(Journal(context, "array:x").compact(compacted));
  CHECK(array.fetch().elements == fetched);
}

}  // namespace

TEST_CASE(
    "array: 64 processes, lost requests and replies, compactions: each fetch shows whole changes, none "
    "lost") {
  SUBCASE("journal, meta") {
    check_many_processes({.protocol = Protocol::meta});
  }
  SUBCASE("journal, classic") {
    check_many_processes({.protocol = Protocol::classic});
  }
  SUBCASE("JSON") {
    check_many_processes({.encoding = ArrayEncoding::json, .kept = 3, .padding = 20});
  }
}

TEST_CASE("array: a server without memory refuses, and every acknowledged change is there") {
  test::MemcachedProcess memcached({"-m", "8", "-M"});
  Client client(test::pool_of({memcached.server()}), Protocol::automatic, 2s);
  Array array(client.context(), "x");
  std::size_t acknowledged = 0;
  try {
    for (; acknowledged < 20000; ++acknowledged) {
      array.change(Elements{quote_bytes(std::to_string(acknowledged) + std::string(2000, 'x'))}, {});
    }
  } catch (const Failure& failure) {
    CHECK((failure.code() == ErrorCode::refused || failure.code() == ErrorCode::try_again));
  }
  CHECK(acknowledged < 20000);
  const auto contents = array.fetch();
  CHECK(contents.complete());
  CHECK(contents.elements.size() == acknowledged);
}

}  // namespace mcds::array_test
