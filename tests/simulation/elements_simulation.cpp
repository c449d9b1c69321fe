// Tables and hashes under every simulated interleaving: acknowledged elements are listed, present elements
// are listed, a client reads its own writes, and a lost part of the index is reported.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/errors.hpp"
#include "common/journal/journal.hpp"
#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/index.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::elements_simulation {

namespace {

using namespace std::chrono_literals;

// A few names in few shards, so that clients meet. Each client adds a name of its own.
const std::vector<std::string> shared_names{"a", "b", "c"};

enum class Mistake {
  none,
  index_after_set,
  compaction_without_grace,
  compaction_without_cas,
  never_listed_again
};

// Lets a long time pass before each add, as long as the grace period allows.
class SlowAdds final : public Cluster {
 public:
  SlowAdds(Cluster& inner, SimulatedClient& client, Random& random)
      : inner_(inner), client_(client), random_(random) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    if (batch.front().op == Op::add && random_.below(3) == 0)
      client_.sleep_for(std::chrono::seconds(random_.below(90)));
    return inner_.execute(batch);
  }
  const Placement& placement() const override { return inner_.placement(); }

 private:
  Cluster& inner_;
  SimulatedClient& client_;
  Random& random_;
};

std::vector<bool> all_present(std::span<const std::string> names) {
  return std::vector<bool>(names.size(), true);
}

std::optional<Failure> set_before_listing(Context& context, Elements& elements, const Element& element) {
  const std::string key = elements.key_of(element.name);
  const Reply replaced = expect(
      context.cluster, context.cluster.execute(Request::replace(key, element.value, Exptime::never())));
  if (replaced.outcome == Outcome::stored) return std::nullopt;
  expect(context.cluster, context.cluster.execute(Request::add(key, element.value, Exptime::never())));
  ElementIndex index(context, "hash:h", all_present, false);
  const std::string* name = &element.name;
  return index.list(std::span(&name, 1)).front();
}

std::optional<Failure> set_listed_once(Context& context, Elements& elements, const Element& element) {
  const std::string key = elements.key_of(element.name);
  const Reply replaced = expect(
      context.cluster, context.cluster.execute(Request::replace(key, element.value, Exptime::never())));
  if (replaced.outcome == Outcome::stored) return std::nullopt;
  ElementIndex index(context, "hash:h", all_present, false);
  const std::string* name = &element.name;
  if (auto failure = index.list(std::span(&name, 1)).front()) return failure;
  expect(context.cluster, context.cluster.execute(Request::add(key, element.value, Exptime::never())));
  return std::nullopt;
}

void compact_wrongly(Context& context, Elements& elements, bool with_cas) {
  for (const std::string& key : elements.index_keys()) {
    if (key == "hash:h:i") continue;
    const auto present_only = [&](std::vector<JournalLine> lines) {
      std::erase_if(lines, [&](const JournalLine& line) {
        if (line.change != Change::add) return false;
        const std::string name = line.element.substr(1, line.element.size() - 2);
        const auto results = elements.get(std::span(&name, 1));
        return !results.front().failure && !results.front().yes;
      });
      return lines;
    };
    if (with_cas) {
      Journal(context, key).compact(present_only);
      continue;
    }
    const JournalContents contents = Journal(context, key).read();
    if (!contents.found || !contents.segments.empty()) continue;
    std::string tail;
    for (const JournalLine& line : contents.lines) tail += encode(line);
    const JournalRoot root{contents.incarnation, {}, tail};
    expect(context.cluster, context.cluster.execute(Request::set(key, encode(root), Exptime::never())));
  }
}

struct History {
  std::map<std::string, std::optional<std::string>>
      settled;                              // own names: left by the last acknowledged operation
  std::map<std::string, SteadyTime> ended;  // … and when that has certainly expired
  std::optional<std::string> violation;
};

struct Scenario {
  Mistake mistake = Mistake::none;
  bool slow = false;         // long pauses between listing and adding
  bool lose_shards = false;  // a client removes index shards
};

class Client {
 public:
  Client(Context& context, SimulatedClient& client, const Scenario& scenario, History& history)
      : context_(context),
        client_(client),
        scenario_(scenario),
        history_(history),
        elements_(context, "hash", "h", {.min_dead = 0}),
        own_("own" + std::to_string(client.index())) {}

  void run() {
    for (int i = 0; i < 5; ++i) {
      try {
        act(i);
      } catch (const Failure&) {
      }
      client_.sleep_for(std::chrono::seconds(context_.random.below(4) == 0 ? context_.random.below(80) : 0));
    }
  }

