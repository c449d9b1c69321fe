#include "common/operations/move/server_starts.hpp"

#include "common/operations/expiry.hpp"

namespace mcds::moving {

namespace {

// Returns the start and flushes of each server; unset if not reported, and for proxies.
std::vector<std::optional<RecordedStart>> read_server_starts(Cluster& cluster) {
  std::vector<std::optional<RecordedStart>> starts(cluster.placement().pool().size());
  for (const Reply& reply : statistics_of_keepers(cluster)) {
    const auto number = [&](std::string_view name) { return statistic_number(reply.value, name); };
    const auto time = number("time"), uptime = number("uptime");
    if (!time || !uptime) continue;
    starts[reply.server] = RecordedStart{*time - *uptime, number("cmd_flush").value_or(0),
                                         static_cast<std::uint32_t>(number("pid").value_or(0))};
  }
  return starts;
}

enum class Side { old_server, new_server };

// Each side has its own records, because an old server need not hold the copies.
std::vector<std::uint64_t> valid_from(MoveJournal& move_journal, Cluster& cluster, Side side) {
  const auto now = read_server_starts(cluster);
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const KeyHash server = hash_of((side == Side::old_server ? "old " : "new ") + cluster.address_of(i));
    // A server without any record is a proxy or another product; its copies are trusted.
    const bool believed = side == Side::new_server && !move_journal.knows(server);
    result.push_back(believed ? 0 : now[i] ? move_journal.alive_since(server, *now[i]) : UINT64_MAX);
    if (now[i]) move_journal.record_start(server, *now[i]);
  }
  return result;
}

}  // namespace

ValidFrom::ValidFrom(MoveJournal& move_journal, Cluster& from, Cluster& to)
    : old_servers(valid_from(move_journal, from, Side::old_server)),
      new_servers(valid_from(move_journal, to, Side::new_server)) {
  move_journal.write();
}

ServerRestarts::ServerRestarts(Cluster& cluster) : cluster_(cluster), before_(counters()) {}

std::vector<std::optional<ServerRestarts::Counters>> ServerRestarts::counters() const {
  std::vector<std::optional<Counters>> all(cluster_.placement().pool().size());
  for (const Reply& reply : statistics_of_keepers(cluster_)) {
    const auto evictions = statistic_number(reply.value, "evictions");
    if (!evictions) continue;
    const auto number = [&](std::string_view name) {
      return statistic_number(reply.value, name).value_or(0);
    };
    // Items left on a page that is reassigned to another slab class are lost; `evictions` omits them.
    all[reply.server] = {*evictions + number("slab_reassign_evictions_nomem"), number("cmd_flush"),
                         ServerStart::of(reply.value)};
  }
  return all;
}

std::vector<std::optional<ServerEvents>> ServerRestarts::look() const {
  const auto now = counters();
  std::vector<std::optional<ServerEvents>> result(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!before_[i] || !now[i]) continue;
    const Counters &before = *before_[i], &after = *now[i];
    const bool restarted = before.start && !(after.start && after.start->is(*before.start));
    const bool reset = after.evicted < before.evicted;  // by `stats reset`
    result[i] = {.evicted = after.evicted - (restarted || reset ? 0 : before.evicted),
                 .restarted = restarted,
                 .flushed = !restarted && after.flushes > before.flushes};
  }
  return result;
}

}  // namespace mcds::moving
