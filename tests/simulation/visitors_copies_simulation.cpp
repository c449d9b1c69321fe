// Visitors with several copies under every interleaving and fault, while servers lose everything: the count
// is never above the truth, and right by the copy that lives from the start.
#include <doctest/doctest.h>

#include "common/structures/visitors/visitors.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::visitors_copies_simulation {

namespace {

using namespace std::chrono_literals;

// So long that a history is in one period.
constexpr auto period = 24h * 7;
constexpr std::size_t survivor = 0;  // of the counter's copies

Visitors visitors_of(Context& context) {
  return {context, "site", period};
}

struct History {
  std::uint64_t tried = 0;        // counted or perhaps counted
  std::uint64_t on_survivor = 0;  // acknowledged, also by the copy that is never lost
  std::optional<std::string> violation;
};

void hit_and_look(Context& context, SimulatedClient& client, History& history) {
  for (int i = 0; i < 4; ++i) {
    ++history.tried;
    try {
      const auto hit = visitors_of(context).hit();
      if (!hit.copies[survivor].failure) ++history.on_survivor;
      if (hit.current > history.tried) history.violation = "a hit answered more than were tried";
    } catch (const UnknownOutcome&) {
    } catch (const Failure&) {
      --history.tried;
    }
    client.sleep_for(std::chrono::milliseconds(context.random.below(2) * context.random.below(3000)));
    try {
      if (visitors_of(context).value().current > history.tried)
        history.violation = "more visitors than were tried";
    } catch (const Failure&) {
    }
  }
}

std::optional<std::string> count_schedule(std::uint64_t seed, test::Spoiled::Spoil spoil = {}) {
  const std::size_t copies = 2 + seed % 2;
  Simulation simulation(seed, {.servers = copies});
  History history;
  for (int i = 0; i < 3; ++i) {
    simulation.client([&](Context& honest, SimulatedClient& client) {
      test::Spoiled spoiled(honest.cluster, spoil);
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix, copies};
      hit_and_look(context, client, history);
    });
  }
  Context observer = simulation.observer();
  observer.copies = copies;
  const auto servers = copy_servers(observer, visitors_of(observer).keys().back());
  simulation.client([&](Context& context, SimulatedClient& client) {
    for (int i = 0; i < 3; ++i) {
      client.sleep_for(std::chrono::milliseconds(context.random.below(3000)));
      client.simulation().servers().restart(servers[1 + context.random.below(servers.size() - 1)]);
    }
  });
  simulation.run();
  const std::uint64_t value = visitors_of(observer).value().current;
  if (value < history.on_survivor) return "an acknowledged hit is missing";
  if (value > history.tried) return "more visitors than were tried";
  return history.violation;
}

// A lost copy that counts as others seem to have left off.
void begin_again_above_one(Request& request) {
  if (request.op == Op::incr_or_create) ++request.initial;
}

}  // namespace

TEST_CASE(
    "visitors copies: the count is never above the truth, and right by the copy that lives from the start") {
  check_schedules([](std::uint64_t seed) { return count_schedule(seed); }, 0.1);
}

TEST_CASE("visitors copies: the simulation catches a lost copy that begins again above what it counted") {
  CHECK(finds_violation([](std::uint64_t seed) { return count_schedule(seed, begin_again_above_one); }));
}

}  // namespace mcds::visitors_copies_simulation
