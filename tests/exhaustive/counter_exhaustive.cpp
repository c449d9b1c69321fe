// Counters: some order of the increments, takes, sets and removals explains every answer and the final value.
// Answers to changes of several copies follow no order: only reads, and the remover, are checked there.
#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/counter/counter.hpp"
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

struct Value : std::optional<std::uint64_t> {
  std::map<std::size_t, std::uint64_t> seen = {};  // by clients that will reset it

  Value() = default;
  Value(std::optional<std::uint64_t> value) : optional(value) {}
  explicit Value(std::uint64_t value) : optional(value) {}
  Value& operator=(std::optional<std::uint64_t> value) {
    optional::operator=(value);
    return *this;
  }
  bool operator==(const Value& other) const {
    return has_value() == other.has_value() && (!*this || **this == *other);
  }
};
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
  bool one_removes = false;  // with several copies: check which client removed it
  bool believes = false;     // treats failed writes as done
  bool observes = false;     // sets and removals cancel only what they read
};

IncrOptions options_of(const Setting& setting) {
  const bool exact = setting.kind == Kind::exact;
  return {.ttl = {}, .exact = exact && setting.copies == 1};
}

std::optional<std::uint64_t> read(Context& context) {
  const CounterAnswer reading = Counter(context).get(names).front();
  if (reading.failure) throw Failure(*reading.failure);
  return reading.done ? std::optional(reading.value) : std::nullopt;
}

// Runs one client's operations: i increment by 2, t take, d decrement by 1, g get, s set to 10, r remove.
class Teller {
 public:
  Teller(Context context, ExploredClient& client, Acts& acts, const Setting& setting)
      : context_(std::move(context)), client_(client), acts_(acts), setting_(setting), counter_(context_) {}

  void act(char letter) {
    switch (letter) {
      case 'i': return incr();
      case 't': return take();
      case 'd': return decr();
      case 'g': return get();
      case 's': return set();
      default: return remove();
    }
  }

 private:
  using Answer = std::function<bool(Value&)>;

  bool tells() const { return setting_.copies == 1 && !setting_.increment; }

  void incr() {
    const auto effect = [](Value& state) { state = state.value_or(0) + 2; };
    acts_.run(client_, "incr", effect, [&](std::string& reported) -> Answer {
      Value answer;
      if (setting_.increment)
        setting_.increment(context_, 2);
      else
        answer = counter_.incr("n", 2, options_of(setting_)).value;
      reported = answer ? std::to_string(*answer) : "done";
      return [=, tells = tells()](Value& state) {
        effect(state);
        return !tells || state == answer;
      };
    });
  }

  void take() {
    const auto effect = [](Value& state) { state = state ? Value(0) : Value(); };
    acts_.run(client_, "take", effect, [&](std::string& reported) -> Answer {
      const auto taken = counter_.take("n");
      reported = taken.done ? std::to_string(taken.value) : "there is none";
      return [=](Value& state) {
        const bool right = state.has_value() == taken.done && (!state || *state == taken.value);
        effect(state);
        return right;
      };
    });
  }

  void decr() {
    const auto effect = [](Value& state) {
      if (state) state = *state - std::min<std::uint64_t>(*state, 1);
    };
    acts_.run(client_, "decr", effect, [&](std::string& reported) -> Answer {
      const auto left = counter_.decr("n", 1);
      reported = left.done ? std::to_string(left.value) : "there is none";
      return [=, tells = tells()](Value& state) {
        const bool was = state.has_value();
        if (left.done) effect(state);
        return !tells || (was == left.done && (!state || *state == left.value));
      };
    });
  }

  void get() {
    acts_.run(client_, "get", nullptr, [&](std::string& reported) -> Answer {
      const auto value = read(context_);
      reported = value ? std::to_string(*value) : "nothing";
      return [=](Value& state) {
        return state.has_value() == value.has_value() && (!state || *state == *value);
      };
    });
  }

