// Changing the number of copies: one who does it, from 1 to 2 or from 2 to 1, and one who writes or reads
// meanwhile; who does it may die before any of its requests. What was acknowledged is what is left, under the
// new number alone.
#include "common/structures/array/array.hpp"
#include "common/structures/elements/elements.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/refusals.hpp"

namespace mcds::recopy_exhaustive {

namespace {

using namespace std::chrono_literals;
using exhaustive::in_copies;

enum class Mistake { none, no_settling, no_comparing, mark_not_looked_for };

struct Setting {
  std::size_t from = 1;
  std::size_t to = 2;
  Mistake mistake = Mistake::none;
  // What is removed while a mover dies may come back: with a single copy a removal leaves nothing behind
  // (recopying.hpp).
  bool may_return = false;
};

// Its trips take no time, and it does not wait for those of others.
class HastyClock final : public Clock {
 public:
  explicit HastyClock(Clock& clock) : clock_(clock) {}
  WallTime wall() const override { return clock_.wall(); }
  SteadyTime steady() const override { return clock_.steady(); }
  void sleep_for(Duration duration) override {
    if (duration < 500ms) clock_.sleep_for(duration);
  }

 private:
  Clock& clock_;
};

bool is_mark(const Request& request) {
  return request.key == "hash0:x" || request.key == "array0:x" || request.key == "eventlog0:x";
}

test::Spoiled::Spoil spoil(bool mover, Mistake mistake) {
  return [=](Request& request) {
    if (mover && mistake == Mistake::no_comparing && request.op == Op::remove_if) request.op = Op::remove;
    if (mover && mistake == Mistake::no_comparing && request.op == Op::append &&
        request.value.starts_with("# "))
      request.op = Op::get;
    if (!mover && mistake == Mistake::mark_not_looked_for && is_mark(request)) request.key = "nowhere";
  };
}

// A hash with the field n; a batch adds the field p.
struct Hashes {
  using State = std::optional<std::string>;

  static Elements open(const Context& context) {
    return {context, "hash", "x", Journal::Options{.largest_padding = 256}};
  }
  static State before() { return "1"; }
  static void make(const Context& context) {
    const Element element{"n", "1"};
    Hashes::open(context).set(std::span(&element, 1));
  }
  static bool recopy(const Context& context) { return Hashes::open(context).recopy().found; }
  static State read(const Context& context) {
    std::map<std::string, std::string> found;
    const auto listing = open(context).fetch([&](Elements::Found& one) { found[one.name] = one.value; });
    if (!listing.complete()) throw Contention("incomplete");
    State state = found.contains("n") ? State(found["n"]) : State();
    if (found.contains("p")) state = state.value_or("") + "+p";
    return state;
  }
  static State get(const Context& context) {
    const std::vector<std::string> names{"n", "p"};
    const auto results = open(context).get(names);
    for (const auto& result : results) {
      if (result.failure) raise(*result.failure);
    }
    State state = results[0].yes ? State(results[0].value) : State();
    if (results[1].yes) state = state.value_or("") + "+p";
    return state;
  }
  static void write(const Context& context, char letter) {
    const std::string name = "n";
    const Element element{name, "2"};
    Elements elements = open(context);
    const std::vector<Element> batch{element, {"p", "1"}};
    const auto results = letter == 'd' ? elements.remove(std::span(&name, 1))
                                       : elements.set(std::span(batch).first(letter == 'b' ? 2 : 1));
    for (const auto& result : results) {
      if (result.failure) raise(*result.failure);
    }
  }
  static void apply(State& state, char letter) {
    state = letter == 'b' ? State("2+p") : letter == 'w' ? State("2") : State();
  }
  static std::string told(const State& state) { return state.value_or("absent"); }
  [[noreturn]] static void raise(const Failure& failure) {
    if (failure.code() == ErrorCode::unknown_outcome) throw UnknownOutcome(failure.what());
    throw Failure(failure);
  }
};

// A hash without it.
struct OtherHashes : Hashes {
  static State before() { return std::nullopt; }
  static void make(const Context& context) {
    const Element element{"other", "1"};
    open(context).set(std::span(&element, 1));
  }
};

// An array of "a".
struct Arrays {
  using State = std::vector<std::string>;

