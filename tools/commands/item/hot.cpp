// Implements mcds item hot: shows which keys are read, missed, stored and evicted now.

#include "tools/commands/item/hot.hpp"

#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t usual_count = 20;
constexpr auto min_watch = std::chrono::milliseconds(100);
constexpr double poor_coverage = 0.9;

void check(Session& session, const ItemOptions& options) {
  if (options.count == 0) throw InvalidInput("-n must be at least 1");
  if (options.watched < min_watch) throw InvalidInput("--for must be at least 100ms");
  if (session.clock().steady() + options.watched > session.deadline())
    throw InvalidInput("--for must be shorter than --deadline");
}

class HotWatch {
 public:
  HotWatch(Session& session, const ItemOptions& options) : session_(session), options_(options) {
    const Pool& pool = session.placement()->pool();
    const auto on = server_of(session, options);
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (!on || *on == i) servers_.push_back(i);
    }
    counts_.resize(pool.size());
    seconds_.resize(pool.size());
    reports_deletes_.resize(pool.size());
    proxies_.resize(pool.size());
  }

  ExitStatus run() {
    Pause pause(session_);
    const auto before = dropped();
    const std::vector<WatchedServer> results = watch(pause);
    const auto after = dropped();
    for (std::size_t i = 0; i < results.size(); ++i) {
      seconds_[servers_[i]] = std::chrono::duration<double>(results[i].watched).count();
      reports_deletes_[servers_[i]] = results[i].deletions;
    }
    print_keys();
    ExitStatus status = ExitStatus::ok;
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::optional<std::uint64_t> lost;
      const auto &was = before[servers_[i]], &is = after[servers_[i]];
      if (was && is && *is >= *was) lost = *is - *was;  // not after a restart or `stats reset`
      status = worse(status, print_server(servers_[i], results[i], lost));
    }
    if (keys_.uncounted() > 0) {
      session_.output().warning("more keys were used than can be counted; a key may have had up to " +
                                std::to_string(keys_.uncounted()) + " more events than shown");
    }
    return status;
  }

 private:
  std::vector<WatchedServer> watch(Pause& pause) {
    auto reading = LineStreamOptions::of(session_.connect_options());
    reading.longest = options_.watched;
    Pool pool;
    for (const std::size_t server : servers_) pool.push_back(session_.placement()->pool()[server]);
    Progress progress(session_.clock(), "events",
                      std::chrono::duration_cast<std::chrono::milliseconds>(options_.watched).count());
    const SteadyTime started = session_.clock().steady();
    std::uint64_t events = 0;
    return watch_keys(
        pool, reading, session_.clock(),
        [&](const KeyEvent& event) {
          ++events;
          take(event);
        },
        [&] {
          const auto elapsed =
              std::chrono::duration_cast<std::chrono::milliseconds>(session_.clock().steady() - started);
          progress.reach(events, static_cast<std::uint64_t>(elapsed.count()));
          return pause.wait(Duration::zero());
        });
  }

  void take(const KeyEvent& event) {
    const std::string& prefix = session_.key_prefix();
    if (!event.key.starts_with(prefix)) return;
    const std::string_view name = event.key.substr(prefix.size());
    if (options_.selected.prefix && !name.starts_with(*options_.selected.prefix)) return;
    KeyEvent placed = event;
    placed.server = servers_[event.server];
    counts_[placed.server].add(event.what);
    keys_.add(placed, name);
  }

  // Returns how many events each server has dropped so far for all its watchers; nullopt: not reported.
  std::vector<std::optional<std::uint64_t>> dropped() {
    const HalfTime half(session_);
    std::vector<std::optional<std::uint64_t>> result(counts_.size());
    for (const Reply& reply : session_.cluster().execute(requests_for_stats(session_, options_))) {
      if (reply.failed()) continue;
      const auto worker = statistic_number(reply.value, "log_worker_dropped");
      const auto watcher = statistic_number(reply.value, "log_watcher_skipped");
      if (worker && watcher) result[reply.server] = *worker + *watcher;
      proxies_[reply.server] = statistic(reply.value, "proxy_conn_requests").has_value();
    }
    return result;
  }

  void add_rates(JsonObject& line, const KeyCounts& counts, std::size_t server) const {
    const double seconds = seconds_[server];
    for (std::size_t i = 0; i < key_metrics.size(); ++i) {
      const auto metric = static_cast<KeyMetric>(i);
      const double rate = seconds > 0 ? static_cast<double>(counts.of(metric)) / seconds : 0;
      const bool known = metric != KeyMetric::deletes || reports_deletes_[server];
      line.raw(std::string(key_metrics[i]) + "_per_s", known ? format_fixed(rate, 1) : "null");
    }
    if (counts.refused() == 0) return;
    JsonObject causes;
    if (counts.too_large > 0) causes.number("too_large", counts.too_large);
    if (counts.no_memory > 0) causes.number("no_memory", counts.no_memory);
    line.object("refused", causes);
  }

  void print_keys() {
    const auto order = std::ranges::find(key_metrics, options_.sort.value_or("events"));
    session_.output().keep_column(std::string(*order) + "_per_s");
    for (const HotKey& hot : keys_.hottest(static_cast<KeyMetric>(order - key_metrics.begin()),
                                           options_.count.value_or(usual_count))) {
      JsonObject line("key", hot.key);
      add_rates(line, hot.counts, hot.server);
      line.number_or_null("size_bytes", hot.size_bytes).bytes("server", session_.server_address(hot.server));
      session_.output().answer(line, hot.key);
    }
  }

  ExitStatus print_server(std::size_t server, const WatchedServer& result,
                          const std::optional<std::uint64_t>& lost) {
    const std::string& address = session_.server_address(server);
    ExitStatus status = ExitStatus::ok;
    if (result.failure == nullptr && result.events == 0 && proxies_[server]) {
      session_.output().error(Failure(
          ErrorCode::refused,
          "the server is a proxy, which does not log the keys of its servers; give those servers", address));
      return ExitStatus::refused;
    }
    if (result.failure != nullptr) {
      const Failure failure = unwatched(result, address);
      session_.output().error(failure);
      status = status_of(failure.code());
      if (result.watched == Duration::zero()) return status;
    }
    const std::uint64_t dropped = lost.value_or(result.skipped);
    const double seen = static_cast<double>(result.events), all = seen + static_cast<double>(dropped);
    if (all > 0 && seen / all < poor_coverage) {
      session_.output().warning(address + " reported only " + format_percent(seen / all) +
                                " of its events, because its log buffer was full; treat the counts as a "
                                "sample, or raise -o worker_logbuf_size and watcher_logbuf_size there");
    }
    JsonObject line("server", address);
    add_rates(line, counts_[server], server);
    line.raw("coverage", all > 0 ? format_fixed(seen / all, 4) : "null");
    line.number("dropped", dropped).raw("watched_s", format_fixed(seconds_[server], 3));
    session_.output().detail(line);
    return status;
  }

  Session& session_;
  const ItemOptions& options_;
  std::vector<std::size_t> servers_;  // the watched servers
  HotKeys keys_;
  // Values per server of the pool.
  std::vector<KeyCounts> counts_;
  std::vector<double> seconds_;
  std::vector<bool> reports_deletes_;
  std::vector<bool> proxies_;  // servers that are memcached's own proxy
};

}  // namespace