  // Returns an effect that resets the value to `to`, but keeps what was added since this client read it.
  std::function<void(Value&)> resetting(std::optional<std::uint64_t> to) {
    if (!setting_.observes) return [=](Value& state) { state = to; };
    const std::size_t me = client_.index();
    acts_.perhaps_from_now(client_, [=](Value& state) { state.seen[me] = state.value_or(0); });
    return [=](Value& state) {
      const auto saw = state.seen.find(me);
      const std::uint64_t since = saw == state.seen.end() ? 0 : state.value_or(0) - saw->second;
      if (to || since != 0)
        state = to.value_or(0) + since;
      else
        state = to;
    };
  }

  void set() {
    const auto effect = resetting(10);
    acts_.run(client_, "set", effect, [&](std::string& reported) -> Answer {
      reported = std::to_string(counter_.set("n", 10, std::nullopt, false).value);
      return [=](Value& state) { return effect(state), true; };
    });
  }

  void remove() {
    const auto effect = resetting(std::nullopt);
    acts_.run(client_, "remove", effect, [&](std::string& reported) -> Answer {
      const CounterAnswer removal = counter_.remove(names).front();
      if (removal.failure && removal.failure->code() == ErrorCode::unknown_outcome)
        throw UnknownOutcome(removal.failure->what());
      if (removal.failure) throw Failure(*removal.failure);
      reported = removal.done ? "removed" : "not there";
      return [=, tells = tells() || setting_.one_removes](Value& state) {
        const bool was = state.has_value();
        effect(state);
        return !tells || was == removal.done;
      };
    });
  }

  Context context_;
  ExploredClient& client_;
  Acts& acts_;
  const Setting& setting_;
  Counter counter_;
};

std::optional<CounterRecord> written_by(const Request& request) {
  return request.op == Op::cas ? CounterRecord::parse(request.value) : std::nullopt;
}

// Cancels the whole stored value when it is written, including increments that the client did not read.
void take_away_everything(Request& request) {
  auto record = written_by(request);
  if (!record || record->base.kind == CounterRecord::Epoch::Kind::begun) return;
  for (auto& [name, incarnation] : record->incarnations) incarnation.taken = incarnation.made;
  request.value = record->text();
}

// Cancels nothing, so that a set is added to what others set.
void take_nothing_away(Request& request) {
  auto record = written_by(request);
  if (!record) return;
  for (auto& [name, incarnation] : record->incarnations) incarnation.taken = {};
  request.value = record->text();
}

// Treats writes that failed as done.
class Believing final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    auto replies = inner().execute(batch);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const bool writes = batch[i].op == Op::cas || batch[i].op == Op::add;
      if (writes && replies[i].failed()) replies[i] = Reply::of(Outcome::stored, replies[i].server);
    }
    return replies;
  }
};

