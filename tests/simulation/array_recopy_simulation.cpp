// Arrays that are put into another number of copies, again and again, by movers that die, while clients
// change them: nothing that was acknowledged is lost, and nothing comes back.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/structures/array/array.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/server_losses.hpp"

namespace mcds::array_recopy_simulation {

namespace {

using namespace std::chrono_literals;

using Elements = std::vector<std::string>;

// Items of one or two dozen lines, so that roots get full and segments are many.
constexpr std::size_t item_size = 1800;
const Journal::Options small_segments{.segment_size = 500, .largest_padding = 1024};

struct Setting {
  test::Spoiled::Spoil spoil_clients{};
  test::Spoiled::Spoil spoil_movers{};
  bool compacts = false;
};

// What its only writer did with an element, which it adds once.
struct Life {
  enum { unknown, there, gone } state = unknown;
};

struct History {
  std::map<std::string, Life> lives;
  std::optional<std::string> violation;
  // What is settled now.
  std::map<std::string, bool> settled() const {
    std::map<std::string, bool> known;
    for (const auto& [element, life] : lives) {
      if (life.state != Life::unknown) known[element] = life.state == Life::there;
    }
    return known;
  }
  // What was settled before and after the fetch.
  void check(const Elements& elements, const std::map<std::string, bool>& before) {
    std::set<std::string> seen;
    for (const std::string& element : elements) {
      if (!seen.insert(element).second) violation = element.substr(0, 6) + " is there twice";
    }
    const auto now = settled();
    for (const auto& [element, there] : before) {
      const auto after = now.find(element);
      if (after == now.end() || after->second != there || seen.contains(element) == there) continue;
      violation = element.substr(0, 6) + (there ? " is lost" : " is back");
    }
  }
};

Array array(const Context& context) {
  return {context, "x", small_segments};
}

// Gives the number that the last refusal named.
class Client {
 public:
  Client(Context context, SimulatedClient& client, History& history)
      : context_(std::move(context)), client_(client), history_(history) {
    context_.copies = 1 + context_.random.below(3);
  }

  void run(bool compacts) {
    for (int i = 0; i < 8; ++i) {
      if (compacts && context_.random.below(4) == 0) {
        follow([&] { array(context_).compact(); });
      } else if (!mine_.empty() && context_.random.below(3) == 0) {
        remove(mine_[context_.random.below(mine_.size())]);
      } else {
        add(i);
      }
      if (context_.random.below(2) == 0) look();
      client_.sleep_for(std::chrono::milliseconds(context_.random.below(2) * context_.random.below(2500)));
    }
  }

  void look() {
    const auto before = history_.settled();
    Array::Contents contents;
    if (follow([&] { contents = array(context_).fetch(); })) return;
    if (!contents.complete()) history_.violation = "something is told to be lost";
    if (contents.found) history_.check(contents.elements, before);
  }

 private:
  std::optional<Failure> follow(const std::function<void()>& act) {
    try {
      test::follow_refusals(context_, act);
    } catch (const Failure& failure) {
      return failure;
    }
    return std::nullopt;
  }

  void add(int number) {
    const Elements element{quote_bytes(std::to_string(client_.index()) + '.' + std::to_string(number) + '.' +
                                       std::string(context_.random.below(150), 'x'))};
    Life& life = history_.lives[element[0]];
    bool everywhere = false;
    const auto append = [&] { everywhere = all_written(array(context_).change(element, {}).copies); };
    if (const auto failure = follow(append)) {
      if (failure->code() != ErrorCode::unknown_outcome) life.state = Life::gone;
      return;
    }
    // Otherwise who reads the other copy alone does not know.
    if (everywhere) life.state = Life::there;
    mine_.push_back(element[0]);
  }

  void remove(std::string element) {
    std::erase(mine_, element);
    Life& life = history_.lives[element];
    const auto before = std::exchange(life.state, Life::unknown);
    bool everywhere = false;
    const auto failure = follow([&] {
      const auto changed = array(context_).change({}, Elements{element});
      // One that was found nowhere may be where nobody answered (kept.hpp).
      everywhere = changed.found && all_written(changed.copies);
    });
    if (!failure && everywhere && before == Life::there)
      life.state = Life::gone;
    else if (failure && failure->code() != ErrorCode::unknown_outcome)
      life.state = before;
  }