  static Array open(const Context& context) {
    return {context, "x", Journal::Options{.segment_size = 300, .largest_padding = 256}};
  }
  static State before() { return {"\"a\""}; }
  static void make(const Context& context) { open(context).change(before(), {}); }
  static bool recopy(const Context& context) { return open(context).recopy().found; }
  static State read(const Context& context) {
    const auto contents = open(context).fetch(ArrayEncoding::journal);
    if (!contents.complete()) throw Contention("incomplete");
    return contents.elements;
  }
  static State get(const Context& context) { return read(context); }
  static void write(const Context& context, char letter) {
    const State added{"\"b\""};
    letter == 'w' ? open(context).change(added, {}) : open(context).change({}, before());
  }
  static void apply(State& state, char letter) {
    if (letter == 'w')
      state.push_back("\"b\"");
    else
      std::erase(state, "\"a\"");
  }
  static std::string told(const State& state) {
    std::string text;
    for (const std::string& one : state) text += one + ' ';
    return text;
  }
};

// A log of the event "a"; its order is that of the ids, so it counts as a set.
struct Logs {
  using State = std::vector<std::string>;

  static EventLog open(const Context& context) { return {context, "x", RingShape{60, 60}}; }
  static State before() { return {"a"}; }
  static void make(const Context& context) { open(context).put("a", EventData::text); }
  static bool recopy(const Context& context) { return open(context).recopy().found; }
  static State read(const Context& context) {
    CollectingSink sink;
    open(context).fetch({}, sink);
    if (!sink.gaps.empty() || !sink.damages.empty()) throw Contention("incomplete");
    State found = sink.texts();
    std::sort(found.begin(), found.end());
    return found;
  }
  static State get(const Context& context) { return read(context); }
  static void write(const Context& context, char) { open(context).put("b", EventData::text); }
  static void apply(State& state, char) { state.emplace_back("b"); }
  static std::string told(const State& state) {
    std::string text;
    for (const std::string& one : state) text += one + ' ';
    return text;
  }
};

// One client's operations, as letters: w writes, b writes a batch, d removes what is there, g gets it, f
// fetches. It gives whatever number it was told last.
template <typename Kind>
class User {
 public:
  using State = typename Kind::State;
  User(Context context, ExploredClient& client, exhaustive::Acts<State>& acts)
      : context_(std::move(context)), client_(client), acts_(acts) {}

  void act(char letter) {
    if (letter != 'g' && letter != 'f') {
      const auto effect = [letter](State& state) { Kind::apply(state, letter); };
      acts_.run(client_, letter == 'd' ? "remove" : "write", effect, [&](std::string&) {
        test::follow_refusals(context_, [&] { Kind::write(context_, letter); });
        return [effect](State& state) { return effect(state), true; };
      });
      return;
    }
    acts_.run(client_, letter == 'g' ? "get" : "fetch", nullptr, [&](std::string& told) {
      State found;
      test::follow_refusals(context_,
                            [&] { found = letter == 'g' ? Kind::get(context_) : Kind::read(context_); });
      told = Kind::told(found);
      return [found](State& state) { return state == found; };
    });
  }

