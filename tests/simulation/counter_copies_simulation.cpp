// Counters with several copies under every interleaving and fault. If servers lose everything one after the
// other, nothing is lost that a read repair restores in time. With three copies, while clients are cut off
// from single servers, every answer includes all increments that were acknowledged before.
#include <doctest/doctest.h>

#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/record.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/counters.hpp"
#include "tests/support/mistakes.hpp"
#include "tests/support/server_losses.hpp"

namespace mcds::counter_copies_simulation {

namespace {

using namespace std::chrono_literals;

const std::vector<std::string> names{"n"};

struct History {
  struct Increment {
    std::uint64_t delta;
    DueWrites::Id write;
    bool refused = false;  // certainly not counted
    bool down = false;     // a decrement
    bool whole = false;    // a decrement that certainly did not stop at 0
  };
  DueWrites writes;
  std::vector<Increment> increments;
  std::vector<DueWrites::Id> sets;  // one after the other; the n-th is of value_of_set(n)
  std::optional<std::string> violation;
  bool majority = false;  // a majority has every acknowledged write

  template <typename Counts>
  std::uint64_t sum(bool down, const Counts& counts) const {
    std::uint64_t sum = 0;
    for (const Increment& one : increments) sum += one.down == down && counts(one) ? one.delta : 0;
    return sum;
  }
  std::uint64_t added() const {
    return sum(false, [](const Increment& one) { return !one.refused; });
  }
  static constexpr std::uint64_t step = 1000;  // of sets; increments and decrements never add up to it
  static std::uint64_t value_of_set(std::size_t n) { return step * (n + 1) + step / 2; }
  // For each set: the previous one was in every copy when this one began, and a copy that it reached had not
  // lost it. Otherwise each of the two may have reached another copy, and of two copies either may win. A
  // client that reaches only a copy that lost its data cannot know which number to use for its set to win;
  // see counter/replicated.hpp.
  std::vector<bool> follows;
  // Returns the last set that is due, counted from 1, or 0 if there is none.
  std::size_t last_set() const {
    std::size_t last = 0;
    for (std::size_t n = 0; n < sets.size(); ++n) {
      if ((majority || follows[n]) && writes.due(sets[n])) last = n + 1;
    }
    return last;
  }
  void check_sets(std::size_t due_before, std::uint64_t value) {
    const std::size_t least = std::min(due_before, last_set());
    if (value / step < least)
      violation = "set " + std::to_string(least) + " was undone: " + std::to_string(value);
    if (value / step > sets.size()) violation = std::to_string(value) + " was never set";
  }
  // Sums that can no longer be lost: of increments, and of decrements that did not stop at 0.
  struct Sums {
    std::uint64_t up, down;
  };
  Sums due() const {
    return {sum(false, [this](const Increment& one) { return writes.due(one.write); }),
            sum(true, [this](const Increment& one) { return one.whole && writes.due(one.write); })};
  }
  // Bounds for a read that began at `before` and ends now.
  std::uint64_t least(const Sums& before) const {
    const std::uint64_t up = std::min(before.up, due().up);
    return up - std::min(up, sum(true, [](const Increment& one) { return !one.refused; }));
  }
  std::uint64_t most(const Sums& before) const { return added() - std::min(before.down, due().down); }
  void check(std::uint64_t least, std::uint64_t value, std::uint64_t at_most) {
    if (value < least)
      violation = std::to_string(value) + " counted, " + std::to_string(least) + " acknowledged and not lost";
    if (value > at_most)
      violation = std::to_string(value) + " counted, at most " + std::to_string(at_most) + " added";
  }
};

struct Setting {
  bool sets = false;  // one client sets
  std::size_t copies = 2;
  bool cuts = false;  // clients are cut off from single servers, instead of losses
  test::Spoiled::Spoil spoil{};
  bool believes = false;  // treats a failed write as done
};

void set(Context& context, History& history) {
  const std::size_t n = history.sets.size();
  const bool whole = n == 0 || history.writes.everywhere(history.sets[n - 1]);
  const std::set<std::size_t> forgetful = history.writes.forgetful_servers();
  history.follows.push_back(false);
  history.sets.push_back(history.writes.begin());
  try {
    const auto done = Counter(context).set("n", History::value_of_set(n), std::nullopt, false);
    history.writes.acknowledged(history.sets[n], done.copies);
    history.follows[n] = whole && std::any_of(done.copies.begin(), done.copies.end(), [&](const auto& copy) {
                           return !copy.failure && !forgetful.contains(copy.server);
                         });
  } catch (const Failure&) {
    history.writes.given_up(history.sets[n]);
  }
}

void add(Context& context, const Setting& setting, History& history) {
  const std::size_t index = history.increments.size();
  history.increments.push_back({1 + context.random.below(4), history.writes.begin()});
  const auto mine = [&]() -> History::Increment& { return history.increments[index]; };
  mine().down = context.random.below(4) == 0;
  try {
    if (mine().down) {
      const auto left = Counter(context).decr("n", mine().delta);
      mine().refused = !left.done;
      mine().whole = left.value > 0;
      history.writes.acknowledged(mine().write, left.done ? left.copies : std::vector<CopyOutcome>());
      return;
    }
    const auto counted = Counter(context).incr("n", mine().delta);
    history.writes.acknowledged(mine().write, counted.copies);
    if (!setting.sets && counted.value > history.added())
      history.violation = "an increment answered more than was added";
  } catch (const UnknownOutcome&) {
    history.writes.given_up(mine().write);
  } catch (const Failure&) {
    history.writes.given_up(mine().write);
    mine().refused = true;
  }
}

// Reads the counter and repairs its copies. Returns true if all copies are equal.
bool repair(Context& context) {
  const CounterAnswer reading = test::reading_of(context, "n");
  if (reading.failure) return false;
  if (!reading.done) return all_written(reading.copies);
  return std::all_of(reading.copies.begin(), reading.copies.end(),
                     [&](const CopyOutcome& copy) { return !copy.failure && copy.number == reading.value; });
}

// A client's view: sometimes cut off from a server.
class Sight final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::optional<std::size_t> away;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> sent;
    for (const Request& request : batch) {
      if (server_of(request) != away) sent.push_back(request);
    }
    auto answers = sent.empty() ? std::vector<Reply>() : inner().execute(sent);
    std::vector<Reply> replies;
    auto next = answers.begin();
    for (const Request& request : batch) {
      const std::size_t server = server_of(request);
      if (server == away)
        replies.push_back(Reply::failed_with(ReplyFailure::Kind::unreachable, "cut off", server));
      else
        replies.push_back(std::move(*next++));
    }
    return replies;
  }
};

