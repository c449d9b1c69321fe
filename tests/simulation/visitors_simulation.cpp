// Visitors under every simulated interleaving: each acknowledged hit of a period is in its value as long as
// any client's clock is in the following period, and nothing is counted twice.
#include <doctest/doctest.h>

#include <map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/visitors/visitors.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::visitors_simulation {

namespace {

using namespace std::chrono_literals;

constexpr auto period = 10s;

struct Algorithm {
  virtual ~Algorithm() = default;
  // Counts a hit. Returns the start of its period.
  virtual WallTime hit(Context& context) = 0;
  // Returns the last full period and its value.
  virtual std::pair<WallTime, std::uint64_t> value(Context& context) = 0;
};

struct Ours final : Algorithm {
  WallTime hit(Context& context) override {
    return Visitors(context, "site", period).hit().period_started_at;
  }
  std::pair<WallTime, std::uint64_t> value(Context& context) override {
    const auto value = Visitors(context, "site", period).value();
    return {value.period_started_at, value.visitors};
  }
};

// The algorithm with one mistake, in the key or in the expiry.
struct Broken final : Algorithm {
  enum class Mistake { two_alternating_keys, exptime_from_the_hit, no_guard } mistake;
  explicit Broken(Mistake which) : mistake(which) {}

  static std::int64_t index(Context& context) { return context.clock.wall().time_since_epoch() / period; }
  static WallTime start(std::int64_t p) { return WallTime(p * period); }
  std::string key(std::int64_t p) const {
    return "v:" + std::to_string(mistake == Mistake::two_alternating_keys ? p % 2 : p);
  }
  Exptime exptime(Context& context, std::int64_t p) const {
    const WallTime now = context.clock.wall();
    if (mistake == Mistake::exptime_from_the_hit) return Exptime::after(period, now);
    if (mistake == Mistake::no_guard) return Exptime::at(start(p + 2), now);
    return Exptime::at(start(p + 2) + 7s, now);
  }
  WallTime hit(Context& context) override {
    const std::int64_t p = index(context);
    expect(context.cluster,
           context.cluster.execute(Request::incr_or_create(key(p), 1, 1, exptime(context, p))));
    return start(p);
  }
  std::pair<WallTime, std::uint64_t> value(Context& context) override {
    const std::int64_t p = index(context);
    const Reply reply = expect(context.cluster, context.cluster.execute(Request::get(key(p - 1))));
    return {start(p - 1), parse_u64(reply.value).value_or(0)};
  }
};

struct History {
  struct Hit {
    WallTime period;
    Duration done;
  };
  struct Read {
    WallTime period;
    Duration begun;
    std::uint64_t value;
  };
  std::vector<Hit> acknowledged;
  std::vector<Read> reads;
  std::map<WallTime, std::uint64_t> tried;  // hits that were or may have been counted, by period
};

void hit_sometimes(Algorithm& algorithm, History& history, Context& context, SimulatedClient& client) {
  for (int i = 0; i < 4; ++i) {
    const auto own_period = [&] { return WallTime(client.wall().time_since_epoch() / period * period); };
    const WallTime before = own_period();
    try {
      const WallTime counted = algorithm.hit(context);
      history.acknowledged.push_back({counted, client.simulation().time().elapsed()});
      ++history.tried[counted];
    } catch (const UnknownOutcome&) {
      ++history.tried[before];
      if (own_period() != before) ++history.tried[own_period()];
    } catch (const NotApplied&) {
    }
    client.sleep_for(std::chrono::milliseconds(context.random.below(8000)));
  }
}

void read_sometimes(Algorithm& algorithm, History& history, Context& context, SimulatedClient& client) {
  for (int i = 0; i < 6; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(9000)));
    const Duration begun = client.simulation().time().elapsed();
    const auto before = client.wall().time_since_epoch() / period;
    try {
      const auto [started, value] = algorithm.value(context);
      // A reader that pauses until its own clock has left the period is not the algorithm's fault.
      if (client.wall().time_since_epoch() / period == before)
        history.reads.push_back({started, begun, value});
    } catch (const Failure&) {
    }
  }
}

