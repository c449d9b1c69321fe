// Arrays with several copies under every interleaving and fault, while one server after the other loses
// everything, with a healing fetch between: no acknowledged element is lost, none that was removed comes
// back.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/json.hpp"
#include "common/structures/array/array.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"
#include "tests/support/server_losses.hpp"

namespace mcds::array_copies_simulation {

namespace {

using namespace std::chrono_literals;

using Elements = std::vector<std::string>;

// Items of one or two dozen lines, so that roots get full and segments are many.
constexpr std::size_t item_size = 1800;
const Journal::Options small_segments{.segment_size = 500, .largest_padding = 1024};

struct Setting {
  std::size_t copies = 2;
  std::size_t servers = 3;
  int compactors = 0;
  test::Spoiled::Spoil spoil{};
  bool guesses_owner = false;
};

// What its only writer did with an element, which it adds once.
struct Life {
  DueWrites::Id addition;
  bool refused = false;
  std::optional<DueWrites::Id> removal{};
  bool removal_settles = false;  // it was on all copies before
};

struct History {
  DueWrites writes;
  std::map<std::string, Life> lives;
  std::optional<std::string> violation;

  using Judge = std::function<bool(DueWrites::Id)>;
  std::set<std::string> present(const Judge& is_due) const {
    std::set<std::string> elements;
    for (const auto& [element, life] : lives) {
      if (!life.removal && is_due(life.addition)) elements.insert(element);
    }
    return elements;
  }
  std::set<std::string> absent(const Judge& is_due) const {
    std::set<std::string> elements;
    for (const auto& [element, life] : lives) {
      if (life.refused || (life.removal && life.removal_settles && is_due(*life.removal)))
        elements.insert(element);
    }
    return elements;
  }
  // What had to be there, or not, before and after the fetch.
  void check(const Elements& elements, const std::set<std::string>& there,
             const std::set<std::string>& gone) {
    std::set<std::string> seen;
    for (const std::string& element : elements) {
      if (!seen.insert(element).second) violation = element + " is there twice";
      if (!lives.contains(element)) violation = element + " was never added";
      if (gone.contains(element)) violation = element + " is back";
    }
    for (const std::string& element : there) {
      if (!seen.contains(element)) violation = element + " is lost";
    }
  }
};

Array array(Context& context) {
  return {context, "x", small_segments};
}

class Writer {
 public:
  Writer(Context& context, SimulatedClient& client, History& history)
      : context_(context), client_(client), history_(history) {}

  void run() {
    for (int i = 0; i < 6; ++i) {
      if (!mine_.empty() && context_.random.below(3) == 0) {
        remove(mine_[context_.random.below(mine_.size())]);
      } else {
        add(i);
      }
      if (context_.random.below(2) == 0) look();
      client_.sleep_for(std::chrono::milliseconds(context_.random.below(2) * context_.random.below(3000)));
    }
  }

 private:
  void add(int number) {
    const std::string text = std::to_string(client_.index()) + '.' + std::to_string(number) + '.' +
                             std::string(context_.random.below(150), 'x');
    const Elements element{quote_bytes(text)};
    const DueWrites::Id write = history_.writes.begin();
    Life& life = history_.lives.emplace(element[0], Life{write}).first->second;
    try {
      history_.writes.acknowledged(write, array(context_).change(element, {}).copies);
      mine_.push_back(element[0]);
    } catch (const Failure& failure) {
      history_.writes.given_up(write);
      life.refused = failure.code() != ErrorCode::unknown_outcome;
    }
  }

  void remove(std::string element) {
    std::erase(mine_, element);
    const DueWrites::Id write = history_.writes.begin();
    Life& life = history_.lives.at(element);
    life.removal_settles = history_.writes.everywhere(life.addition);
    life.removal = write;
    try {
      history_.writes.acknowledged(write, array(context_).change({}, Elements{element}).copies);
    } catch (const Failure&) {
      history_.writes.given_up(write);
    }
  }