void count_and_look(Context& context, const Setting& setting, SimulatedClient& client, Sight& sight,
                    History& history, bool sets) {
  const auto perhaps_cut = [&] {
    const auto server = context.random.below(2 * setting.copies);
    sight.away = setting.cuts && server < setting.copies ? std::optional<std::size_t>(server) : std::nullopt;
  };
  for (int i = 0; i < 3; ++i) {
    perhaps_cut();
    if (sets && context.random.below(2) == 0)
      set(context, history);
    else
      add(context, setting, history);
    client.sleep_for(std::chrono::milliseconds(context.random.below(2) * context.random.below(3000)));
    perhaps_cut();
    try {
      const History::Sums due = history.due();
      const std::size_t last_set = history.last_set();
      const CounterAnswer reading = test::reading_of(context, "n");
      const auto value = test::value_of(reading);
      const bool exactly = value && (setting.cuts || all_written(reading.copies));
      if (setting.sets)
        history.check_sets(exactly ? last_set : 0, value.value_or(0));
      else if (exactly)
        history.check(history.least(due), *value, history.most(due));
      else
        history.check(0, value.value_or(0), history.added());
    } catch (const NotApplied&) {
    }
  }
}

std::optional<std::string> schedule(std::uint64_t seed, const Setting& setting) {
  Simulation simulation(seed, {.servers = setting.copies});
  History history;
  history.majority = setting.cuts;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&, i](Context& honest, SimulatedClient& client) {
      test::Spoiled spoiled(honest.cluster, setting.spoil);
      Sight sight(spoiled);
      test::Believing believing(sight);
      Cluster& cluster = setting.believes ? static_cast<Cluster&>(believing) : sight;
      Context context{cluster, honest.clock, honest.random, honest.key_prefix, setting.copies};
      count_and_look(context, setting, client, sight, history, setting.sets && i == 0);
    });
  }
  simulation.client([&](Context& single, SimulatedClient& client) {
    Context context = in_copies(single, setting.copies);
    if (!setting.cuts) lose_servers(context, client, history.writes, 3, [&] { return repair(context); });
  });
  if (setting.sets) {
    Counter(in_copies(simulation.observer(), setting.copies)).incr("n", 1);
  }
  simulation.run();
  if (history.violation) return history.violation;
  const Context observer = in_copies(simulation.observer(), setting.copies);
  const auto look = [&] {
    const auto value = test::value_of(test::reading_of(observer, "n"));
    const std::uint64_t counted = value.value_or(0);
    const bool whole = simulation.happened().losses == 0 && value;
    if (setting.sets) return history.check_sets(whole ? history.last_set() : 0, counted);
    if (simulation.happened().losses != 0) return history.check(0, counted, history.added());
    const History::Sums due = history.due();
    history.check(history.least(due), counted, history.most(due));
  };
  look();
  // That read repaired all copies, so any one of them may be lost now.
  for (std::size_t server = 0; server < setting.copies; ++server) {
    simulation.servers().restart(server);
    look();
  }
  return history.violation;
}

