// Visitors: acknowledged hits of a full period are in its value, once, and an id counts once per period.
#include <map>

#include "common/base/bytes.hpp"
#include "common/structures/visitors/visitors.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/support/cluster_doubles.hpp"

namespace mcds::visitors_exhaustive {

namespace {

using namespace std::chrono_literals;

constexpr auto period = 10s;

enum class Mistake { none, two_alternating_keys, exptime_from_the_hit, no_guard };

struct Hit {
  WallTime period;
  std::size_t begun;
  std::size_t ended = exhaustive::never;  // never: may have been counted, in this period or the next
  bool refused = false;
};

struct Value {
  WallTime period;
  std::size_t begun, ended;
  std::uint64_t value;
};

struct History {
  std::vector<Hit> hits;
  std::vector<Value> values;
  int times_counted = 0;  // the id
  int ids_unknown = 0;
};

WallTime start(std::int64_t number) {
  return WallTime(number * period);
}

// Runs one client's operations, as letters: h hits, i hits with an id, v reads the last full period's value.
class Guest {
 public:
  Guest(Context context, ExploredClient& client, History& history, Mistake mistake)
      : context_(std::move(context)),
        client_(client),
        history_(history),
        mistake_(mistake),
        visitors_(context_, "site", period) {}

  void act(char letter) {
    if (letter == 'v') return value();
    if (letter == 'i') return hit_with_id();
    history_.hits.push_back({start(now()), client_.run().steps()});
    const std::size_t number = history_.hits.size() - 1;
    WallTime counted;
    bool refused = false;
    const bool done = client_.operation("hit", [&] {
      try {
        counted = mistake_ == Mistake::none ? visitors_.hit().period_started_at : hit_wrongly();
      } catch (const UnknownOutcome&) {
        throw;
      } catch (const Failure&) {
        refused = true;
        throw;
      }
      return "counted";
    });
    Hit& hit = history_.hits[number];
    hit.begun = client_.begun();
    hit.refused = refused;
    if (!done) return;
    hit.period = counted;
    hit.ended = client_.ended();
  }

 private:
  std::int64_t now() const { return client_.wall().time_since_epoch() / period; }
  std::string key(std::int64_t number) const {
    return "v:" + std::to_string(mistake_ == Mistake::two_alternating_keys ? number % 2 : number);
  }

  WallTime hit_wrongly() {
    const std::int64_t number = now();
    Exptime exptime = Exptime::at(start(number + 2) + 7s, client_.wall());
    if (mistake_ == Mistake::exptime_from_the_hit) exptime = Exptime::after(period, client_.wall());
    if (mistake_ == Mistake::no_guard) exptime = Exptime::at(start(number + 2), client_.wall());
    expect(context_.cluster, context_.cluster.execute(Request::incr_or_create(key(number), 1, 1, exptime)));
    return start(number);
  }

  void value() {
    Value read{start(now() - 1), 0, 0, 0};
    const std::int64_t before = now();
    const bool done = client_.operation("value", [&] {
      if (mistake_ == Mistake::none) {
        const auto value = visitors_.value();
        read.value = value.visitors;
        read.period = value.period_started_at;
      } else {
        const Reply reply = expect(context_.cluster, context_.cluster.execute(Request::get(key(now() - 1))));
        read.value = parse_u64(reply.value).value_or(0);
      }
      return std::to_string(read.value);
    });
    read.begun = client_.begun();
    read.ended = client_.ended();
    // A reader that pauses until its own clock has left the period is not the algorithm's fault.
    if (done && now() == before) history_.values.push_back(read);
  }

  void hit_with_id() {
    ++history_.ids_unknown;
    client_.operation("hit as ann", [&] {
      const bool counted = visitors_.hit("ann").counted;
      --history_.ids_unknown;
      history_.times_counted += counted ? 1 : 0;
      return counted ? "counted" : "counted before";
    });
  }