  void look() {
    const auto is_visible = [&](DueWrites::Id write) { return history_.writes.visible(write); };
    const auto there = history_.present(is_visible);
    const auto gone = history_.absent(is_visible);
    try {
      const Elements elements = array(context_).fetch().elements;
      const auto still = [&](const std::set<std::string>& before, const std::set<std::string>& after) {
        std::set<std::string> both;
        std::set_intersection(before.begin(), before.end(), after.begin(), after.end(),
                              std::inserter(both, both.end()));
        return both;
      };
      history_.check(elements, still(there, history_.present(is_visible)),
                     still(gone, history_.absent(is_visible)));
    } catch (const Failure&) {
    }
  }

  Context& context_;
  SimulatedClient& client_;
  History& history_;
  Elements mine_;
};

// Whether every copy has the same lines, and adds the same.
bool are_whole(Context& context) {
  const Replicas copies(context);
  std::set<std::set<std::string>> contents;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const JournalContents one =
        Journal(copies.at(i), copied_key(context, "array", "x"), small_segments).read();
    if (one.loss.any()) return false;
    std::set<std::string> ids;
    for (const JournalLine& line : one.lines) ids.insert(line.id + (line.change == Change::add ? "+" : ""));
    contents.insert(std::move(ids));
  }
  return contents.size() == 1;
}

test::Spoiled::Spoil spoil_of(const Setting& setting, const Context& context) {
  if (!setting.guesses_owner) return setting.spoil;
  return test::guess_owner(context.cluster.placement(), setting.copies);
}

std::optional<std::string> schedule(std::uint64_t seed, const Setting& setting) {
  SimulationOptions options{.servers = setting.servers};
  options.server.item_size = item_size;
  Simulation simulation(seed, options);
  History history;
  Context observer = simulation.observer();
  observer.copies = setting.copies;
  const auto with_copies = [&](Context context) {
    context.copies = setting.copies;
    return context;
  };
  for (int i = 0; i < 2; ++i) {
    simulation.client([&](Context& honest, SimulatedClient& client) {
      test::Spoiled spoiled(honest.cluster, spoil_of(setting, honest));
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix, setting.copies};
      Writer(context, client, history).run();
    });
  }
  for (int i = 0; i < setting.compactors; ++i) {
    simulation.client([&](Context& single, SimulatedClient& client) {
      Context context = with_copies(single);
      for (int j = 0; j < 3; ++j) {
        client.sleep_for(std::chrono::milliseconds(context.random.below(4000)));
        try {
          array(context).compact();
        } catch (const Failure&) {
        }
      }
    });
  }
  simulation.client([&](Context& honest, SimulatedClient& client) {
    test::Spoiled spoiled(honest.cluster, spoil_of(setting, honest));
    Context context{spoiled, honest.clock, honest.random, honest.key_prefix, setting.copies};
    lose_servers(context, client, history.writes, 3, [&] {
      array(context).fetch();
      return are_whole(observer);
    });
  });
  simulation.run();
  if (history.violation) return history.violation;
  const auto is_due = [&](DueWrites::Id write) { return history.writes.due(write); };
  const auto look = [&] {
    const Array::Contents contents = array(observer).fetch();
    history.check(contents.elements, history.present(is_due), history.absent(is_due));
  };
  look();
  // Healed by that look: whichever copy goes now, the others have all.
  for (std::size_t server = 0; server < setting.servers && !history.violation; ++server) {
    simulation.servers().restart(server);
    look();
  }
  return history.violation;
}

void write_without_comparing(Request& request) {
  if (request.op == Op::cas) request.op = Op::set;
}

}  // namespace

TEST_CASE(
    "array copies: one server after the other loses everything, healed between: nothing is lost or comes "
    "back") {
  check_schedules(
      [](std::uint64_t seed) {
        return schedule(seed, {.copies = seed % 4 == 0 ? 3U : 2U, .servers = seed % 2 == 0 ? 3U : 2U});
      },
      0.1);
}

TEST_CASE("array copies: compactions lose nothing and bring nothing back") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.servers = 2, .compactors = 1}); }, 0.05);
}

TEST_CASE("array copies: the simulation catches copies rewritten without comparing") {
  CHECK(
      finds_violation([](std::uint64_t seed) { return schedule(seed, {.spoil = write_without_comparing}); }));
}

TEST_CASE("array copies: the simulation catches a part whose owner is guessed from its own key") {
  CHECK(finds_violation([](std::uint64_t seed) { return schedule(seed, {.guesses_owner = true}); }));
}

}  // namespace mcds::array_copies_simulation
