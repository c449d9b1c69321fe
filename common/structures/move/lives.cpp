#include "common/structures/move/lives.hpp"

#include "common/cluster/statistics.hpp"
#include "common/structures/move/expiry.hpp"

namespace mcds::moving {

namespace {

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

Since::Since(Ledger& ledger, Cluster& from, Cluster& to)
    : old_servers(since(ledger, from, Side::old_server)), new_servers(since(ledger, to, Side::new_server)) {
  ledger.write();
}

}  // namespace mcds::moving
