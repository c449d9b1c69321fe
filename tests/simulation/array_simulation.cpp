// Arrays under every interleaving and fault: a fetch shows some serial order of changes, each whole or not at
// all, and no compaction drops one.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/array/array.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::array_simulation {

namespace {

using namespace std::chrono_literals;

using Elements = std::vector<std::string>;

// Items hold one or two dozen lines, so that roots fill up and there are many segments.
constexpr std::size_t item_size = 1800;
const Journal::Options small_segments{.segment_size = 500, .max_padding = 1024};
const std::string key = "array:x";

// Changes and compacts the array: correctly, or with one mistake.
struct Algorithm {
  std::optional<ArrayEncoding> encoding;
  Journal::Options options = small_segments;

  virtual ~Algorithm() = default;
  Array array(Context& context) const { return {context, "x", options}; }
  virtual void change(Context& context, const Elements& add, const Elements& remove) {
    array(context).change(add, remove, encoding);
  }
  virtual void replace(Context& context, const Elements& elements) {
    array(context).replace(elements, encoding);
  }
  virtual void compact(Context& context) { Journal(context, key, options).compact(compacted); }
  Array::Contents fetch(Context& context) const { return array(context).fetch(encoding); }
};

// A chain is one client's sequence of steps: step k adds the element k and removes the previous one, in one
// change. So once the first step is acknowledged, every view shows exactly one element of the chain.
struct Step {
  std::uint64_t begun = 0;
  std::optional<std::uint64_t> acknowledged{};
  bool refused = false;  // the client got the answer that no change was made
};

struct Chain {
  std::vector<Step> steps;
  std::size_t seen = 0;  // a fetch that has ended saw at least this step
  bool was_seen = false;

  // Returns the last step that was acknowledged before `when`.
  std::optional<std::size_t> acknowledged_before(std::uint64_t when) const {
    for (std::size_t k = steps.size(); k-- > 0;) {
      if (steps[k].acknowledged && *steps[k].acknowledged < when) return k;
    }
    return std::nullopt;
  }
};

using View = std::map<std::string, std::size_t>;  // the visible step of each chain

struct History {
  std::map<std::string, Chain> chains;
  std::uint64_t now = 0;  // increases with every event
  bool losses = false;
  std::optional<std::string> violation;