  Context context_;
  SimulatedClient& client_;
  History& history_;
  Elements mine_;
};

// A client that gets no answer from those who hold the array would begin another (kept.hpp).
void begin_nothing(Request& request) {
  if (request.op == Op::append_or_create) request.op = Op::append;
}

Faults faults() {
  Faults all;
  // Who stands still for longer than a mover waits, or is executed later than that, may create an array anew
  // (recopying.hpp).
  all.pauses = false;
  all.ghosts = false;
  return all;
}

std::optional<std::string> schedule(std::uint64_t seed, const Setting& setting) {
  SimulationOptions options{.servers = 4, .faults = faults()};
  options.server.item_size = item_size;
  Simulation simulation(seed, options);
  History history;
  const Elements first{"\"first\""};
  array(simulation.observer()).change(first, {});
  history.lives[first[0]].state = Life::there;
  const auto spoiled_client = [&](const test::Spoiled::Spoil& spoil, auto body) {
    simulation.client([&, body](Context& honest, SimulatedClient& client) {
      test::Spoiled spoiled(honest.cluster, [&](Request& request) {
        begin_nothing(request);
        if (spoil) spoil(request);
      });
      body(Context{spoiled, honest.clock, honest.random, honest.key_prefix, 1}, client);
    });
  };
  for (int i = 0; i < 3; ++i) {
    spoiled_client(setting.spoil_clients, [&](Context context, SimulatedClient& client) {
      Client(std::move(context), client, history).run(setting.compacts);
    });
  }
  for (int i = 0; i < 2; ++i) {
    spoiled_client(setting.spoil_movers, [&](Context context, SimulatedClient& client) {
      for (int j = 0; j < 3; ++j) {
        context.copies = 1 + context.random.below(3);
        try {
          array(context).recopy();
        } catch (const Failure&) {
        }
        client.sleep_for(std::chrono::milliseconds(context.random.below(3000)));
      }
    });
  }
  simulation.run();
  simulation.advance(recopy_lease + 1s);
  if (history.violation) return history.violation;
  // Whatever was left undone is completed.
  Context observer = simulation.observer();
  observer.copies = 2;
  array(observer).recopy();
  const Array::Contents contents = array(observer).fetch();
  if (!contents.complete()) return "something is told to be lost";
  history.check(contents.elements, history.settled());
  return history.violation;
}

bool is_mark(const Request& request) {
  return request.key == "array0:x";
}

void look_for_no_mark(Request& request) {
  if (is_mark(request)) request.key = "array:nothing";
}

void name_nothing(Request& request) {
  if (is_mark(request)) request.value.resize(std::min(request.value.size(), request.value.find('\n') + 1));
}

void neither_fill_nor_compare(Request& request) {
  if (request.op == Op::append && request.value.starts_with("# ")) request.op = Op::get;
  test::release_without_comparing(request);
}

}  // namespace

TEST_CASE("array recopy: with movers that die, nothing is lost or comes back") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {}); }, 0.02);
}

TEST_CASE("array recopy: compactions meanwhile lose nothing and bring nothing back") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.compacts = true}); }, 0.02);
}

TEST_CASE("array recopy: the simulation catches clients that do not look whether a mover is at work") {
  CHECK(finds_violation(
      [](std::uint64_t seed) { return schedule(seed, {.spoil_clients = look_for_no_mark}); }));
}

TEST_CASE("array recopy: the simulation catches a mover that does not say what it holds") {
  CHECK(finds_violation([](std::uint64_t seed) {
    return schedule(seed, {.spoil_clients = name_nothing, .spoil_movers = name_nothing});
  }));
}

TEST_CASE("array recopy: the simulation catches a mover that neither fills the roots nor compares") {
  CHECK(finds_violation(
      [](std::uint64_t seed) { return schedule(seed, {.spoil_movers = neither_fill_nor_compare}); }));
}

}  // namespace mcds::array_recopy_simulation
