#include "common/structures/move/incidents.hpp"

#include "common/cluster/statistics.hpp"
#include "common/structures/move/expiry.hpp"

namespace mcds::moving {

Incidents::Incidents(Cluster& cluster) : cluster_(cluster), before_(counters()) {}

std::vector<std::optional<Incidents::Counters>> Incidents::counters() const {
  std::vector<std::optional<Counters>> all(cluster_.placement().pool().size());
  for (const Reply& reply : statistics_of_keepers(cluster_)) {
    const auto evictions = statistic_number(reply.value, "evictions");
    if (!evictions) continue;
    const auto number = [&](std::string_view name) {
      return statistic_number(reply.value, name).value_or(0);
    };
    // A page that is given to larger or smaller items takes those that are left on it along, uncounted by the
    // first.
    all[reply.server] = {*evictions + number("slab_reassign_evictions_nomem"), number("cmd_flush"),
                         number("pid"), number("uptime")};
  }
  return all;
}

std::vector<std::optional<ServerIncidents>> Incidents::look() const {
  const auto now = counters();
  std::vector<std::optional<ServerIncidents>> result(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!before_[i] || !now[i]) continue;
    const Counters &before = *before_[i], &after = *now[i];
    const bool restarted = after.pid != before.pid || after.uptime_s < before.uptime_s;
    const bool reset = after.evicted < before.evicted;  // stats reset
    result[i] = {.evicted = after.evicted - (restarted || reset ? 0 : before.evicted),
                 .restarted = restarted,
                 .flushed = !restarted && after.flushes > before.flushes};
  }
  return result;
}

}  // namespace mcds::moving