  std::uint64_t tick() { return ++now; }
  void violated(const std::string& what) {
    if (!violation) violation = what;
  }
  bool read(const Elements& elements, View& view);
  void check(const View& view, const std::map<std::string, Chain>& before, std::uint64_t begun);
  void check_prefix(const View& view);
};

std::string element(const std::string& chain, std::size_t step, std::size_t padding) {
  return quote_bytes(chain + '.' + std::to_string(step) + '.' + std::string(padding, 'x'));
}

// Reads a view: one element of each chain, of a step that was begun and not refused.
bool History::read(const Elements& elements, View& view) {
  for (const std::string& quoted : elements) {
    const std::string text = unquote_bytes(quoted).value();
    const auto dot = text.find('.');
    const std::string name = text.substr(0, dot);
    const std::size_t step = std::stoul(text.substr(dot + 1));
    const auto chain = chains.find(name);
    if (chain == chains.end() || step >= chain->second.steps.size()) {
      violated("element " + text + " was never added");
    } else if (chain->second.steps[step].refused) {
      violated("element " + text + " is there although its client was told it is not");
    } else if (const auto [seen, first] = view.emplace(name, step);
               !first && !(losses && seen->second != step)) {
      // After a loss, a late request may restore a step whose removal was lost.
      violated("two elements of chain " + name + ": half of a change, or one made twice");
    }
  }
  return !violation;
}

// Checks a view. `before` is the state of the chains when the fetch began.
void History::check(const View& view, const std::map<std::string, Chain>& before, std::uint64_t begun) {
  for (const auto& [name, chain] : before) {
    const auto seen = view.find(name);
    auto due = chain.acknowledged_before(begun);
    if (chain.was_seen) due = std::max(due.value_or(0), chain.seen);
    if (due && seen == view.end()) return violated("chain " + name + " has no element left");
    if (due && seen->second < *due) {
      return violated("chain " + name + " shows step " + std::to_string(seen->second) + " after step " +
                      std::to_string(*due));
    }
  }
  check_prefix(view);
  for (const auto& [name, step] : view) {
    chains[name].seen = std::max(chains[name].seen, step);
    chains[name].was_seen = true;
  }
}

// Checks that every step acknowledged before a visible step began is visible too.
void History::check_prefix(const View& view) {
  for (const auto& [name, step] : view) {
    for (const auto& [other, chain] : chains) {
      const auto due = chain.acknowledged_before(chains[name].steps[step].begun);
      const auto seen = view.find(other);
      if (due && (seen == view.end() || seen->second < *due)) {
        return violated("step " + std::to_string(step) + " of chain " + name + " is visible without step " +
                        std::to_string(*due) + " of chain " + other + ", acknowledged before it began");
      }
    }
  }
}

void write_chain(Algorithm& algorithm, History& history, Context& context, SimulatedClient& client,
                 int steps) {
  std::string name;
  Elements last;
  for (int i = 0; i < steps; ++i) {
    if (last.empty()) name = std::to_string(client.index()) + '_' + std::to_string(i);
    auto& list = history.chains[name].steps;
    const std::size_t step = list.size();
    const Elements next{element(name, step, context.random.below(150))};
    list.push_back({.begun = history.tick()});
    try {
      algorithm.change(context, next, last);
      history.chains[name].steps[step].acknowledged = history.tick();
      last = next;
    } catch (const UnknownOutcome&) {
      last.clear();  // with any outcome, the chain ends here
    } catch (const Failure&) {
      history.chains[name].steps[step].refused = true;
    }
    client.step();
  }
}

void look(Algorithm& algorithm, History& history, Context& context) {
  const auto before = history.chains;
  const std::uint64_t begun = history.tick();
  Array::Contents contents;
  try {
    contents = algorithm.fetch(context);
  } catch (const NotApplied&) {
    return;
  }
  View view;
  const bool whole = contents.complete() || history.losses;
  if (!whole) history.violated("a part is missing although nothing was lost");
  if (!contents.complete() || !history.read(contents.elements, view)) return;
  if (!history.losses) history.check(view, before, begun);
}

void compact_sometimes(Algorithm& algorithm, Context& context, SimulatedClient& client, int times) {
  for (int i = 0; i < times; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(200)));
    try {
      algorithm.compact(context);
    } catch (const Failure&) {
    }
  }
}

struct Setting {
  Faults faults{};
  int writers = 3;
  int steps = 5;
  int compactors = 1;
};

SimulationOptions options_of(const Setting& setting) {
  SimulationOptions options{.servers = 2, .faults = setting.faults};
  options.server.item_size = item_size;
  return options;
}

std::optional<std::string> schedule(std::uint64_t seed, Algorithm& algorithm, const Setting& setting) {
  Simulation simulation(seed, options_of(setting));
  History history;
  history.losses = setting.faults.evictions;
  for (int i = 0; i < setting.writers; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      write_chain(algorithm, history, context, client, setting.steps);
    });
  }
  for (int i = 0; i < setting.compactors; ++i) {
    simulation.client(
        [&](Context& context, SimulatedClient& client) { compact_sometimes(algorithm, context, client, 2); });
  }
  simulation.client([&](Context& context, SimulatedClient& client) {
    for (int i = 0; i < 3; ++i) {
      look(algorithm, history, context);
      client.sleep_for(std::chrono::milliseconds(context.random.below(300)));
    }
  });
  simulation.run();
  if (setting.faults.evictions) history.losses = simulation.happened().losses != 0;
  look(algorithm, history, simulation.observer());
  return history.violation;
}

std::optional<std::string> ours(std::uint64_t seed, const Setting& setting,
                                std::optional<ArrayEncoding> encoding = {}) {
  Algorithm algorithm;
  algorithm.encoding = encoding;
  return schedule(seed, algorithm, setting);
}

