// Counters: acknowledged increments <= value <= acknowledged and unknown ones; what takes answer, and what is left, is what
// was added.
#include "common/base/bytes.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/counter/counter.hpp"
#include "tests/exhaustive/pairs.hpp"

namespace mcds {

namespace {

using namespace std::chrono_literals;

enum class Kind { plain, exact };

struct Ledger {
  std::uint64_t least = 0, most = 0;  // added
  std::uint64_t taken = 0;
  std::uint64_t removed_at_most = 0;  // by takes, decrements and removals without an answer, or with one
  bool started_again = false;         // set, or removed: nothing more is known of the value
};

constexpr const char* key = "counter:n";

using Increment = std::function<void(Context&, std::uint64_t)>;

// One client's operations, as letters: i increment by 2, t take, d decrement by 1, g get, s set to 10, r remove.
class Teller {
 public:
  Teller(Context& context, ExploredClient& client, Ledger& ledger, Kind kind, const Increment& increment)
      : context_(context),
        client_(client),
        ledger_(ledger),
        kind_(kind),
        increment_(increment),
        counter_(context) {}

  void act(char letter) {
    switch (letter) {
      case 'i':
        return add();
      case 't':
        return take();
      case 'd':
        ledger_.removed_at_most += 1;
        client_.operation("decr", [&] { return counter_.decr("n", 1) ? "done" : "there is none"; });
        return;
      case 'g':
        client_.operation("get", [&] {
          const std::vector<std::string> names{"n"};
          const auto reading = counter_.get(names).front();
          return reading.value ? std::to_string(reading.value->value) : std::string("nothing");
        });
        return;
      case 's':
        ledger_.started_again = true;
        ledger_.most += 10;
        client_.operation("set",
                          [&] { return std::to_string(counter_.set("n", 10, std::nullopt, false).value); });
        return;
      default:
        ledger_.started_again = true;
        client_.operation("remove", [&] {
          const std::vector<std::string> names{"n"};
          return counter_.remove(names).front().removed ? "removed" : "not there";
        });
    }
  }

 private:
  void add() {
    ledger_.most += 2;
    bool unknown = false;
    const bool done = client_.operation("incr", [&] {
      try {
        increment_ ? increment_(context_, 2)
                   : void(counter_.incr("n", 2, {.ttl = {}, .exact = kind_ == Kind::exact}));
      } catch (const UnknownOutcome&) {
        unknown = true;
        throw;
      }
      return "done";
    });
    if (done) ledger_.least += 2;
    if (!done && !unknown) ledger_.most -= 2;
  }

  void take() {
    std::optional<std::uint64_t> taken;
    bool unknown = true;
    ledger_.removed_at_most += 1000;
    client_.operation("take", [&] {
      try {
        const auto answer = counter_.take("n");
        taken = answer ? answer->value : 0;
        unknown = false;
      } catch (const UnknownOutcome&) {
        throw;
      } catch (const Failure&) {
        unknown = false;
        throw;
      }
      return std::to_string(*taken);
    });
    if (!unknown) ledger_.removed_at_most -= 1000;
    ledger_.taken += taken.value_or(0);
  }

  Context& context_;
  ExploredClient& client_;
  Ledger& ledger_;
  Kind kind_;
  const Increment& increment_;
  Counter counter_;
};

Scenario tellers(std::vector<std::string> lives, Kind kind, Increment increment = nullptr,
                 std::uint64_t before = 0) {
  return [=](Exploration& run) {
    auto ledger = std::make_shared<Ledger>();
    if (before != 0) {
      Counter(run.observer()).incr("n", before, {.ttl = {}, .exact = kind == Kind::exact});
      ledger->least = ledger->most = before;
    }
    for (const std::string& life : lives) {
      run.client([&life, &increment, ledger, kind](Context& context, ExploredClient& client) {
        Teller teller(context, client, *ledger, kind, increment);
        for (const char letter : life) teller.act(letter);
      });
    }
    run.check([ledger, &run](Context& observer) -> std::optional<std::string> {
      const std::vector<std::string> names{"n"};
      const auto reading = Counter(observer).get(names).front();
      if (reading.failure) return reading.failure->what();
      const std::uint64_t value = (reading.value ? reading.value->value : 0) + ledger->taken;
      if (value > ledger->most)
        return std::to_string(value) + " counted, at most " + std::to_string(ledger->most) + " added";
      if (!run.lost_data() && !ledger->started_again && value + ledger->removed_at_most < ledger->least)
        return std::to_string(value) + " counted, " + std::to_string(ledger->least) + " acknowledged";
      return std::nullopt;
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
      holds(name + what, tellers(std::move(lives), kind, nullptr, 5), bounds);
    };
    holds(name + "incr | incr, creating", tellers({"i", "i"}, kind), {.faults = 1});
    holds(name + "incr | incr, creating, without meta", tellers({"i", "i"}, kind),
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

TEST_CASE("exhaustive counter: caught when broken") {
  using exhaustive::caught;
  caught("counter, broken: get then set", tellers({"i", "i"}, Kind::plain, get_then_set_first), {});
  caught("counter, broken: repeated after a lost reply", tellers({"i"}, Kind::plain, repeated_after_unknown),
         {.faults = 1});
  caught("counter, broken: unknown called failed", tellers({"i"}, Kind::plain, unknown_called_failed),
         {.faults = 1});
  caught("counter, broken: a cas loop that goes on blindly",
         tellers({"i"}, Kind::plain, cas_loop_repeating_after_unknown), {.faults = 1});
  caught("counter, the articles': get, add, set", tellers({"i", "i"}, Kind::plain, get_and_set), {});
}

}  // namespace mcds