ExitStatus item_hot(Session& session, const ItemOptions& options) {
  check(session, options);
  return HotWatch(session, options).run();
}

Failure unwatched(const WatchedServer& result, const std::string& address) {
  return {error_code_of_silence(*result.failure),
          "the server's keys cannot be watched: " + result.failure->message, address};
}

void KeyCounts::add(KeyEvent::What what) {
  using What = KeyEvent::What;
  gets += what == What::found || what == What::missed ? 1 : 0;
  misses += what == What::missed ? 1 : 0;
  stores += what == What::stored ? 1 : 0;
  too_large += what == What::too_large ? 1 : 0;
  no_memory += what == What::no_memory ? 1 : 0;
  deletes += what == What::deleted ? 1 : 0;
  evictions += what == What::evicted ? 1 : 0;
}

void HotKeys::add(const KeyEvent& event, std::string_view name) {
  using What = KeyEvent::What;
  const auto server = static_cast<std::uint32_t>(event.server);
  id_.resize(sizeof server);
  std::memcpy(id_.data(), &server, sizeof server);
  id_ += name;
  auto found = activities_.find(std::string_view(id_));
  if (found == activities_.end()) {
    if (activities_.size() >= 2 * kept_) forget_the_least();
    found = activities_.emplace(id_, Activity{}).first;
  }
  found->second.counts.add(event.what);
  // The event of a missing or refused key has a size of 0.
  const bool has_size =
      event.what != What::missed && event.what != What::too_large && event.what != What::no_memory;
  if (has_size && event.size_bytes) found->second.size_bytes = event.size_bytes;
}

void HotKeys::forget_the_least() {
  std::vector<std::uint64_t> totals;
  totals.reserve(activities_.size());
  for (const auto& [id, activity] : activities_) totals.push_back(activity.counts.events());
  const auto middle = totals.begin() + static_cast<std::ptrdiff_t>(totals.size() - kept_);
  std::nth_element(totals.begin(), middle, totals.end());
  // Some of the keys with the lowest kept count must be dropped too.
  std::size_t surplus = activities_.size() - kept_;
  const std::uint64_t least = *middle;
  std::erase_if(activities_, [&](const auto& entry) {
    if (surplus == 0 || entry.second.counts.events() > least) return false;
    --surplus;
    return true;
  });
  uncounted_ += least;
}

std::vector<HotKey> HotKeys::hottest(KeyMetric order, std::size_t count) const {
  struct Ranked {
    std::uint64_t metric;
    const std::string* id;
    const Activity* activity;
  };
  std::vector<Ranked> ranked;
  for (const auto& [id, activity] : activities_) {
    if (const std::uint64_t own = activity.counts.of(order); own > 0) ranked.push_back({own, &id, &activity});
  }
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(count, ranked.size()));
  std::partial_sort(ranked.begin(), end, ranked.end(), [](const Ranked& one, const Ranked& other) {
    return one.metric != other.metric ? one.metric > other.metric : *one.id < *other.id;
  });
  std::vector<HotKey> keys;
  for (auto at = ranked.begin(); at != end; ++at) {
    std::uint32_t server = 0;
    std::memcpy(&server, at->id->data(), sizeof server);
    keys.push_back({at->id->substr(sizeof server), server, at->activity->counts, at->activity->size_bytes});
  }
  return keys;
}

}  // namespace mcds
