// Counters: what was added, taken, set and removed, in some order, explains every answer and what is left. Plain ones in
// several copies answer racing increments no order: there only what is read counts.
#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/lives.hpp"
#include "common/structures/counter/record.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::counter_exhaustive {

namespace {

using namespace std::chrono_literals;
using exhaustive::in_copies;

enum class Kind { plain, exact };

using Value = std::optional<std::uint64_t>;
using Acts = exhaustive::Acts<Value>;

constexpr const char* key = "counter:n";
const std::vector<std::string> names{"n"};

using Increment = std::function<void(Context&, std::uint64_t)>;

struct Setting {
  Kind kind = Kind::plain;
  std::uint64_t before = 0;
  std::size_t copies = 1;
  Increment increment = nullptr;
  test::Spoiled::Spoil spoil = nullptr;
  bool one_removes = false;  // of several: what the others answer
};

IncrOptions options_of(const Setting& setting) {
  const bool exact = setting.kind == Kind::exact;
  return {.ttl = {}, .exact = exact && setting.copies == 1, .plain = !exact};
}

CounterReading read(Context& context) {
  const CounterReading reading = Counter(context).get(names).front();
  if (reading.failure) throw Failure(*reading.failure);
  return reading;
}

// A lost copy of a plain counter to what the others have, as it must not be done.
void raise_lost_copies(Context& context) {
  const auto replies = execute_copies(context, Request::get(key));
  const auto value = read(context).value;
  for (const Reply& reply : replies) {
    if (!value || reply.outcome != Outcome::miss) continue;
    Request raise = Request::add(key, std::to_string(value->value), Exptime::never()).on(reply.server);
    raise.flags = first_life;
    context.cluster.execute(raise);
  }
}

// One client's operations, as letters: i increment by 2, t take, d decrement by 1, g get, s set to 10, r remove; R raises
// lost copies.
class Teller {
 public:
  Teller(Context context, ExploredClient& client, Acts& acts, const Setting& setting)
      : context_(std::move(context)), client_(client), acts_(acts), setting_(setting), counter_(context_) {}

  void act(char letter) {
    switch (letter) {
      case 'i':
        return incr();
      case 't':
        return take();
      case 'd':
        return decr();
      case 'g':
        return get();
      case 's':
        return set();
      case 'R':
        client_.operation("raise lost copies", [&] { return raise_lost_copies(context_), "done"; });
        return;
      default:
        return remove();
    }
  }

 private:
  using Answer = std::function<bool(Value&)>;

  bool tells() const { return setting_.copies == 1 && !setting_.increment; }

  void incr() {
    const auto effect = [](Value& state) { state = state.value_or(0) + 2; };
    acts_.run(client_, "incr", effect, [&](std::string& told) -> Answer {
      Value answer;
      if (setting_.increment)
        setting_.increment(context_, 2);
      else
        answer = counter_.incr("n", 2, options_of(setting_)).value;
      told = answer ? std::to_string(*answer) : "done";
      return [=, tells = tells()](Value& state) {
        effect(state);
        return !tells || state == answer;
      };
    });
  }

  void take() {
    const auto effect = [](Value& state) { state = state ? Value(0) : Value(); };
    acts_.run(client_, "take", effect, [&](std::string& told) -> Answer {
      const auto taken = counter_.take("n");
      told = taken ? std::to_string(taken->value) : "there is none";
      return [=](Value& state) {
        const bool right = state.has_value() == taken.has_value() && (!state || *state == taken->value);
        effect(state);
        return right;
      };
    });
  }

  void decr() {
    const auto effect = [](Value& state) {
      if (state) state = *state - std::min<std::uint64_t>(*state, 1);
    };
    acts_.run(client_, "decr", effect, [&](std::string& told) -> Answer {
      const auto left = counter_.decr("n", 1);
      told = left ? std::to_string(left->value) : "there is none";
      return [=, tells = tells()](Value& state) {
        const bool was = state.has_value();
        if (left) effect(state);
        return !tells || (was == left.has_value() && (!state || *state == left->value));
      };
    });
  }

