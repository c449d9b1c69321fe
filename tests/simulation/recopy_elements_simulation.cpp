// Hashes that go into another number of copies, again and again, while clients use them with whatever number
// they were told last: every element is linearizable, whatever happens to those who change the number.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/elements/elements.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/simulation/recopy_movers.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::recopy_elements_simulation {

namespace {

using namespace movers;

using Value = std::optional<std::string>;
using Act = exhaustive::Act<Value>;

const std::vector<std::string> names{"a", "b", "c"};

const Kind one_and_more{.numbers = {1, 2, 3}, .mishaps = false, .anywhere = false};
const Kind never_removed{.numbers = {1, 2, 3}, .removals = false};
const Kind several{.numbers = {2, 3}};

struct History {
  std::map<std::string, std::vector<Act>> acts;
  std::vector<std::string> story;
  std::size_t changes = 0;  // that came to their end
};

// A client's: it does not look for the mark.
class BlindCluster final : public Decorator {
 public:
  using Cluster::execute;
  BlindCluster(Cluster& inner, bool blind) : Decorator(inner), blind_(blind) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> requests(batch.begin(), batch.end());
    for (Request& request : requests) {
      if (blind_ && request.key == mark_key) request.key = "nowhere";
    }
    return inner().execute(requests);
  }

 private:
  bool blind_;
};

class User {
 public:
  User(Context& context, SimulatedClient& client, const Kind& kind, Mistake mistake, std::size_t copies,
       History& history)
      : cluster_(context.cluster, mistake == Mistake::mark_not_looked_for),
        context_{cluster_, context.clock, context.random, {}, copies},
        client_(client),
        kind_(kind),
        history_(history) {}

  void run() {
    for (int i = 0; i < 7; ++i) {
      for (int attempt = 0; attempt < 5 && !act(std::to_string(client_.index()) + std::to_string(i));
           ++attempt) {
      }
      client_.sleep_for(std::chrono::milliseconds(context_.random.below(i % 2 == 0 ? 10 : 2500)));
    }
  }

 private:
  std::size_t now() const { return static_cast<std::size_t>(client_.simulation().time().elapsed().count()); }

  // False: refused, to be tried again.
  bool act(const std::string& value) {
    if (!elements_ || elements_copies_ != context_.copies || context_.random.below(2) == 0) {
      elements_ = std::make_unique<Elements>(context_, "hash", "h");
      elements_copies_ = context_.copies;
    }
    std::vector<std::string> some{names[context_.random.below(names.size())]};
    if (context_.random.below(3) == 0) {
      const std::string& other = names[context_.random.below(names.size())];
      if (other != some.front()) some.push_back(other);
    }
    const auto choice = context_.random.below(10);
    if (choice < 4) return set(some, value);
    if (choice < 6 && kind_.removals) return remove(some);
    if (choice < 7) return fetch();
    return get(some);
  }

  using Effect = std::function<void(Value&)>;
  using Explain = std::function<std::function<bool(Value&)>(const ElementResult&)>;

  // One act for each name.
  bool attempt(const std::string& what, const std::vector<std::string>& some, const Effect& effect,
               const std::function<std::vector<ElementResult>()>& ask, const Explain& explain) {
    std::vector<std::size_t> places;
    const std::size_t begun = now();
    for (const std::string& name : some) {
      places.push_back(history_.acts[name].size());
      history_.acts[name].push_back({.begun = begun, .apply = [effect](Value& state) {
                                       return effect ? (effect(state), true) : true;
                                     }});
    }
    std::vector<ElementResult> results(some.size());
    try {
      results = ask();
    } catch (const Failure& failure) {
      for (ElementResult& result : results) result.failure = failure;
    }
    bool refused = false;
    for (std::size_t i = 0; i < some.size(); ++i) {
      Act& act = history_.acts[some[i]][places[i]];
      const ElementResult& result = results[i];
      history_.story.push_back(std::to_string(begun / 1000) + ".." + std::to_string(now() / 1000) +
                               " client " + std::to_string(client_.index()) + " in " +
                               std::to_string(context_.copies) + ": " + what + " " + some[i] + ": " +
                               (result.failure ? result.failure->what()
                                : result.yes   ? "yes " + result.value
                                               : "no"));
      if (!result.failure) {
        act.ended = now();
        act.known = true;
        act.apply = explain(result);
      } else if (result.failure->code() != ErrorCode::unknown_outcome) {
        act.refused = refused = true;
      }
    }
    for (const ElementResult& result : results) {
      const auto told = result.failure ? test::told_copies(*result.failure) : std::nullopt;
      if (told) context_.copies = *told;
    }
    return !refused;
  }

  bool set(const std::vector<std::string>& some, const std::string& value) {
    std::vector<Element> batch;
    for (const std::string& name : some) batch.push_back({name, value});
    return attempt(
        "set " + value, some, [value](Value& state) { state = value; }, [&] { return elements_->set(batch); },
        [value](const ElementResult&) { return [value](Value& state) { return state = value, true; }; });
  }

  bool remove(const std::vector<std::string>& some) {
    return attempt(
        "remove", some, [](Value& state) { state.reset(); }, [&] { return elements_->remove(some); },
        [tells = context_.copies == 1 && !kind_.mishaps](const ElementResult& result) {
          return [tells, yes = result.yes](Value& state) {
            const bool was = state.has_value();
            state.reset();
            return was == yes || !tells;
          };
        });
  }

  static std::function<bool(Value&)> is(const ElementResult& result) {
    return [value = result.yes ? Value(result.value) : Value()](Value& state) { return state == value; };
  }

