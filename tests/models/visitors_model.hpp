// Visitors: acknowledged hits of a full period are in its value as long as any client's clock is in the
// following period, once, and an id counts once per period.
#pragma once

#include <map>
#include <set>

#include "common/base/bytes.hpp"
#include "common/structures/visitors/visitors.hpp"
#include "tests/models/linearizability.hpp"

namespace mcds::visitors_model {

using namespace std::chrono_literals;

constexpr auto period = 10s;

enum class Mistake { none, two_alternating_keys, exptime_from_the_hit, no_guard };

struct Hit {
  WallTime period;
  std::size_t begun;
  std::size_t ended = models::never;  // never: may have been counted, in this period or the next
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
  std::set<std::string> ids;           // that were or may have been counted
  std::map<std::string, int> counted;  // how often, by id
  std::size_t ids_unknown = 0;
};

inline WallTime start(std::int64_t number) {
  return WallTime(number * period);
}

struct Setting {
  Mistake mistake = Mistake::none;
  std::uint64_t ids = 1;                     // how many different ones
  Duration period = visitors_model::period;  // if all hits have ids
};

// Runs one client's operations, as letters: h hits, i hits with an id, v reads the last full period's value.
class Guest {
 public:
  Guest(Context context, Actor& client, History& history, const Setting& setting)
      : context_(std::move(context)),
        client_(client),
        history_(history),
        mistake_(setting.mistake),
        ids_(setting.ids),
        visitors_(context_, "site", setting.period) {}

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
    const std::string id = "ann" + std::to_string(context_.random.below(ids_));
    ++history_.ids_unknown;
    history_.ids.insert(id);
    client_.operation("hit as " + id, [&] {
      const bool counted = visitors_.hit(id).counted;
      --history_.ids_unknown;
      if (counted) ++history_.counted[id];
      return counted ? "counted" : "counted before";
    });
  }

  Context context_;
  Actor& client_;
  History& history_;
  Mistake mistake_;
  std::uint64_t ids_;
  Visitors visitors_;
};

inline std::optional<std::string> violation(const History& history, bool lost) {
  for (const Value& read : history.values) {
    std::uint64_t least = 0, most = 0;
    for (const Hit& hit : history.hits) {
      if (hit.ended < read.begun && hit.period == read.period) ++least;
      const bool perhaps = hit.ended == models::never && !hit.refused;
      if (hit.begun < read.ended && (hit.period == read.period || perhaps)) ++most;
    }
    if ((read.value < least && !lost) || read.value > most) {
      return "value " + std::to_string(read.value) + ", but " + std::to_string(least) +
             " acknowledged before, " + std::to_string(most) + " tried";
    }
  }
  for (const auto& [id, times] : history.counted) {
    if (times > 1 && !lost) return id + " was counted twice";
  }
  return std::nullopt;
}

inline Scenario guests(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Trial& run) {
    auto history = std::make_shared<History>();
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, history, &setting](Context& honest, Actor& client) {
        Guest guest(honest, client, *history, setting);
        for (const char letter : incarnation) guest.act(letter);
      });
    }
    run.check([history, &run, &setting](Context& observer) -> std::optional<std::string> {
      const bool lost = run.lost_data();
      const std::uint64_t current = Visitors(observer, "site", setting.period).value().current;
      const std::size_t counted = history->counted.size();
      if (!lost && counted > 0 && history->hits.empty()) {
        if (current < counted) return "an acknowledged visitor is missing";
        if (current > std::min(history->ids.size(), counted + history->ids_unknown))
          return "a visitor was counted twice";
      }
      return violation(*history, lost);
    });
  };
}

}  // namespace mcds::visitors_model