template <typename Broken>
bool caught(const Setting& setting) {
  return finds_violation([&](std::uint64_t seed) {
    Broken algorithm;
    return schedule(seed, algorithm, setting);
  });
}

// Replacements: a view shows one of them as a whole, and none that was replaced before the fetch began.
std::optional<std::string> replacements(std::uint64_t seed, Algorithm& algorithm) {
  struct Replacement {
    std::uint64_t begun;
    std::optional<std::uint64_t> acknowledged{};
  };
  Simulation simulation(seed, options_of({}));
  std::vector<Replacement> made;
  std::uint64_t now = 0;
  std::optional<std::string> violation;
  const auto is_replaced = [&](const Replacement& one, std::uint64_t before) {
    return one.acknowledged && std::any_of(made.begin(), made.end(), [&](const Replacement& other) {
             return other.begun > *one.acknowledged && other.acknowledged && *other.acknowledged < before;
           });
  };
  const auto look_at = [&](Context& context) {
    const std::uint64_t begun = ++now;
    const bool due =
        std::any_of(made.begin(), made.end(), [](const auto& one) { return one.acknowledged.has_value(); });
    try {
      const Elements elements = algorithm.fetch(context).elements;
      if (elements.empty() && !due) return;
      if (elements.size() != 2 || elements[0] != elements[1]) {
        violation = std::to_string(elements.size()) + " elements of a replacement by two";
      } else if (is_replaced(made.at(std::stoul(elements[0])), begun)) {
        violation = "replacement " + elements[0] + " is back";
      }
    } catch (const NotApplied&) {
    }
  };
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      for (int j = 0; j < 4; ++j) {
        const std::size_t number = made.size();
        made.push_back({++now});
        try {
          algorithm.replace(context, Elements(2, std::to_string(number)));
          made[number].acknowledged = ++now;
        } catch (const Failure&) {
        }
        look_at(context);
        client.step();
      }
    });
  }
  simulation.client(
      [&](Context& context, SimulatedClient& client) { compact_sometimes(algorithm, context, client, 2); });
  simulation.run();
  look_at(simulation.observer());
  return violation;
}

std::string encoded(Context& context, std::span<const std::string> elements) {
  std::string text;
  for (const std::string& element : elements) {
    text += encode(JournalLine{Change::add, journal_line_id(context.random.token(), 0), element});
  }
  return text;
}

struct CompactionWithoutCas final : Algorithm {
  void compact(Context& context) override {
    const Array::Contents contents = fetch(context);
    if (!contents.found) return;
    const std::string value = journal_header(context.random.token()) + encoded(context, contents.elements);
    expect(context.cluster, context.cluster.execute(Request::set(key, value, Exptime::never())));
  }
};

// Compacts by cas but forgets what it drops, so that a late repetition restores it.
struct ForgetfulCompaction final : Algorithm {
  void compact(Context& context) override {
    cas_update(context, key, [&](const Observed& observed) -> std::optional<Write> {
      auto root = decode_journal_root(observed.value);
      if (!root || !root->segments.empty()) return std::nullopt;
      std::vector<JournalLine> lines = decode_journal_lines(root->tail);
      std::map<std::string, JournalLine> kept;
      std::set<std::string> ids;
      for (const JournalLine& line : lines) {
        if (!ids.insert(line.id).second) continue;
        if (line.change == Change::add) kept.try_emplace(line.element, line);
        if (line.change == Change::remove) kept.erase(line.element);
      }
      std::string tail;
      for (const auto& [text, line] : kept) tail += encode(line);
      root->tail = tail;
      return Write{encode(*root)};
    });
  }
};

struct ChangeInTwoSteps final : Algorithm {
  void change(Context& context, const Elements& add, const Elements& remove) override {
    if (!remove.empty()) array(context).change({}, remove);
    array(context).change(add, {});
  }
};