  void get() {
    acts_.run(client_, "get", nullptr, [&](std::string& told) -> Answer {
      const auto value = read(context_).value;
      told = value ? std::to_string(value->value) : "nothing";
      return [=](Value& state) {
        return state.has_value() == value.has_value() && (!state || *state == value->value);
      };
    });
  }

  void set() {
    const auto effect = [](Value& state) { state = 10; };
    acts_.run(client_, "set", effect, [&](std::string& told) -> Answer {
      told = std::to_string(counter_.set("n", 10, std::nullopt, false).value);
      return [=](Value& state) { return effect(state), true; };
    });
  }

  void remove() {
    const auto effect = [](Value& state) { state.reset(); };
    acts_.run(client_, "remove", effect, [&](std::string& told) -> Answer {
      const CounterRemoval removal = counter_.remove(names).front();
      if (removal.failure && removal.failure->code() == ErrorCode::unknown_outcome)
        throw UnknownOutcome(removal.failure->what());
      if (removal.failure) throw Failure(*removal.failure);
      told = removal.removed ? "removed" : "not there";
      return [=, tells = tells() || setting_.one_removes](Value& state) {
        const bool was = state.has_value();
        effect(state);
        return !tells || was == removal.removed;
      };
    });
  }

  Context context_;
  ExploredClient& client_;
  Acts& acts_;
  const Setting& setting_;
  Counter counter_;
};

Scenario tellers(std::vector<std::string> lives, Setting setting = {}) {
  return [=](Exploration& run) {
    auto acts = std::make_shared<Acts>();
    const Value before = setting.before == 0 ? Value() : Value(setting.before);
    if (before) {
      Counter(in_copies(run.observer(), setting.copies)).incr("n", *before, options_of(setting));
    }
    for (const std::string& life : lives) {
      run.client([&life, &setting, acts](Context& honest, ExploredClient& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil);
        Teller teller({spoiled, honest.clock, honest.random, honest.key_prefix, setting.copies}, client,
                      *acts, setting);
        for (const char letter : life) teller.act(letter);
      });
    }
    run.check([=, &setting, &run](Context& observer) -> std::optional<std::string> {
      Context context = in_copies(observer, setting.copies);
      const auto reading = read(context).value;
      const Value left = reading ? Value(reading->value) : Value();
      if (run.lost_data() && setting.copies == 1) acts->perhaps([](Value& state) { state.reset(); });
      if (acts->explained(before, [&](Value& state) { return state == left; })) return std::nullopt;
      return "no order of the operations explains their answers, and what is left: " +
             (left ? std::to_string(*left) : "nothing");
    });
  };
}

Request incr_or_create(std::uint64_t delta) {
  return Request::incr_or_create(key, delta, delta, Exptime::never());
}

void get_then_set_first(Context& context, std::uint64_t delta) {
  if (expect_read(context.cluster, context.cluster.execute(Request::get(key))).outcome == Outcome::miss)
    expect(context.cluster, context.cluster.execute(Request::set(key, "0", Exptime::never())));
  expect(context.cluster, context.cluster.execute(Request::incr(key, delta)));
}

void repeated_after_unknown(Context& context, std::uint64_t delta) {
  Reply reply = context.cluster.execute(incr_or_create(delta));
  for (int i = 0; i < 2 && reply.unknown(); ++i) reply = context.cluster.execute(incr_or_create(delta));
  expect(context.cluster, reply);
}

void unknown_called_failed(Context& context, std::uint64_t delta) {
  expect_read(context.cluster, context.cluster.execute(incr_or_create(delta)));
}

void cas_loop_repeating_after_unknown(Context& context, std::uint64_t delta) {
  cas_update(context, key, [&](const Observed& observed) -> std::optional<Write> {
    return Write{std::to_string(parse_u64(observed.value).value_or(0) + delta)};
  });
}

