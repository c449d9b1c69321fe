// Counters: some order of the increments, takes, sets and removals explains every answer and the final value.
// Answers to changes of several copies follow no order: only reads, and the remover, are checked there.
#pragma once

#include <map>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/record.hpp"
#include "tests/models/linearizability.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::counter_model {

using namespace std::chrono_literals;

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
using Acts = models::Acts<Value>;

constexpr const char* key = "counter:n";
inline const std::vector<std::string> names{"n"};

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
  bool may_mix = false;      // late requests may restore what was lost; then only no count may be invented
};

inline IncrOptions options_of(const Setting& setting) {
  const bool exact = setting.kind == Kind::exact;
  return {.ttl = {}, .exact = exact && setting.copies == 1};
}

inline std::optional<std::uint64_t> read(Context& context) {
  const CounterAnswer reading = Counter(context).get(names).front();
  if (reading.failure) throw Failure(*reading.failure);
  return reading.done ? std::optional(reading.value) : std::nullopt;
}

struct History {
  Acts acts;
  std::uint64_t added = 0;  // by increments that were or may have been done
};

// Runs one client's operations: i increment by 2, t take, d decrement by 1, g get, s set to 10, r remove.
class Teller {
 public:
  Teller(Context context, Actor& client, History& history, const Setting& setting)
      : context_(std::move(context)),
        client_(client),
        history_(history),
        acts_(history.acts),
        setting_(setting),
        counter_(context_) {}

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
    history_.added += 2;
    const bool counted = acts_.run(client_, "incr", effect, [&](std::string& reported) -> Answer {
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
    if (!counted) history_.added -= 2;
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
  Actor& client_;
  History& history_;
  Acts& acts_;
  const Setting& setting_;
  Counter counter_;
};

inline std::optional<CounterRecord> written_by(const Request& request) {
  return request.op == Op::cas ? CounterRecord::parse(request.value) : std::nullopt;
}

// Cancels the whole stored value when it is written, including increments that the client did not read.
inline void take_away_everything(Request& request) {
  auto record = written_by(request);
  if (!record || record->base.kind == CounterRecord::Epoch::Kind::begun) return;
  for (auto& [name, incarnation] : record->incarnations) incarnation.taken = incarnation.made;
  request.value = record->text();
}

// Cancels nothing, so that a set is added to what others set.
inline void take_nothing_away(Request& request) {
  auto record = written_by(request);
  if (!record) return;
  for (auto& [name, incarnation] : record->incarnations) incarnation.taken = {};
  request.value = record->text();
}

inline Scenario tellers(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Trial& run) {
    auto history = std::make_shared<History>();
    const Value before = setting.before == 0 ? Value() : Value(setting.before);
    if (before) {
      Counter(in_copies(run.observer(), setting.copies)).incr("n", *before, options_of(setting));
    }
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, &setting, history](Context& honest, Actor& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil);
        test::Believing believing(spoiled);
        Cluster& cluster = setting.believes ? static_cast<Cluster&>(believing) : spoiled;
        Teller teller({cluster, honest.clock, honest.random, honest.key_prefix, setting.copies}, client,
                      *history, setting);
        for (const char letter : incarnation) teller.act(letter);
      });
    }
    run.check([=, &setting, &run](Context& observer) -> std::optional<std::string> {
      Context context = in_copies(observer, setting.copies);
      const auto reading = read(context);
      const Value left = reading ? Value(*reading) : Value();
      if (run.lost_data() && setting.may_mix)
        return left.value_or(0) > history->added ? std::optional<std::string>("counted more than was added")
                                                 : std::nullopt;
      if (run.lost_data() && setting.copies == 1) history->acts.perhaps([](Value& state) { state.reset(); });
      if (history->acts.explained(before, [&](Value& state) { return state == left; })) return std::nullopt;
      return "no order of the operations explains their answers, and what is left: " +
             (left ? std::to_string(*left) : "nothing");
    });
  };
}

inline Request incr_or_create(std::uint64_t delta) {
  return Request::incr_or_create(key, delta, delta, Exptime::never());
}

inline void get_then_set_first(Context& context, std::uint64_t delta) {
  if (expect_read(context.cluster, context.cluster.execute(Request::get(key))).outcome == Outcome::miss)
    expect(context.cluster, context.cluster.execute(Request::set(key, "0", Exptime::never())));
  expect(context.cluster, context.cluster.execute(Request::incr(key, delta)));
}

inline void repeated_after_unknown(Context& context, std::uint64_t delta) {
  Reply reply = context.cluster.execute(incr_or_create(delta));
  for (int i = 0; i < 2 && reply.unknown(); ++i) reply = context.cluster.execute(incr_or_create(delta));
  expect(context.cluster, reply);
}

inline void unknown_called_failed(Context& context, std::uint64_t delta) {
  expect_read(context.cluster, context.cluster.execute(incr_or_create(delta)));
}

inline void cas_loop_repeating_after_unknown(Context& context, std::uint64_t delta) {
  cas_update(context, key, [&](const Observed& observed) -> std::optional<Write> {
    return Write{std::to_string(parse_u64(observed.value).value_or(0) + delta)};
  });
}

// The usual recipe: read, add, write.
inline void get_and_set(Context& context, std::uint64_t delta) {
  const Reply found = expect_read(context.cluster, context.cluster.execute(Request::get(key)));
  const auto value = parse_u64(found.value).value_or(0) + delta;
  expect(context.cluster,
         context.cluster.execute(Request::set(key, std::to_string(value), Exptime::never())));
}

}  // namespace mcds::counter_model