struct BlindRepetition final : Algorithm {
  void change(Context& context, const Elements& add, const Elements& remove) override {
    std::vector<JournalLine> lines;
    for (const std::string& element : remove) lines.push_back({Change::remove, {}, element});
    for (const std::string& element : add) lines.push_back({Change::add, {}, element});
    for (int attempt = 0;; ++attempt) {
      std::string text;
      for (JournalLine& line : lines) {
        line.id = journal_line_id(context.random.token(), 0);
        text += encode(line);
      }
      const Reply reply = context.cluster.execute(
          Request::append_or_create(key, journal_header(context.random.token()), text, Exptime::never()));
      if (reply.unknown() && attempt < 3) continue;
      if (reply.outcome == Outcome::stored) return;
      throw UnknownOutcome("");
    }
  }
};

// The array of published articles, with a lock that may expire before the value is set.
struct GetAndSet final : Algorithm {
  GetAndSet() { encoding = ArrayEncoding::json; }
  void change(Context& context, const Elements& add, const Elements& remove) override {
    Elements elements = fetch(context).elements;
    std::erase_if(elements, [&](const auto& one) {
      return std::find(remove.begin(), remove.end(), one) != remove.end();
    });
    elements.insert(elements.end(), add.begin(), add.end());
    std::string text;
    for (const std::string& element : elements) text += (text.empty() ? "" : ",") + element;
    expect(context.cluster,
           context.cluster.execute(Request::set(key + ":json", '[' + text + ']', Exptime::never())));
  }
};

}  // namespace

TEST_CASE("array: every view is a serial order of whole changes, and compaction drops none") {
  check_schedules([](std::uint64_t seed) { return ours(seed, {}); }, 0.55);
}

TEST_CASE("array: rival compactions lose nothing") {
  check_schedules([](std::uint64_t seed) { return ours(seed, {.writers = 2, .steps = 4, .compactors = 2}); },
                  0.1);
}

TEST_CASE("array: what is lost is reported, and nothing comes twice") {
  check_schedules([](std::uint64_t seed) { return ours(seed, {.faults = Faults::all()}); }, 0.15);
}

TEST_CASE("array: the JSON encoding is as atomic") {
  check_schedules([](std::uint64_t seed) { return ours(seed, {.compactors = 0}, ArrayEncoding::json); }, 0.1);
}

TEST_CASE("array: a replacement is whole, and what it replaced does not come back") {
  check_schedules(
      [](std::uint64_t seed) {
        Algorithm algorithm;
        if (seed % 4 == 0) algorithm.encoding = ArrayEncoding::json;
        // Changes that are too large for one append are written as segments, one line in each.
        if (seed % 2 == 1) algorithm.options.max_change = algorithm.options.segment_size = 50;
        return replacements(seed, algorithm);
      },
      0.08);
}

TEST_CASE("array: the schedules reach full roots, segments and compactions") {
  struct Counting final : Algorithm {
    void compact(Context& context) override {
      compactions += Journal(context, key, options).compact(compacted) ? 1 : 0;
      segments += array(context).keys().size() - 1;
    }
    std::size_t compactions = 0;
    std::size_t segments = 0;
  };
  Counting algorithm;
  for (std::uint64_t seed = 0; seed < 500; ++seed) CHECK_FALSE(schedule(seed, algorithm, {}).has_value());
  CHECK(algorithm.compactions > 250);
  CHECK(algorithm.segments > 250);
}

TEST_CASE("array: the simulation catches a compaction without cas") {
  CHECK(caught<CompactionWithoutCas>({}));
}

TEST_CASE("array: the simulation catches a compaction that forgets what it dropped") {
  CHECK(caught<ForgetfulCompaction>({.steps = 3, .compactors = 2}));
}

TEST_CASE("array: the simulation catches a change in two steps") {
  CHECK(caught<ChangeInTwoSteps>({}));
}

TEST_CASE("array: the simulation catches a blind repetition after a lost reply") {
  CHECK(caught<BlindRepetition>({.steps = 3, .compactors = 0}));
}

TEST_CASE("array: the simulation catches get and set") {
  CHECK(caught<GetAndSet>({.compactors = 0}));
}

}  // namespace mcds::array_simulation