  bool get(const std::vector<std::string>& some) {
    return attempt(
        "get", some, nullptr, [&] { return elements_->get(some); }, is);
  }

  bool fetch() {
    return attempt(
        "fetch", names, nullptr,
        [&] {
          std::vector<ElementResult> results(names.size());
          const auto listing = elements_->fetch([&](Elements::Found& found) {
            const auto name = std::find(names.begin(), names.end(), found.name);
            results[static_cast<std::size_t>(name - names.begin())].yes = true;
            results[static_cast<std::size_t>(name - names.begin())].value = found.value;
          });
          if (!listing.complete()) throw Contention("incomplete");
          return results;
        },
        is);
  }

  BlindCluster cluster_;
  Context context_;
  SimulatedClient& client_;
  const Kind& kind_;
  History& history_;
  std::unique_ptr<Elements> elements_;
  std::size_t elements_copies_ = 0;
};

void change_numbers(Context& context, SimulatedClient& client, const Kind& kind, Mistake mistake,
                    History& history) {
  for (int i = 0; i < 3; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(3000)));
    MoversCluster cluster(context, client, kind, mistake);
    MoversClock clock(context.clock, mistake);
    Context moving{
        cluster, clock, context.random, {}, kind.numbers[context.random.below(kind.numbers.size())]};
    std::string end = "done";
    try {
      Elements(moving, "hash", "h").recopy();
      ++history.changes;
    } catch (const Died&) {
      end = "died";
    } catch (const Failure& failure) {
      end = failure.what();
    }
    history.story.push_back(std::to_string(client.simulation().time().elapsed().count() / 1000) + " client " +
                            std::to_string(client.index()) + ": recopy to " + std::to_string(moving.copies) +
                            ": " + end);
  }
}

std::optional<std::string> schedule(std::uint64_t seed, const Kind& kind, Mistake mistake = Mistake::none) {
  Simulation simulation(
      seed,
      {.servers = 4, .faults = Faults::none(), .largest_step_count = 200000, .server = {.item_size = 16384}});
  History history;
  const std::size_t first = kind.numbers[simulation.random().below(kind.numbers.size())];
  const auto in = [&](std::size_t copies) {
    Context context = simulation.observer();
    context.copies = copies;
    return context;
  };
  {
    Elements elements(in(first), "hash", "h");
    const std::vector<Element> there{{"a", "first"}, {"b", "first"}, {"c", "first"}};
    elements.set(there);
    elements.remove(std::span(&names.back(), 1));
  }
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      User(context, client, kind, mistake, first, history).run();
    });
  }
  for (int i = 0; i < 2; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      change_numbers(context, client, kind, mistake, history);
    });
  }
  simulation.run();
  const auto violation = [&](const std::string& what) {
    std::string text = what;
    for (const std::string& line : history.story) text += "\n  " + line;
    return text;
  };
  Elements last(in(kind.numbers.back()), "hash", "h");
  std::map<std::string, std::string> fetched;
  try {
    if (!last.recopy().found) return violation("it is nowhere");
    last.fetch([&](Elements::Found& found) { fetched[found.name] = found.value; });
  } catch (const Failure& failure) {
    return violation(std::string("afterwards: ") + failure.what());
  }
  for (const std::string& name : names) {
    const auto left = last.get(std::span(&name, 1)).front();
    const Value value = left.yes ? Value(left.value) : Value();
    const bool acknowledged = [&] {
      std::vector<const Act*> acts;
      for (const Act& act : history.acts[name]) {
        if (!act.refused) acts.push_back(&act);
      }
      return exhaustive::explained<Value>(acts, name == "c" ? Value() : Value("first"),
                                          [&](Value& state) { return state == value; });
    }();
    if (!acknowledged)
      return violation("no order explains what was answered about " + name + ", and that it is left as " +
                       value.value_or("nothing"));
    const auto listed = fetched.find(name);
    const Value found = listed == fetched.end() ? Value() : Value(listed->second);
    if (found != value && !kind.mishaps) return violation(name + " is present and not listed");
  }
  return std::nullopt;
}

double share() {
  return std::getenv("MCDS_TEST_FULL") == nullptr ? 0.01 : 1;
}

Schedule of(const Kind& kind, Mistake mistake = Mistake::none) {
  return [&kind, mistake](std::uint64_t seed) { return schedule(seed, kind, mistake); };
}

}  // namespace

TEST_CASE("recopy, elements: one and several copies, movers that die and stand still") {
  check_schedules(of(one_and_more), share());
}

TEST_CASE("recopy, elements: one and several copies, nothing is removed, and anything happens to messages") {
  check_schedules(of(never_removed), share());
}

TEST_CASE("recopy, elements: several copies, and anything happens to messages") {
  check_schedules(of(several), share());
}

TEST_CASE("recopy, elements: what once undid a change or a removal undoes none") {
  CHECK(schedule(111145, one_and_more) == std::nullopt);
  CHECK(schedule(11985, never_removed) == std::nullopt);
  CHECK(schedule(10441, several) == std::nullopt);
}

TEST_CASE("recopy, elements: the simulation catches mistakes") {
  const auto caught = [](Mistake mistake) { return finds_violation(of(one_and_more, mistake)); };
  CHECK(caught(Mistake::mark_not_looked_for));
  CHECK(caught(Mistake::plain_delete));
  CHECK(caught(Mistake::nothing_staged));
  CHECK(caught(Mistake::no_settling));
  CHECK(caught(Mistake::mark_not_compared));
}

}  // namespace mcds::recopy_elements_simulation