// What a set of an exact counter writes, into the life that there is.
void set_in_the_same_life(Request& request) {
  request.flags = 0;
}

constexpr std::size_t several = 2;

// An exact counter's copies, as a plain one's.
void remove_without_a_trace(Request& request) {
  const auto record = request.op == Op::cas ? CounterRecord::parse(request.value, several) : std::nullopt;
  if (record && !record->exists()) request.op = Op::remove;
}

// The article's: read, add, write.
void get_and_set(Context& context, std::uint64_t delta) {
  const Reply found = expect_read(context.cluster, context.cluster.execute(Request::get(key)));
  const auto value = parse_u64(found.value).value_or(0) + delta;
  expect(context.cluster,
         context.cluster.execute(Request::set(key, std::to_string(value), Exptime::never())));
}

}  // namespace

TEST_CASE("exhaustive counter: every change against every other") {
  using exhaustive::holds;
  for (const Kind kind : {Kind::plain, Kind::exact}) {
    const std::string name = kind == Kind::plain ? "counter, plain: " : "counter, exact: ";
    const auto pair = [&](const std::string& what, std::vector<std::string> lives, Bounds bounds) {
      holds(name + what, tellers(std::move(lives), {.kind = kind, .before = 5}), bounds);
    };
    holds(name + "incr | incr, creating", tellers({"i", "i"}, {.kind = kind}), {.faults = 1});
    holds(name + "incr | incr, creating, without meta", tellers({"i", "i"}, {.kind = kind}),
          {.faults = 1, .native = false});
    pair("incr incr | incr", {"ii", "i"}, {.faults = 1});
    pair("incr | take", {"i", "t"}, {.faults = 1});
    pair("incr take | take", {"it", "t"}, {.faults = 1});
    pair("incr | decr", {"i", "d"}, {.faults = 1});
    pair("incr | set", {"i", "s"}, {.faults = 1});
    pair("incr | remove", {"i", "r"}, {.faults = 1});
    pair("take | decr", {"t", "d"}, {.faults = 1});
    pair("set | take", {"s", "t"}, {.faults = 1});
    pair("remove | take", {"r", "t"}, {.faults = 1});
    Bounds losing{.faults = 1};
    losing.kinds.evictions = losing.kinds.restarts = true;
    pair("incr | incr, data lost", {"i", "i"}, losing);
  }
}

TEST_CASE("exhaustive counter: three clients") {
  using exhaustive::holds_for_three;
  for (const Kind kind : {Kind::plain, Kind::exact}) {
    for (const std::vector<std::string>& three : {std::vector<std::string>{"i", "i", "i"},
                                                  {"i", "t", "t"},
                                                  {"i", "d", "t"},
                                                  {"i", "s", "t"},
                                                  {"i", "r", "i"}}) {
      const std::string name = three[0] + " | " + three[1] + " | " + three[2];
      holds_for_three((kind == Kind::plain ? "counter, plain: " : "counter, exact: ") + name,
                      tellers(three, {.kind = kind, .before = 5}), {.faults = 1});
    }
  }
  for (const std::vector<std::string>& three : {std::vector<std::string>{"i", "i", "i"},
                                                {"i", "r", "gg"},
                                                {"r", "r", "g"},
                                                {"i", "i", "gg"},
                                                {"i", "s", "i"},
                                                {"d", "d", "i"},
                                                {"s", "s", "g"},
                                                {"i", "s", "r"}})
    holds_for_three("counter, 2 copies, exact: " + three[0] + " | " + three[1] + " | " + three[2],
                    tellers(three, {.kind = Kind::exact, .before = 5, .copies = 2, .one_removes = true}),
                    {.servers = 2});
}

