// Counters with several copies under every interleaving and fault, while servers lose everything: a plain counter is never
// above the truth, and right while one copy has lived and was reached from the start; of an exact one nothing is lost
// that is healed in time.
#include <doctest/doctest.h>

#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/lives.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/server_losses.hpp"

namespace mcds::counter_copies_simulation {

namespace {

using namespace std::chrono_literals;

const std::vector<std::string> names{"n"};

struct History {
  struct Increment {
    std::uint64_t delta;
    DueWrites::Id write;
    bool refused = false;      // certainly not counted
    bool on_survivor = false;  // acknowledged, also by the copy that is never lost
    bool down = false;         // a decrement
    bool whole = false;        // which certainly did not stop at 0
  };
  DueWrites writes;
  std::vector<Increment> increments;
  std::vector<DueWrites::Id> sets;  // one after the other; the n-th is of value_of_set(n)
  std::optional<std::string> violation;

  template <typename Counts>
  std::uint64_t sum(bool down, const Counts& counts) const {
    std::uint64_t sum = 0;
    for (const Increment& one : increments) sum += one.down == down && counts(one) ? one.delta : 0;
    return sum;
  }
  std::uint64_t added() const {
    return sum(false, [](const Increment& one) { return !one.refused; });
  }
  static constexpr std::uint64_t step = 1000;  // of sets: what is added and subtracted does not bridge it
  static std::uint64_t value_of_set(std::size_t n) { return step * (n + 1) + step / 2; }
  // The last set that is due, from 1; 0: none. Of two that reached one copy each, and not the same one, either may count.
  std::size_t last_set() const {
    std::size_t last = 0;
    bool before = true;
    for (std::size_t n = 0; n < sets.size(); ++n) {
      const bool everywhere = writes.everywhere(sets[n]);
      if (everywhere || (before && writes.due(sets[n]))) last = n + 1;
      before = everywhere;
    }
    return last;
  }
  void check_sets(std::size_t due_before, std::uint64_t value) {
    const std::size_t least = std::min(due_before, last_set());
    if (value / step < least)
      violation = "set " + std::to_string(least) + " was undone: " + std::to_string(value);
    if (value / step > sets.size()) violation = std::to_string(value) + " was never set";
  }
  // What cannot be lost any more, of increments and of decrements that did not stop at 0.
  struct Sums {
    std::uint64_t up, down;
  };
  Sums due() const {
    return {sum(false, [this](const Increment& one) { return writes.due(one.write); }),
            sum(true, [this](const Increment& one) { return one.whole && writes.due(one.write); })};
  }
  // Of a read since `before`, and until now.
  std::uint64_t least(const Sums& before) const {
    const std::uint64_t up = std::min(before.up, due().up);
    return up - std::min(up, sum(true, [](const Increment& one) { return !one.refused; }));
  }
  std::uint64_t most(const Sums& before) const { return added() - std::min(before.down, due().down); }
  std::uint64_t on_survivor() const {
    return sum(false, [](const Increment& one) { return one.on_survivor; });
  }
  void check(std::uint64_t least, std::uint64_t value, std::uint64_t at_most) {
    if (value < least)
      violation = std::to_string(value) + " counted, " + std::to_string(least) + " acknowledged and not lost";
    if (value > at_most)
      violation = std::to_string(value) + " counted, at most " + std::to_string(at_most) + " added";
  }
};

struct Setting {
  bool exact = false;
  bool sets = false;  // one client does
  std::size_t copies = 2;
  Faults faults{};
  test::Spoiled::Spoil spoil{};
  bool raises = false;  // a plain counter's lost copies to the others, as it must not be done
};

constexpr std::size_t survivor = 0;  // of a plain counter's copies

void set(Context& context, History& history) {
  const std::size_t n = history.sets.size();
  history.sets.push_back(history.writes.begin());
  try {
    const auto done = Counter(context).set("n", History::value_of_set(n), std::nullopt, false);
    history.writes.acknowledged(history.sets[n], done.copies);
  } catch (const Failure&) {
    history.writes.given_up(history.sets[n]);
  }
}

void add(Context& context, const Setting& setting, History& history) {
  const std::size_t index = history.increments.size();
  history.increments.push_back({1 + context.random.below(4), history.writes.begin()});
  const auto mine = [&]() -> History::Increment& { return history.increments[index]; };
  mine().down = setting.exact && context.random.below(4) == 0;
  try {
    if (mine().down) {
      const auto left = Counter(context).decr("n", mine().delta);
      mine().refused = !left;
      mine().whole = left && left->value > 0;
      history.writes.acknowledged(mine().write, left ? left->copies : std::vector<CopyOutcome>());
      return;
    }
    const auto counted = Counter(context).incr("n", mine().delta, {.ttl = {}, .plain = !setting.exact});
    history.writes.acknowledged(mine().write, counted.copies);
    mine().on_survivor = !counted.copies[survivor].failure;
    if (!setting.sets && counted.value > history.added())
      history.violation = "an increment answered more than was added";
  } catch (const UnknownOutcome&) {
    history.writes.given_up(mine().write);
  } catch (const Failure&) {
    history.writes.given_up(mine().write);
    mine().refused = true;
  }
}

std::optional<CounterValue> value_of(Context& context) {
  const auto reading = Counter(context).get(names).front();
  if (reading.failure) throw Failure(*reading.failure);
  return reading.value;
}

void raise_lost_copies(Context& context) {
  const auto replies = execute_copies(context, Request::get("counter:n"));
  const auto value = value_of(context);
  if (!value) return;
  for (const Reply& reply : replies) {
    Request raise = Request::add("counter:n", std::to_string(value->value), Exptime::never());
    raise.flags = first_life;
    if (reply.outcome == Outcome::miss)
      static_cast<void>(context.cluster.execute(Request(raise).on(reply.server)));
  }
}

// An exact counter's copies are equal.
bool heal(Context& context) {
  const auto value = value_of(context);
  return !value || (value->exact &&
                    std::all_of(value->copies.begin(), value->copies.end(), [&](const CopyOutcome& copy) {
                      return !copy.failure && copy.number == value->value;
                    }));
}

// Restarts copies other than the survivor, at any time.
void lose_others(Context& context, SimulatedClient& client) {
  const auto servers = copy_servers(context, "counter:n");
  for (int i = 0; i < 3; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(2000)));
    client.simulation().servers().restart(servers[1 + context.random.below(servers.size() - 1)]);
  }
}