  Context context_;
  ExploredClient& client_;
  History& history_;
  Mistake mistake_;
  Visitors visitors_;
};

std::optional<std::string> violation(const History& history, bool lost) {
  for (const Value& read : history.values) {
    std::uint64_t least = 0, most = 0;
    for (const Hit& hit : history.hits) {
      if (hit.ended < read.begun && hit.period == read.period) ++least;
      const bool perhaps = hit.ended == exhaustive::never && !hit.refused;
      if (hit.begun < read.ended && (hit.period == read.period || perhaps)) ++most;
    }
    if ((read.value < least && !lost) || read.value > most) {
      return "value " + std::to_string(read.value) + ", but " + std::to_string(least) +
             " acknowledged before, " + std::to_string(most) + " tried";
    }
  }
  if (history.times_counted > 1 && !lost) return "an id was counted twice";
  return std::nullopt;
}

struct Setting {
  Mistake mistake = Mistake::none;
};

Scenario guests(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Exploration& run) {
    auto history = std::make_shared<History>();
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, history, &setting](Context& honest, ExploredClient& client) {
        Guest guest(honest, client, *history, setting.mistake);
        for (const char letter : incarnation) guest.act(letter);
      });
    }
    run.check([history, &run](Context& observer) -> std::optional<std::string> {
      const bool lost = run.lost_data();
      const std::uint64_t current = Visitors(observer, "site", period).value().current;
      if (!lost && history->times_counted > 0 && current > 1 && history->hits.empty())
        return "an id was counted twice";
      return violation(*history, lost);
    });
  };
}

// Returns bounds with pauses around the ends of periods. A run begins five seconds into a period of 10 s, so
// the pauses reach its end (5 s), cover a whole period (10 s), or stop just before the next end (9.9 s).
Bounds boundaries(int faults, std::vector<std::chrono::milliseconds> skews = {}) {
  Bounds bounds{.faults = faults, .pauses = {5s, 9900ms, 10s}, .max_pauses = 2, .stalls = true};
  bounds.skews = std::move(skews);
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive visitors: hits, ids and values over the edges of periods") {
  using exhaustive::holds;
  Bounds one_pause = boundaries(1);
  if (!exhaustive::full()) one_pause.max_pauses = 1;
  holds("visitors: h | h v", guests({"h", "hv"}), one_pause);
  holds("visitors: h v | h v", guests({"hv", "hv"}), boundaries(0));
  holds("visitors: h | v, clocks 4.8 s apart", guests({"h", "v"}), boundaries(1, {2400ms, -2400ms}));
  holds("visitors: v | h, clocks 4.8 s apart", guests({"v", "h"}), boundaries(1, {2400ms, -2400ms}));
  holds("visitors: i | i", guests({"i", "i"}), {.faults = 2});
  holds("visitors: i | i, without meta", guests({"i", "i"}), {.faults = 1, .native = false});
}

TEST_CASE("exhaustive visitors: what is lost is never counted twice") {
  using exhaustive::holds;
  Bounds losing = boundaries(1);
  losing.kinds = Happenings::none();
  losing.kinds.evictions = losing.kinds.restarts = true;
  losing.max_pauses = 1;
  holds("visitors, data lost: h | h v", guests({"h", "hv"}), losing);
  holds("visitors, data lost: h v | h v", guests({"hv", "hv"}), losing);
}

TEST_CASE("exhaustive visitors: caught when broken") {
  using exhaustive::caught;
  caught("visitors, broken: two alternating keys",
         guests({"h", "hv"}, {.mistake = Mistake::two_alternating_keys}),
         {.pauses = {20s, 10s}, .max_pauses = 2, .stalls = true});
  caught("visitors, broken: exptime counted from the hit",
         guests({"h", "v"}, {.mistake = Mistake::exptime_from_the_hit}), boundaries(0));
  caught("visitors, broken: no guard behind the period", guests({"h", "v"}, {.mistake = Mistake::no_guard}),
         boundaries(0, {2400ms, -2400ms}));
}

}  // namespace mcds::visitors_exhaustive