TEST_CASE("exhaustive counter: two copies") {
  using exhaustive::holds;
  // A second fault may take a plain counter the only copy that has lived and been reached from the start, and show a reader
  // only the copy that a change has not reached.
  const auto pair = [](const std::vector<std::string>& lives, Kind kind, std::uint64_t before, int faults) {
    holds(
        std::string("counter, 2 copies, ") + (kind == Kind::plain ? "plain: " : "exact: ") + lives[0] +
            " | " + lives[1] + (before == 0 ? ", creating" : ""),
        tellers(
            lives,
            {.kind = kind, .before = before, .copies = 2, .one_removes = kind == Kind::exact && faults == 0}),
        {.faults = faults, .servers = 2}, kind == Kind::plain || lives[1] == "gg" ? 0 : 1);
  };
  for (const std::uint64_t before : {0, 5}) {
    for (const Kind kind : {Kind::plain, Kind::exact}) {
      pair({"i", "i"}, kind, before, 1);
      pair({"ii", "i"}, kind, before, 1);
    }
    pair({"i", "gg"}, Kind::exact, before, 1);
    pair({"s", "s"}, Kind::plain, before, 1);
    // A client that reaches only the copy that a change has not reached yet sees it undone: no fault is left for these.
    if (exhaustive::full()) continue;
    for (const char* one : {"i | gg", "s | gg", "r | gg", "i | r", "i | ri", "r | r", "s | i", "s | r",
                            "i | d", "d | d", "s | d", "d | r"}) {
      const std::string lives = one;
      pair({lives.substr(0, 1), lives.substr(4)}, Kind::plain, before, 0);
    }
    for (const char* other : {"r", "ri", "rg", "gr", "ir"}) pair({"r", other}, Kind::exact, before, 0);
    for (const char* other : {"gg", "i", "ig", "r"}) pair({"r", other}, Kind::exact, before, 1);
    pair({"ir", "g"}, Kind::exact, before, 1);
    for (const char* other : {"gg", "i"}) pair({"ir", other}, Kind::exact, before, 0);
  }
  if (!exhaustive::full()) {
    // A set of a counter that is not there makes a plain one.
    for (const char* one : {"d | d", "i | d", "d | gg", "d | r", "s | s", "s | i", "s | d", "s | r", "s | gg",
                            "i | sg", "is | i"}) {
      const std::string lives = one;
      const std::size_t bar = lives.find(' ');
      for (const int faults : {0, 1})
        pair({lives.substr(0, bar), lives.substr(bar + 3)}, Kind::exact, 5, faults);
    }
  }
}

TEST_CASE("exhaustive counter: caught when broken") {
  using exhaustive::caught;
  caught("counter, broken: get then set", tellers({"i", "i"}, {.increment = get_then_set_first}), {});
  caught("counter, broken: repeated after a lost reply",
         tellers({"i"}, {.increment = repeated_after_unknown}), {.faults = 1});
  caught("counter, broken: unknown called failed", tellers({"i"}, {.increment = unknown_called_failed}),
         {.faults = 1});
  caught("counter, broken: a cas loop that goes on blindly",
         tellers({"i"}, {.increment = cas_loop_repeating_after_unknown}), {.faults = 1});
  caught("counter, 2 copies, broken: a lost copy raised to the other", tellers({"i", "R"}, {.copies = 2}),
         {.servers = 2});
  const Setting exact{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = test::write_without_comparing};
  caught("counter, 2 exact copies, broken: written without comparing", tellers({"i", "i"}, exact),
         {.servers = 2});
  const Setting created{.kind = Kind::exact, .copies = 2, .spoil = test::add_over_what_is_there};
  caught("counter, 2 exact copies, broken: created over what is there", tellers({"i", "i"}, created),
         {.servers = 2});
  const Setting removed{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = remove_without_a_trace};
  caught("counter, 2 exact copies, broken: removed without a trace", tellers({"r", "gg"}, removed),
         {.servers = 2});
  const Setting merged{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = set_in_the_same_life};
  caught("counter, 2 exact copies, broken: set in the same life", tellers({"s", "g"}, merged),
         {.servers = 2});
  caught("counter, the articles': get, add, set", tellers({"i", "i"}, {.increment = get_and_set}), {});
}

}  // namespace mcds::counter_exhaustive