 private:
  Context context_;
  ExploredClient& client_;
  exhaustive::Acts<State>& acts_;
};

template <typename Kind>
Scenario meanwhile(std::string life, Setting setting) {
  using State = typename Kind::State;
  return [=](Exploration& run) {
    auto acts = std::make_shared<exhaustive::Acts<State>>();
    Kind::make(in_copies(run.observer(), setting.from));
    run.time().advance(10s);
    run.client([setting](Context& honest, ExploredClient& client) {
      test::Spoiled spoiled(honest.cluster, spoil(true, setting.mistake));
      HastyClock hasty(honest.clock);
      Clock& clock = setting.mistake == Mistake::no_settling ? static_cast<Clock&>(hasty) : honest.clock;
      const Context context{spoiled, clock, honest.random, {}, setting.to};
      client.operation("recopy", [&] { return Kind::recopy(context) ? "done" : "nothing there"; });
    });
    run.client([life, setting, acts](Context& honest, ExploredClient& client) {
      test::Spoiled spoiled(honest.cluster, spoil(false, setting.mistake));
      User<Kind> user({spoiled, honest.clock, honest.random, {}, setting.from}, client, *acts);
      for (const char letter : life) user.act(letter);
    });
    run.check([acts, setting](Context& observer) -> std::optional<std::string> {
      try {
        const Context context = in_copies(observer, setting.to);
        if (!Kind::recopy(context)) return "it is nowhere";
        const State left = Kind::read(context);
        if (!(Kind::get(context) == left)) return "what is there is not listed";
        if (setting.may_return) acts->perhaps([](State& state) { state = Kind::before(); });
        if (!acts->explained(Kind::before(), [&](State& state) { return state == left; }))
          return "no order of the operations explains their answers, and what is left: " + Kind::told(left);
      } catch (const Failure& failure) {
        return std::string("afterwards: ") + failure.what();
      }
      return std::nullopt;
    });
  };
}

Bounds small_items(bool dying) {
  Bounds bounds{.faults = dying ? 1 : 0, .kinds = Happenings::none(), .hasty_attempts = 1, .servers = 2};
  bounds.kinds.deaths = true;
  bounds.prompt = true;
  bounds.server.item_size = 600;
  bounds.most_steps = 4000;
  return bounds;
}

// Each letter; with a death those in `more` under `tests/run --full` only.
template <typename Kind>
void all_pairs(const std::string& kind, const std::string& letters, const std::string& more,
               const std::string& may_return = {}) {
  for (const bool dying : {false, true}) {
    for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 1}}) {
      for (const char letter : letters) {
        if (dying && !exhaustive::full() && more.find(letter) != std::string::npos) continue;
        if (dying && letter == 'b') continue;  // who dies may have written half of a batch, which acts as one
        const std::string name = kind + ", " + std::to_string(from) + " to " + std::to_string(to) +
                                 " copies: recopy | " + letter + (dying ? ", somebody dies" : "");
        const Setting setting{
            .from = from, .to = to, .may_return = dying && may_return.find(letter) != std::string::npos};
        exhaustive::holds(name, meanwhile<Kind>({letter}, setting), small_items(dying), 0);
      }
    }
  }
}

}  // namespace

TEST_CASE("exhaustive recopy: an array, and who writes or reads it meanwhile") {
  all_pairs<Arrays>("array", "wdf", "wd");
}

TEST_CASE("exhaustive recopy: an event log, and who puts or fetches meanwhile") {
  const bool full = exhaustive::full();
  all_pairs<Logs>("eventlog", full ? "wf" : "f", "f");
  if (!full)
    exhaustive::holds("eventlog, 1 to 2 copies: recopy | w", meanwhile<Logs>("w", {}), small_items(false), 0);
}

TEST_CASE("exhaustive recopy: a hash, and who writes or reads it meanwhile") {
  all_pairs<Hashes>("hash", "wdgf", "wdgf", "d");
  all_pairs<Hashes>("hash, a batch", "b", "b");
  all_pairs<OtherHashes>("hash, another field", "wg", "wg");
}

TEST_CASE("exhaustive recopy: caught when broken") {
  using exhaustive::caught;
  const Bounds bounds = small_items(false);
  caught("hash, another field, 1 to 2 copies, broken: recopy does not wait",
         meanwhile<OtherHashes>("w", {.mistake = Mistake::no_settling}), bounds);
  caught("array, 1 to 2 copies, broken: recopy deletes without comparing",
         meanwhile<Arrays>("w", {.mistake = Mistake::no_comparing}), bounds);
  caught("hash, 1 to 2 copies, broken: recopy deletes without comparing",
         meanwhile<Hashes>("w", {.mistake = Mistake::no_comparing}), bounds);
  caught("array, 1 to 2 copies, broken: the mark is not looked for",
         meanwhile<Arrays>("w", {.mistake = Mistake::mark_not_looked_for}), bounds);
  caught("hash, 1 to 2 copies, broken: the mark is not looked for",
         meanwhile<Hashes>("w", {.mistake = Mistake::mark_not_looked_for}), bounds);
}

}  // namespace mcds::recopy_exhaustive
