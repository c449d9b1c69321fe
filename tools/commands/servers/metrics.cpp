// Implements mcds servers -o openmetrics, with memcached_exporter's names and types, and a server label.
#include "tools/cli/metrics.hpp"

#include <array>

#include "tools/commands/servers/condition.hpp"

namespace mcds {

namespace {

struct Metric {
  const char* stat;
  const char* metric;  // without memcached_
  const char* help;
};

constexpr std::array figures_of_a_server{
    Metric{"uptime", "uptime_seconds", "Number of seconds since the server started."},
    Metric{"time", "time_seconds", "UNIX time according to the server."},
    Metric{"rusage_user", "process_user_cpu_seconds_total", "User time of the process."},
    Metric{"rusage_system", "process_system_cpu_seconds_total", "System time of the process."},
    Metric{"bytes_read", "read_bytes_total", "Bytes read from the network."},
    Metric{"bytes_written", "written_bytes_total", "Bytes sent to the network."},
    Metric{"curr_connections", "current_connections", "Open connections."},
    Metric{"max_connections", "max_connections", "Connections allowed."},
    Metric{"total_connections", "connections_total", "Connections opened since the start."},
    Metric{"rejected_connections", "connections_rejected_total",
           "Connections rejected because all were in use."},
    Metric{"conn_yields", "connections_yielded_total", "Connections that gave way to others (-R)."},
    Metric{"listen_disabled_num", "connections_listener_disabled_total",
           "Times that all connections were in use."},
    Metric{"accepting_conns", "accepting_connections", "Whether connections are accepted."},
    Metric{"bytes", "current_bytes", "Bytes used to store items."},
    Metric{"limit_maxbytes", "limit_bytes", "Bytes allowed for items."},
    Metric{"curr_items", "current_items", "Items stored now."},
    Metric{"total_items", "items_total", "Items stored since the start."},
    Metric{"evictions", "items_evicted_total", "Items evicted for lack of memory."},
    Metric{"reclaimed", "items_reclaimed_total", "Items stored in the memory of expired ones."},
    Metric{"store_too_large", "item_too_large_total", "Items refused as too large."},
    Metric{"store_no_memory", "item_no_memory_total", "Items refused for lack of memory."},
    Metric{"direct_reclaims", "direct_reclaims_total",
           "Times that a store had to reclaim or evict by itself."},
    Metric{"lru_crawler_starts", "lru_crawler_starts_total", "Times that a crawler was started."},
    Metric{"crawler_reclaimed", "lru_crawler_reclaimed_total", "Items freed by the crawler."},
    Metric{"crawler_items_checked", "lru_crawler_items_checked_total", "Items examined by the crawler."},
};

// The values of a slab class: `1:chunk_size` of `stats slabs`, `items:1:number` of `stats items`.
constexpr std::array figures_of_a_slab{
    Metric{"chunk_size", "chunk_size_bytes", "Memory of each chunk."},
    Metric{"chunks_per_page", "chunks_per_page", "Chunks in a page."},
    Metric{"total_pages", "current_pages", "Pages of this class."},
    Metric{"total_chunks", "current_chunks", "Chunks of this class."},
    Metric{"used_chunks", "chunks_used", "Chunks that hold items."},
    Metric{"free_chunks", "chunks_free", "Chunks that hold no item."},
    Metric{"free_chunks_end", "chunks_free_end", "Free chunks at the end of the last page."},
    Metric{"mem_requested", "mem_requested_bytes", "Memory that the items need."},
    Metric{"number", "current_items", "Items stored now."},
    Metric{"age", "items_age_seconds", "Time since the oldest item was used."},
    Metric{"evicted", "items_evicted_total", "Items evicted for lack of memory."},
    Metric{"evicted_nonzero", "items_evicted_nonzero_total", "Items with a ttl that were evicted."},
    Metric{"evicted_time", "items_evicted_time_seconds", "Time since the last evicted item was used."},
    Metric{"evicted_unfetched", "items_evicted_unfetched_total", "Items evicted before they were read."},
    Metric{"expired_unfetched", "items_expired_unfetched_total", "Items that expired before they were read."},
    Metric{"outofmemory", "items_outofmemory_total", "Stores refused for lack of memory."},
    Metric{"reclaimed", "items_reclaimed_total", "Items stored in the memory of expired ones."},
    Metric{"tailrepairs", "items_tailrepairs_total", "Items freed that were in use too long."},
};

void add_slab_figures(Metrics& metrics, const std::string& server, std::string_view stats) {
  for_each_statistic(stats, [&](std::string_view name, std::string_view value) {
    if (name.starts_with("items:")) name.remove_prefix(6);
    const std::string slab(name.substr(0, name.find(':')));
    if (slab.size() == name.size()) return;  // a value of the whole server
    const auto metric = std::ranges::find(figures_of_a_slab, name.substr(slab.size() + 1),
                                          [](const Metric& one) { return std::string_view(one.stat); });
    if (metric != figures_of_a_slab.end() && parse_u64(slab) && parse_u64(value))
      metrics.add(std::string("memcached_slab_") + metric->metric, metric->help,
                  {{"server", server}, {"slab", slab}}, std::string(value));
  });
}

// Returns the number of sets without cas, which cmd_set also counts.
std::optional<std::uint64_t> plain_sets(std::string_view stats) {
  const auto sets = statistic_number(stats, "cmd_set");
  std::uint64_t cas = 0;
  for (const char* name : {"cas_hits", "cas_misses", "cas_badval"})
    cas += statistic_number(stats, name).value_or(0);
  if (!sets) return std::nullopt;
  return *sets < cas ? 0 : *sets - cas;
}

void add_statistics(Metrics& metrics, const std::string& server, std::string_view stats) {
  for (const Metric& metric : figures_of_a_server) {
    const auto text = statistic(stats, metric.stat);
    const auto value = text ? parse_double(*text) : std::nullopt;
    if (value)
      metrics.add(std::string("memcached_") + metric.metric, metric.help, {{"server", server}},
                  json_real(*value));
  }
  const auto add = [&](const char* command, const char* status, const std::optional<std::uint64_t>& count) {
    if (count)
      metrics.add("memcached_commands_total", "Requests by command and status.",
                  {{"server", server}, {"command", command}, {"status", status}}, std::to_string(*count));
  };
  for (const char* command : {"get", "delete", "incr", "decr", "cas", "touch"}) {
    add(command, "hit", statistic_number(stats, std::string(command) + "_hits"));
    add(command, "miss", statistic_number(stats, std::string(command) + "_misses"));
  }
  add("cas", "badval", statistic_number(stats, "cas_badval"));
  add("flush", "hit", statistic_number(stats, "cmd_flush"));
  add("set", "hit", plain_sets(stats));
}

}  // namespace

std::string server_metrics(const Pool& pool, const std::vector<Condition>& conditions,
                           const std::map<std::size_t, WallTime>& certificate_ends) {
  Metrics metrics;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    const Condition& condition = conditions[i];
    const std::string server = pool[i].address();
    const bool up = condition.up && !condition.refused;
    metrics.add("memcached_up", "Whether the server gives its statistics.", {{"server", server}},
                up ? "1" : "0");
    if (!condition.version.empty())
      metrics.add("memcached_version", "The version of the server.",
                  {{"server", server}, {"version", condition.version}}, "1");
    if (condition.round_trip)
      metrics.add("mcds_server_rtt_seconds", "One round trip.", {{"server", server}},
                  json_real(std::chrono::duration<double>(*condition.round_trip).count()));
    if (const auto end = certificate_ends.find(i); end != certificate_ends.end())
      metrics.add("mcds_server_certificate_end_time_seconds", "UNIX time at which the certificate ends.",
                  {{"server", server}},
                  json_real(std::chrono::duration<double>(end->second.time_since_epoch()).count()));
    if (!condition.stats.empty()) add_statistics(metrics, server, condition.stats.front());
    for (std::size_t k = 1; k < condition.stats.size(); ++k)
      add_slab_figures(metrics, server, condition.stats[k]);
  }
  return metrics.text();
}

}  // namespace mcds