 private:
  void act(int i) {
    const bool own = context_.random.below(2) == 0;
    const std::string name = own ? own_ : shared_names[context_.random.below(shared_names.size())];
    switch (context_.random.below(6)) {
      case 0: return remove(name, own);
      case 1:
        return scenario_.mistake == Mistake::compaction_without_grace ||
                       scenario_.mistake == Mistake::compaction_without_cas
                   ? compact_wrongly(context_, elements_,
                                     scenario_.mistake == Mistake::compaction_without_grace)
                   : static_cast<void>(elements_.compact());
      case 2: return look();
      default: return set({name, own_ + "/" + std::to_string(i)}, own);
    }
  }

  void set(const Element& element, bool own) {
    if (own) forget_own();
    ttl_.reset();
    if (scenario_.mistake == Mistake::none && context_.random.below(3) == 0) ttl_ = 10s;
    const auto failure = set_by_scenario(element);
    if (!own) return;
    settle(failure, element.value);
    // Servers may pause before they notice that the time is over.
    if (ttl_ && history_.settled.contains(own_)) history_.ended[own_] = client_.steady() + *ttl_ + 60s;
  }

  void forget_own() {
    history_.settled.erase(own_);
    history_.ended.erase(own_);
  }

  std::optional<Failure> set_by_scenario(const Element& element) {
    try {
      if (scenario_.mistake == Mistake::index_after_set)
        return set_before_listing(context_, elements_, element);
      if (scenario_.mistake == Mistake::never_listed_again)
        return set_listed_once(context_, elements_, element);
      if (scenario_.mistake == Mistake::none && context_.random.below(3) == 0)
        return set_behind_another(element);
      return elements_.set(std::span(&element, 1), ttl_).front().failure;
    } catch (const Failure& failure) {
      return failure;
    }
  }

  // Sets an element while a batch with a new element is in flight, so that it is assumed to be new as well.
  // It is written when a third element is being listed.
  std::optional<Failure> set_behind_another(const Element& element) {
    const Element first{own_ + " first " + std::to_string(fresh_), "1"};
    const Element second{own_ + " second " + std::to_string(fresh_), "1"};
    const Element third{own_ + " third " + std::to_string(fresh_++), "1"};
    static_cast<void>(elements_.set(std::span(&first, 1)));
    const auto before = elements_.begin_set(std::span(&second, 1));
    const auto answers = elements_.begin_set(std::span(&element, 1), ttl_);
    auto behind = attempt([&] { return elements_.begin_set(std::span(&third, 1)); });
    static_cast<void>(before());
    const auto failure = answers().front().failure;
    static_cast<void>(attempt([&] { return behind.value()(); }));
    return failure;
  }

  void remove(const std::string& name, bool own) {
    if (own) forget_own();
    const auto result = elements_.remove(std::span(&name, 1)).front();
    // Names that the client has removed itself are dropped from the index although they are young.
    if (scenario_.mistake == Mistake::none && context_.random.below(2) == 0) elements_.compact_removed();
    if (own) settle(result.failure, std::nullopt);
  }

  // Records an outcome. A lost request may be executed at any time, so the state is then unknown.
  void settle(const std::optional<Failure>& failure, const std::optional<std::string>& value) {
    if (failure) {
      uncertain_ = uncertain_ || failure->code() == ErrorCode::unknown_outcome;
    } else if (!uncertain_) {
      history_.settled[own_] = value;
    }
  }

  // Checks that the client's own element is as it left it, with get and with fetch.
  void look() {
    const auto expected = history_.settled.find(own_);
    if (expected == history_.settled.end()) return;
    const auto end = history_.ended.find(own_);
    if (end != history_.ended.end()) {
      if (client_.steady() < end->second) return;
      expected->second.reset();
    }
    const auto got = elements_.get(std::span(&own_, 1)).front();
    if (got.failure) return;
    if (got.yes != expected->second.has_value() || (got.yes && got.value != *expected->second))
      return violate("get does not see what its client wrote");
    std::optional<std::string> listed;
    const auto listing = elements_.fetch([&](Elements::Found& found) {
      if (found.name == own_) listed = found.value;
    });
    if (listing.complete() && listed != expected->second) violate("fetch does not see what its client wrote");
  }

  void violate(const std::string& what) {
    if (!history_.violation) history_.violation = what;
  }

  Context& context_;
  SimulatedClient& client_;
  const Scenario& scenario_;
  History& history_;
  Elements elements_;
  std::string own_;
  bool uncertain_ = false;
  int fresh_ = 0;
  std::optional<Duration> ttl_;
};