std::optional<std::string> check(History& history) {
  for (const auto& read : history.reads) {
    std::uint64_t least = 0;
    for (const auto& hit : history.acknowledged) {
      if (hit.period == read.period && hit.done < read.begun) ++least;
    }
    const std::uint64_t most = history.tried[read.period];
    if (read.value < least || read.value > most) {
      return "value " + std::to_string(read.value) + ", but " + std::to_string(least) +
             " acknowledged before, " + std::to_string(most) + " tried";
    }
  }
  return std::nullopt;
}

std::optional<std::string> schedule(std::uint64_t seed, Algorithm& algorithm) {
  // Half a period is 5 s. Clocks that are up to 2.4 s off either way differ by less than that.
  Simulation simulation(seed, {.servers = 2, .max_skew = 2400ms});
  History history;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      hit_sometimes(algorithm, history, context, client);
    });
  }
  simulation.client([&](Context& context, SimulatedClient& client) {
    read_sometimes(algorithm, history, context, client);
  });
  simulation.run();
  // A dead client's last hit may have been counted.
  if (simulation.happened().kills != 0) {
    for (auto& [started, count] : history.tried) count += simulation.happened().kills;
    for (const auto& read : history.reads) {
      history.tried.try_emplace(read.period, simulation.happened().kills);
    }
  }
  return check(history);
}

// Visitors with ids: no id is counted twice, and every acknowledged one is counted.
std::optional<std::string> id_schedule(std::uint64_t seed) {
  Simulation simulation(seed, {.servers = 2, .faults = {.client_skew = false}});
  std::map<std::string, int> counted;
  WallTime started;
  std::uint64_t unsettled = 0;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      for (int j = 0; j < 3; ++j) {
        const std::string id = std::to_string(context.random.below(4));
        ++unsettled;
        try {
          const auto hit = Visitors(context, "site", 3600s * 24).hit(id);
          if (hit.counted) ++counted[id];
          started = hit.period_started_at;
          --unsettled;
        } catch (const Failure&) {
        }
        client.step();
      }
    });
  }
  simulation.run();
  for (const auto& [id, times] : counted) {
    if (times > 1 && started != WallTime{})
      return "visitor " + id + " counted " + std::to_string(times) + " times";
  }
  const std::uint64_t value = Visitors(simulation.observer(), "site", 3600s * 24).value().current;
  if (value < counted.size()) return "an acknowledged visitor is missing";
  if (value > counted.size() + unsettled) return "a visitor was counted twice";
  return std::nullopt;
}

std::optional<std::string> broken(std::uint64_t seed, Broken::Mistake mistake) {
  Broken algorithm(mistake);
  return schedule(seed, algorithm);
}

}  // namespace

TEST_CASE("visitors: every acknowledged hit of a period is in its value, none is counted twice") {
  check_schedules(
      [](std::uint64_t seed) {
        Ours algorithm;
        return schedule(seed, algorithm);
      },
      0.7);
}

TEST_CASE("visitors: an id counts once per period although replies are lost and clients die") {
  check_schedules(id_schedule, 0.3);
}

TEST_CASE("visitors: the simulation catches two alternating keys") {
  CHECK(finds_violation(
      [](std::uint64_t seed) { return broken(seed, Broken::Mistake::two_alternating_keys); }));
}

TEST_CASE("visitors: the simulation catches an exptime counted from the hit instead of the boundary") {
  CHECK(finds_violation(
      [](std::uint64_t seed) { return broken(seed, Broken::Mistake::exptime_from_the_hit); }));
}

TEST_CASE("visitors: the simulation catches an exptime without a guard") {
  CHECK(finds_violation([](std::uint64_t seed) { return broken(seed, Broken::Mistake::no_guard); }));
}

}  // namespace mcds::visitors_simulation