void count_and_look(Context& context, const Setting& setting, SimulatedClient& client, History& history,
                    bool sets) {
  for (int i = 0; i < 3; ++i) {
    if (sets && context.random.below(2) == 0)
      set(context, history);
    else
      add(context, setting, history);
    client.sleep_for(std::chrono::milliseconds(context.random.below(2) * context.random.below(3000)));
    try {
      const History::Sums due = history.due();
      const std::size_t last_set = history.last_set();
      const auto value = value_of(context);
      const bool exactly = setting.exact && value && all_written(value->copies);
      if (setting.sets)
        history.check_sets(exactly && value->exact ? last_set : 0, value ? value->value : 0);
      else if (exactly)
        history.check(history.least(due), value->value, history.most(due));
      else
        history.check(0, value ? value->value : 0, history.added());
      if (setting.raises) raise_lost_copies(context);
    } catch (const NotApplied&) {
    }
  }
}

std::optional<std::string> schedule(std::uint64_t seed, const Setting& setting) {
  Simulation simulation(seed, {.servers = setting.copies, .faults = setting.faults});
  History history;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&, i](Context& honest, SimulatedClient& client) {
      test::Spoiled spoiled(honest.cluster, setting.spoil);
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix, setting.copies};
      count_and_look(context, setting, client, history, setting.sets && i == 0);
    });
  }
  simulation.client([&](Context& single, SimulatedClient& client) {
    Context context = single;
    context.copies = setting.copies;
    if (!setting.exact) return lose_others(context, client);
    lose_servers(context, client, history.writes, 3, [&] { return heal(context); });
  });
  if (setting.sets) {
    Context before = simulation.observer();
    before.copies = setting.copies;
    Counter(before).incr("n", 1);
  }
  simulation.run();
  if (history.violation) return history.violation;
  Context observer = simulation.observer();
  observer.copies = setting.copies;
  const auto look = [&] {
    const auto value = value_of(observer);
    const std::uint64_t counted = value ? value->value : 0;
    // A set of what is not there makes a plain one.
    const bool whole = simulation.happened().losses == 0 && value && value->exact;
    if (setting.sets) return history.check_sets(whole ? history.last_set() : 0, counted);
    if (simulation.happened().losses != 0) return history.check(0, counted, history.added());
    const History::Sums due = history.due();
    history.check(setting.exact ? history.least(due) : history.on_survivor(), counted, history.most(due));
  };
  look();
  // Healed by that look: whichever copy goes now, the others have all.
  for (std::size_t server = 0; setting.exact && server < setting.copies; ++server) {
    simulation.servers().restart(server);
    look();
  }
  return history.violation;
}

void write_without_comparing(Request& request) {
  if (request.op == Op::cas) request.op = Op::set;
}

void count_lost_copies_again(Request& request) {
  if (request.op == Op::add) request.op = Op::set;
}

}  // namespace

TEST_CASE(
    "counter copies: a plain counter is never above the truth, and right by the copy that lives from the "
    "start") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.copies = 2 + seed % 2}); }, 0.3);
}

TEST_CASE("counter copies: a plain counter whose copies are lost at any time is never above the truth") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.copies = 2, .faults = Faults::all()}); },
                  0.01);
}

TEST_CASE(
    "counter copies: of an exact counter nothing is lost that is healed before the next loss, nor counted "
    "twice") {
  check_schedules(
      [](std::uint64_t seed) { return schedule(seed, {.exact = true, .copies = seed % 4 == 0 ? 3U : 2U}); },
      0.3);
}

TEST_CASE("counter copies: no set of an exact counter that is healed before the next loss is undone") {
  check_schedules(
      [](std::uint64_t seed) {
        return schedule(seed, {.exact = true, .sets = true, .copies = seed % 4 == 0 ? 3U : 2U});
      },
      0.3);
}

TEST_CASE("counter copies: the simulation catches sets in a life that there is already") {
  const auto spoil = [](Request& request) { request.flags = 0; };
  CHECK(finds_violation(
      [&](std::uint64_t seed) { return schedule(seed, {.exact = true, .sets = true, .spoil = spoil}); }));
}

TEST_CASE("counter copies: the simulation catches lost copies of a plain counter raised to the others") {
  CHECK(finds_violation([](std::uint64_t seed) { return schedule(seed, {.raises = true}); }));
}

TEST_CASE("counter copies: the simulation catches exact copies written without comparing") {
  for (const auto spoil : {write_without_comparing, count_lost_copies_again})
    CHECK(
        finds_violation([&](std::uint64_t seed) { return schedule(seed, {.exact = true, .spoil = spoil}); }));
}

}  // namespace mcds::counter_copies_simulation
