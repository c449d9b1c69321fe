#include "common/structures/move/clocks.hpp"

#include "common/cluster/statistics.hpp"

namespace mcds::moving {

namespace {

// A server that is short of processor time shows the time even later.
constexpr std::int64_t agreement_s = 2;

std::int64_t seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

}  // namespace

std::vector<std::optional<std::int64_t>> clocks_ahead(Cluster& cluster, const Clock& clock) {
  std::vector<std::optional<std::int64_t>> ahead(cluster.placement().pool().size());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < ahead.size(); ++i) requests.push_back(Request::stats(i));
  const std::int64_t before = seconds(clock.wall());
  const std::vector<Reply> replies = cluster.execute(requests);
  const std::int64_t after = seconds(clock.wall());
  for (const Reply& reply : replies) {
    if (reply.failed()) continue;
    const auto time = statistic_number(reply.value, "time");
    if (!time) continue;
    const auto shown = static_cast<std::int64_t>(*time);
    const bool agrees = shown >= before - agreement_s && shown <= after + agreement_s;
    ahead[reply.server] = agrees ? 0 : shown < before ? shown - before : shown - after;
  }
  return ahead;
}

}  // namespace mcds::moving