// Cancels the whole stored value when it is written, including increments that the client did not read.
void take_away_everything(Request& request) {
  auto record = CounterRecord::parse(request.value);
  if (!record || record->base.kind != CounterRecord::Epoch::Kind::set) return;
  record->base.kind = CounterRecord::Epoch::Kind::begun;
  record->base.value = 0;
  for (auto& [name, incarnation] : record->incarnations) incarnation.taken = incarnation.made;
  request.value = record->text();
}

}  // namespace

TEST_CASE("counter copies: nothing is lost that is healed before the next loss, nor counted twice") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.copies = seed % 4 == 0 ? 3U : 2U}); },
                  0.3);
}

TEST_CASE("counter copies: no set that is healed before the next loss is undone") {
  check_schedules(
      [](std::uint64_t seed) { return schedule(seed, {.sets = true, .copies = seed % 4 == 0 ? 3U : 2U}); },
      0.3);
}

TEST_CASE("counter copies: three copies and cuts: whoever is answered is told of all that was acknowledged") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.copies = 3, .cuts = true}); }, 0.2);
}

TEST_CASE("counter copies: three copies and cuts: no set is undone") {
  check_schedules(
      [](std::uint64_t seed) { return schedule(seed, {.sets = true, .copies = 3, .cuts = true}); }, 0.2);
}

TEST_CASE("counter copies: what once undid a set undoes none") {
  for (const std::uint64_t seed : {48890, 347162, 356745}) {
    for (const std::size_t copies : {2U, 3U}) {
      CHECK(schedule(seed, {.sets = true, .copies = copies}) == std::nullopt);
      CHECK(schedule(seed, {.sets = true, .copies = copies, .cuts = copies == 3}) == std::nullopt);
    }
  }
}

TEST_CASE("counter copies: the simulation catches what is done with one copy") {
  CHECK(finds_violation(
      [&](std::uint64_t seed) { return schedule(seed, {.copies = 3, .cuts = true, .believes = true}); }));
}

TEST_CASE("counter copies: the simulation catches sets that leave nothing but what they take away") {
  CHECK(finds_violation([&](std::uint64_t seed) {
    return schedule(seed, {.sets = true, .copies = 3, .cuts = true, .spoil = take_away_everything});
  }));
}

TEST_CASE("counter copies: the simulation catches copies written without comparing") {
  for (const auto spoil : {test::write_without_comparing, test::add_over_what_is_there})
    CHECK(finds_violation([&](std::uint64_t seed) { return schedule(seed, {.copies = 2, .spoil = spoil}); }));
}

}  // namespace mcds::counter_copies_simulation
