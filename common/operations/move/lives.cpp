#include "common/operations/move/lives.hpp"

#include "common/operations/expiry.hpp"

namespace mcds::moving {

namespace {

// Unset: it does not tell, or is a proxy.
std::vector<std::optional<Life>> look_at_lives(Cluster& cluster) {
  std::vector<std::optional<Life>> lives(cluster.placement().pool().size());
  for (const Reply& reply : statistics_of_keepers(cluster)) {
    const auto number = [&](std::string_view name) { return statistic_number(reply.value, name); };
    const auto time = number("time"), uptime = number("uptime");
    if (!time || !uptime) continue;
    lives[reply.server] = Life{*time - *uptime, number("cmd_flush").value_or(0),
                               static_cast<std::uint32_t>(number("pid").value_or(0))};
  }
  return lives;
}

enum class Side { old_server, new_server };

// Each side by itself: an old server need not hold what was copied.
std::vector<std::uint64_t> since(Ledger& ledger, Cluster& cluster, Side side) {
  const auto now = look_at_lives(cluster);
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const KeyHash server = hash_of((side == Side::old_server ? "old " : "new ") + cluster.address_of(i));
    // One that never told anything is a proxy, or of another make: copies there are believed in.
    const bool believed = side == Side::new_server && !ledger.knows(server);
    result.push_back(believed ? 0 : now[i] ? ledger.alive_since(server, *now[i]) : UINT64_MAX);
    if (now[i]) ledger.add_life(server, *now[i]);
  }
  return result;
}

}  // namespace

Since::Since(Ledger& ledger, Cluster& from, Cluster& to)
    : old_servers(since(ledger, from, Side::old_server)), new_servers(since(ledger, to, Side::new_server)) {
  ledger.write();
}

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
                         ServerLife::of(reply.value)};
  }
  return all;
}

std::vector<std::optional<ServerIncidents>> Incidents::look() const {
  const auto now = counters();
  std::vector<std::optional<ServerIncidents>> result(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!before_[i] || !now[i]) continue;
    const Counters &before = *before_[i], &after = *now[i];
    const bool restarted = before.life && !(after.life && after.life->is(*before.life));
    const bool reset = after.evicted < before.evicted;  // stats reset
    result[i] = {.evicted = after.evicted - (restarted || reset ? 0 : before.evicted),
                 .restarted = restarted,
                 .flushed = !restarted && after.flushes > before.flushes};
  }
  return result;
}

}  // namespace mcds::moving