Scenario tellers(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Exploration& run) {
    auto acts = std::make_shared<Acts>();
    const Value before = setting.before == 0 ? Value() : Value(setting.before);
    if (before) {
      Counter(in_copies(run.observer(), setting.copies)).incr("n", *before, options_of(setting));
    }
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, &setting, acts](Context& honest, ExploredClient& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil);
        Believing believing(spoiled);
        Cluster& cluster = setting.believes ? static_cast<Cluster&>(believing) : spoiled;
        Teller teller({cluster, honest.clock, honest.random, honest.key_prefix, setting.copies}, client,
                      *acts, setting);
        for (const char letter : incarnation) teller.act(letter);
      });
    }
    run.check([=, &setting, &run](Context& observer) -> std::optional<std::string> {
      Context context = in_copies(observer, setting.copies);
      const auto reading = read(context);
      const Value left = reading ? Value(*reading) : Value();
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

Happenings only_cuts() {
  Happenings kinds = Happenings::none();
  kinds.unreachable = true;
  return kinds;
}

// The usual recipe: read, add, write.
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
    const auto pair = [&](const std::string& what, std::vector<std::string> incarnations, Bounds bounds) {
      holds(name + what, tellers(std::move(incarnations), {.kind = kind, .before = 5}), bounds);
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
  using exhaustive::holds_in_full;
  for (const Kind kind : {Kind::plain, Kind::exact}) {
    for (const std::vector<std::string>& three : {std::vector<std::string>{"i", "i", "i"},
                                                  {"i", "t", "t"},
                                                  {"i", "d", "t"},
                                                  {"i", "s", "t"},
                                                  {"i", "r", "i"}}) {
      const std::string name = three[0] + " | " + three[1] + " | " + three[2];
      holds_in_full((kind == Kind::plain ? "counter, plain: " : "counter, exact: ") + name,
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
    holds_in_full("counter, 2 copies, exact: " + three[0] + " | " + three[1] + " | " + three[2],
                  tellers(three, {.kind = Kind::exact, .before = 5, .copies = 2, .one_removes = true}),
                  {.servers = 2});
}

TEST_CASE("exhaustive counter: two and three copies") {
  using exhaustive::holds;
  const auto pair = [](const std::string& incarnations, std::size_t copies, std::uint64_t before,
                       int faults) {
    const std::size_t bar = incarnations.find(' ');
    holds(
        "counter, " + std::to_string(copies) + " copies: " + incarnations + (before == 0 ? ", creating" : ""),
        tellers({incarnations.substr(0, bar), incarnations.substr(bar + 3)},
                {.kind = Kind::exact, .before = before, .copies = copies, .one_removes = faults == 0}),
        {.faults = faults, .servers = copies}, 0);
  };
  for (const std::uint64_t before : {0, 5}) {
    pair("i | i", 2, before, 1);
    pair("i | gg", 2, before, 1);
    pair("ii | i", 2, before, 0);
  }
  for (const char* incarnations :
       {"r | i", "r | gg", "r | r", "s | i", "s | s", "s | r", "s | gg", "d | d", "i | d"}) {
    pair(incarnations, 2, 5, 0);
    pair(incarnations, 2, 5, 1);
  }
  for (const char* incarnations : {"r | ri", "r | ir", "ir | gg", "is | i", "i | sg"})
    pair(incarnations, 2, 5, 0);
  for (const char* incarnations : {"s | i", "r | i", "i | g", "s | g"}) pair(incarnations, 3, 5, 0);
  // A client fails once to reach one server.
  const auto cut = [](std::vector<std::string> incarnations, const auto& holds_so) {
    std::string name = "counter, 3 copies, a cut: " + incarnations.front();
    for (std::size_t i = 1; i < incarnations.size(); ++i) name += " | " + incarnations[i];
    const Setting setting{.kind = Kind::exact, .before = 5, .copies = 3, .observes = true};
    holds_so(name, tellers(std::move(incarnations), setting),
             {.faults = 1, .kinds = only_cuts(), .hasty_attempts = 0, .servers = 3});
  };
  const auto in_short = [](const std::string& name, const Scenario& scenario, const Bounds& bounds) {
    holds(name, scenario, bounds, 0);
  };
  for (const char* reset : {"s", "r"}) {
    cut({reset, "i"}, in_short);
    cut({reset, "ig"}, in_short);
    cut({reset, "i", "g"}, exhaustive::holds_in_full);
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
  const Setting exact{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = test::write_without_comparing};
  caught("counter, 2 exact copies, broken: written without comparing", tellers({"i", "i"}, exact),
         {.servers = 2});
  const Setting created{.kind = Kind::exact, .copies = 2, .spoil = test::add_over_what_is_there};
  caught("counter, 2 exact copies, broken: created over what is there", tellers({"i", "i"}, created),
         {.servers = 2});
  const Setting grown{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = take_away_everything};
  caught("counter, 2 exact copies, broken: what a set takes away grows on re-reading",
         tellers({"s", "i"}, grown), {.servers = 2});
  const Setting joined{.kind = Kind::exact, .before = 5, .copies = 2, .spoil = take_nothing_away};
  caught("counter, 2 exact copies, broken: a set takes nothing away", tellers({"s", "g"}, joined),
         {.servers = 2});
  const Setting hasty{.kind = Kind::exact, .before = 5, .copies = 3, .believes = true};
  caught("counter, 3 exact copies, broken: done with one copy", tellers({"i", "g"}, hasty),
         {.faults = 3, .kinds = only_cuts(), .servers = 3});
  caught("counter, the articles': get, add, set", tellers({"i", "i"}, {.increment = get_and_set}), {});
}

}  // namespace mcds::counter_exhaustive
