#include "common/operations/move/server_starts.hpp"

#include "common/cluster/distinct.hpp"
#include "common/operations/expiry.hpp"

namespace mcds::moving {

namespace {

// The clock of `oldest`, the time of the last flush, begins this long before that of `uptime`.
constexpr std::uint64_t clock_offset_s = 60;

// Returns the start and flushes of each server; unset if not reported, and for proxies.
std::vector<std::optional<RecordedStart>> read_server_starts(Cluster& cluster) {
  std::vector<std::optional<RecordedStart>> starts(cluster.placement().pool().size());
  std::vector<Request> asks;
  std::map<std::size_t, std::uint64_t> ages;  // in seconds
  for (const Reply& reply : statistics_of_keepers(cluster)) {
    const auto number = [&](std::string_view name) { return statistic_number(reply.value, name); };
    const auto time = number("time"), uptime = number("uptime");
    if (!time || !uptime) continue;
    starts[reply.server] =
        RecordedStart{.started = *time - *uptime,
                      .flushes = static_cast<std::uint32_t>(number("cmd_flush").value_or(0)),
                      .pid = static_cast<std::uint32_t>(number("pid").value_or(0))};
    ages[reply.server] = *uptime;
    asks.push_back(Request::stats(reply.server, "settings"));
  }
  for (const Reply& reply : cluster.execute(asks)) {
    const auto oldest = statistic_number(reply.value, "oldest");
    // A flush that is still to come counts when it has come.
    if (oldest && *oldest <= ages[reply.server] + clock_offset_s)
      starts[reply.server]->last_flush_s = static_cast<std::uint32_t>(*oldest);
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

OldAndNew different_servers(Cluster& old_ones, Cluster& new_ones) {
  const std::size_t old_count = old_ones.placement().pool().size();
  Statistics statistics;  // of the old servers, then of the new ones
  for (Reply& reply : statistics_of_keepers(old_ones)) statistics[reply.server] = std::move(reply.value);
  for (Reply& reply : statistics_of_keepers(new_ones))
    statistics[old_count + reply.server] = std::move(reply.value);
  std::erase_if(statistics, [](const auto& one) { return !ServerStart::of(one.second); });
  const auto ask = [&](const std::vector<Request>& requests) {
    std::vector<Reply> replies;
    for (Request request : requests) {
      const bool is_old = *request.server < old_count;
      const std::size_t first = is_old ? 0 : old_count;
      *request.server -= first;
      replies.push_back((is_old ? old_ones : new_ones).execute(request));
      replies.back().server += first;
    }
    return replies;
  };
  OldAndNew different;
  for (const auto& [one, lines] : statistics) {
    for (auto other = statistics.lower_bound(old_count); one < old_count && other != statistics.end();
         ++other)
      different.emplace(one, other->first - old_count);
  }
  const auto opens_none = [](const std::vector<Request>&) { return std::vector<Reply>(); };
  for (const auto& [one, other] : seen_as_one(statistics, opens_none, ask))
    different.erase({one, other - old_count});
  return different;
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