// Returns the faults that the header allows in each scenario.
Faults faults_of(const Scenario& scenario, bool reachable) {
  // An add that is executed after the grace period is found by has, but not by fetch.
  if (scenario.slow) return {.unreachable = !reachable, .ghosts = false};
  // An element that was created, not listed, and then lost cannot be detected.
  if (scenario.lose_shards)
    return {.unreachable = false,
            .lost_requests = false,
            .lost_replies = false,
            .ghosts = false,
            .kills = false,
            .server_stalls = false};
  return {.unreachable = !reachable};
}

std::optional<std::string> check(Simulation& simulation, const History& history, const Scenario& scenario) {
  if (history.violation) return history.violation;
  simulation.advance(history.ended.empty() ? 0s : 120s);
  Elements elements(simulation.observer(), "hash", "h");
  std::map<std::string, std::string> fetched;
  std::optional<std::string> twice;
  const auto listing = elements.fetch([&](Elements::Found& found) {
    if (!fetched.emplace(found.name, found.value).second) twice = found.name;
  });
  if (twice) return "fetch told " + *twice + " twice";
  for (const auto& [name, left] : history.settled) {
    // This is some time after all clients and all requests in flight have ended.
    const auto value = history.ended.contains(name) ? std::nullopt : left;
    const auto got = elements.get(std::span(&name, 1)).front();
    if (got.yes != value.has_value() || (value && got.value != *value))
      return name + " is not what its only writer left";
    if (listing.complete() && value.has_value() != fetched.contains(name))
      return name + " is acknowledged and not listed";
  }
  if (!listing.complete())
    return scenario.lose_shards ? std::nullopt
                                : std::optional<std::string>("a loss was told and nothing was lost");
  // A client that dies after a slow add has neither listed the element again nor acknowledged it.
  if (scenario.slow) return std::nullopt;
  std::vector<std::string> names = shared_names;
  for (int i = 0; i < 4; ++i) names.push_back("own" + std::to_string(i));
  const auto results = elements.get(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (results[i].yes != fetched.contains(names[i])) return names[i] + " is present and not listed";
  }
  return std::nullopt;
}

void lose_shards(Context& context, SimulatedClient& client) {
  client.sleep_for(std::chrono::milliseconds(context.random.below(30000)));
  const auto keys = Elements(context, "hash", "h").index_keys();
  for (std::size_t shard = 1; shard < keys.size(); ++shard) {
    if (context.random.below(2) == 0)
      static_cast<void>(context.cluster.execute(Request::remove(keys[shard])));
  }
}

std::optional<std::string> schedule(std::uint64_t seed, const Scenario& scenario) {
  const bool reachable = seed % 2 == 0;
  // Clocks differ by up to 28 s, less than half of the grace period.
  Simulation simulation(seed, {.servers = 2,
                               .faults = faults_of(scenario, reachable),
                               .max_skew = 14s,
                               .server = {.item_size = 16384}});
  History history;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      SlowAdds slow(context.cluster, client, context.random);
      Context own{scenario.slow ? slow : context.cluster, context.clock, context.random, context.key_prefix};
      Client(own, client, scenario, history).run();
    });
  }
  if (scenario.lose_shards) simulation.client(lose_shards);
  simulation.run();
  return check(simulation, history, scenario);
}

bool caught(const Scenario& scenario) {
  return finds_violation([&](std::uint64_t seed) { return schedule(seed, scenario); });
}

}  // namespace

TEST_CASE("elements: what is acknowledged is listed, and read as it was written") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {}); }, 0.5);
}

TEST_CASE("elements: an add that is slower than the grace is still listed") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.slow = true}); }, 0.3);
}

TEST_CASE("elements: a lost shard is reported, or nothing is missing") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.lose_shards = true}); }, 0.2);
}

TEST_CASE("elements: the simulation catches an index written after the element") {
  CHECK(caught({.mistake = Mistake::index_after_set}));
}

TEST_CASE("elements: the simulation catches compaction without a grace") {
  CHECK(caught({.mistake = Mistake::compaction_without_grace}));
}

TEST_CASE("elements: the simulation catches compaction without cas") {
  CHECK(caught({.mistake = Mistake::compaction_without_cas}));
}

TEST_CASE("elements: the simulation catches an adder that is slow and does not list again") {
  CHECK(caught({.mistake = Mistake::never_listed_again, .slow = true}));
}

}  // namespace mcds::elements_simulation
