#include "common/operations/expiry.hpp"

#include "common/cluster/statistics.hpp"

namespace mcds::moving {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A server that is short of processor time reports an older time.
constexpr Duration agreement = seconds(2);
constexpr Duration slow_look = milliseconds(200);
constexpr int max_checks = 3;

std::int64_t rounded(Duration time) {
  return std::chrono::round<seconds>(time).count();
}

bool is_of_keeper(const Reply& statistics) {
  return !statistics.failed() && statistic_number(statistics.value, "curr_items") &&
         !statistic(statistics.value, "proxy_conn_requests");
}

}  // namespace

ClockLook ClockLook::of(std::int64_t shown, WallTime before, WallTime after) {
  const Duration ours = before.time_since_epoch() + (after - before) / 2;
  return {seconds(shown) + milliseconds(500) - ours, (after - before) / 2};
}

std::int64_t seconds_ahead(const ClockLook& from, const ClockLook& to) {
  const Duration ahead = to.ahead - from.ahead;
  return std::chrono::abs(ahead) < agreement + from.doubt + to.doubt ? 0 : rounded(ahead);
}

bool agrees(const SeenEnd& seen, const ClockLook& clock) {
  if (!seen.ttl) return true;
  if (seen.ttl->count() < 0 || seen.listed == 0) return seen.ttl->count() < 0 && seen.listed == 0;
  const Duration read_at = seconds(seen.listed) - *seen.ttl;
  const Duration slack = agreement + clock.doubt;
  return read_at > seen.asked.time_since_epoch() + clock.ahead - slack &&
         read_at < seen.answered.time_since_epoch() + clock.ahead + slack;
}

void read_touched_again(Cluster& cluster, const Clocks& clocks, std::span<SpilledRecord* const> items,
                        std::vector<Reply>& replies, WallTime asked, WallTime answered) {
  std::map<std::size_t, std::vector<std::size_t>> touched;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const SeenEnd seen{items[i]->expires_s, replies[i].age.ttl, asked, answered};
    if (replies[i].outcome == Outcome::hit && !agrees(seen, clocks[items[i]->from].value_or(ClockLook{})))
      touched[items[i]->from].push_back(i);
  }
  for (const auto& [server, places] : touched) {
    std::vector<Request> requests{Request::stats(server)};
    for (const std::size_t place : places) requests.push_back(Request::probe(items[place]->key, server));
    std::vector<Reply> again = cluster.execute(requests);
    const auto shown = is_of_keeper(again[0]) ? statistic_number(again[0].value, "time") : std::nullopt;
    for (std::size_t k = 0; k < places.size(); ++k) {
      Reply& reply = replies[places[k]] = std::move(again[k + 1]);
      if (reply.outcome != Outcome::hit || !reply.age.ttl) continue;
      // The sum of the clock and the ttl is exact, even if the clock is late.
      const auto ttl = reply.age.ttl->count();
      if (ttl < 0) items[places[k]]->expires_s = 0;
      if (ttl >= 0 && shown)
        items[places[k]]->expires_s = static_cast<std::uint32_t>(static_cast<std::int64_t>(*shown) + ttl);
    }
  }
}

std::vector<Reply> statistics_of_keepers(Cluster& cluster) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < cluster.placement().pool().size(); ++i) requests.push_back(Request::stats(i));
  std::vector<Reply> replies = cluster.execute(requests);
  std::erase_if(replies, [](const Reply& reply) { return !is_of_keeper(reply); });
  return replies;
}

Clocks read_clocks(Cluster& cluster, const Clock& clock) {
  Clocks clocks(cluster.placement().pool().size());
  for (int look = 0; look < max_checks; ++look) {
    const WallTime before = clock.wall();
    const std::vector<Reply> replies = statistics_of_keepers(cluster);
    const WallTime after = clock.wall();
    for (const Reply& reply : replies) {
      const auto time = statistic_number(reply.value, "time");
      if (!time || *time > UINT32_MAX) continue;
      const ClockLook seen = ClockLook::of(static_cast<std::int64_t>(*time), before, after);
      std::optional<ClockLook>& best = clocks[reply.server];
      if (!best || seen.doubt < best->doubt) best = seen;
    }
    if (after - before < slow_look) break;
  }
  return clocks;
}

}  // namespace mcds::moving
