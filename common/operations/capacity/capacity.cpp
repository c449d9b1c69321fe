#include "common/operations/capacity/capacity.hpp"

#include "common/base/units.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/cluster/keys/watch.hpp"
#include "common/cluster/statistics.hpp"
#include "common/operations/capacity/reuse.hpp"
#include "common/operations/doctor/examination.hpp"
#include "common/placement/key_hash.hpp"

namespace mcds::capacity {

namespace {

using doctor::StatisticsReply;

constexpr std::uint64_t max_sampled = 200'000;  // keys of a server
constexpr std::uint64_t min_gets = 1000;        // the minimum for a ratio
constexpr std::uint64_t header_bytes = 48, cas_bytes = 8, line_end_bytes = 2;
constexpr std::uint64_t page_bytes_of_slabs = 1 << 20;

// Statistics at one time.
struct Moment {
  StatisticsReply stats, slabs;
  SteadyTime at{};
};

std::optional<double> rise(const Moment& before, const Moment& now, const char* name) {
  const auto was = before.stats.real(name), is = now.stats.real(name);
  if (!was || !is || *is < *was) return std::nullopt;
  return *is - *was;
}

std::optional<double> requests_in(const Moment& before, const Moment& now) {
  const auto gets = rise(before, now, "cmd_get"), sets = rise(before, now, "cmd_set");
  if (!gets || !sets) return std::nullopt;
  return *gets + *sets + rise(before, now, "cmd_touch").value_or(0);
}

// Returns the processor time per request.
std::optional<double> price_in(const Moment& before, const Moment& now) {
  const auto requests = requests_in(before, now);
  const auto user = rise(before, now, "rusage_user"), system = rise(before, now, "rusage_system");
  if (!requests || *requests < min_gets || !user || !system) return std::nullopt;
  return (*user + *system) / *requests;
}

// The keys of one server, from its list and its events.
class KeysOfServer {
 public:
  KeysOfServer(const Moment& begin, const StatisticsReply& settings, double max_factor)
      : chunks_(settings.real("chunk_size").value_or(0), settings.real("growth_factor").value_or(0),
                settings.real("slab_chunk_max").value_or(0)),
        has_cas_(settings.on("cas_enabled") != false) {
    const std::uint64_t items = begin.stats.number("curr_items").value_or(0);
    rate_ = items > max_sampled ? static_cast<double>(max_sampled) / static_cast<double>(items) : 1;
    sample_ = rate_;
    const double limit = static_cast<double>(begin.stats.number("limit_maxbytes").value_or(0));
    const auto pages = static_cast<double>(begin.slabs.number("total_malloced").value_or(0));
    // A full server holds what its list adds up to; others can hold what their memory allows.
    is_full_ = pages + static_cast<double>(page_bytes_of_slabs) >= limit;
    limit_ = limit;
    distances_ = std::make_unique<ReuseDistances>(limit * max_factor * 1.1 * rate_);
  }

  void list(const LiveKey& key) {
    const std::uint64_t hash = key_hash::xxh3(key.key);
    const std::uint64_t chunk = chunks_.chunk_for(key.size_bytes);
    listed_bytes_ += chunk;
    // Limit the sample, in case the server lists more keys than it counted.
    if (!is_sampled(hash) || listed_.size() >= 2 * max_sampled) return;
    listed_.push_back(
        {key.last_accessed_at, hash, chunk, key.expires_at < 0 ? ReuseDistances::never : key.expires_at});
  }

  void begin() {
    std::ranges::stable_sort(listed_, std::less{}, &Listed::accessed_at);
    for (const Listed& one : listed_) distances_->seed(one.hash, one.bytes, one.expires_at);
    // Hashes are not perfectly even, so use the sample's actual share of the bytes.
    if (listed_bytes_ > 0 && rate_ < 1) rate_ = distances_->bytes() / static_cast<double>(listed_bytes_);
    listed_ = {};
  }

  void take(const KeyEvent& event, std::int64_t now) {
    const std::uint64_t hash = key_hash::xxh3(event.key);
    if (!is_sampled(hash)) return;
    using What = KeyEvent::What;
    std::uint64_t bytes = 0;
    if (event.size_bytes && event.what != What::missed)
      bytes = chunks_.chunk_for(header_bytes + (has_cas_ ? cas_bytes : 0) + event.key.size() + 1 +
                                *event.size_bytes + line_end_bytes);
    if (event.what == What::found || event.what == What::missed) distances_->get(hash, bytes, now);
    if (event.what == What::deleted) distances_->remove(hash);
    if (event.what != What::stored) return;
    const std::uint64_t ttl = event.ttl_s.value_or(0);
    distances_->store(hash, bytes, ttl == 0 ? ReuseDistances::never : now + static_cast<std::int64_t>(ttl),
                      now);
  }

  void finish() { distances_->finish(); }

  Estimate at(double factor) const {
    const double whole = is_full_ && listed_bytes_ > 0 ? static_cast<double>(listed_bytes_) : limit_;
    const auto ratio = distances_->hit_ratio(whole * factor * rate_);
    return {factor, ratio.value, ratio.low, ratio.high};
  }
  bool is_full() const { return is_full_; }
  std::uint64_t gets() const { return distances_->gets(); }

 private:
  struct Listed {
    std::int64_t accessed_at;
    std::uint64_t hash, bytes;
    std::int64_t expires_at;
  };
  bool is_sampled(std::uint64_t hash) const {
    return rate_ >= 1 || static_cast<double>(hash >> 32) < sample_ * 4294967296.0;
  }
  ChunkSizes chunks_;
  bool has_cas_;
  double rate_ = 1, limit_ = 0;
  double sample_ = 1;  // the rate when the list began
  bool is_full_ = false;
  std::uint64_t listed_bytes_ = 0;
  std::vector<Listed> listed_;
  std::unique_ptr<ReuseDistances> distances_;
};

void note_error(PerServer& result, const char* at_most) {
  const double off = std::abs(result.model_error);
  if (off > 0.05)
    result.notes.push_back("at the current size the model is off by " + std::string(at_most) +
                           format_fixed(off, 3) + ", and was corrected by that");
}

class Measurement {
 public:
  Measurement(std::shared_ptr<const Placement> placement, const Clock& clock, Options options)
      : placement_(std::move(placement)),
        clock_(clock),
        options_(std::move(options)),
        cluster_(connect(placement_, options_.connecting)),
        results_(placement_->pool().size()),
        settings_(results_.size()),
        keys_(results_.size()) {}

  std::vector<PerServer> run() {
    const std::vector<Moment> begin = look(true);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      results_[i].memory_bytes = begin[i].stats.number("limit_maxbytes").value_or(0);
      if (results_[i].failure.empty() && results_[i].memory_bytes == 0)
        results_[i].failure = "the server does not report its memory; is it memcached?";
    }
    if (measure_cost()) {
      list_keys();
      watch();
    }
    for (PerServer& result : results_) {
      if (result.failure.empty() && result.estimates.empty())
        result.failure = "interrupted before there was an estimate";
    }
    return std::move(results_);
  }

 private:
  const Pool& pool() const { return placement_->pool(); }

  std::vector<std::size_t> those_left() const {
    std::vector<std::size_t> servers;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].failure.empty()) servers.push_back(i);
    }
    return servers;
  }

  std::vector<Moment> look(bool settings = false) {
    std::vector<Moment> moments(results_.size());
    std::vector<Request> requests;
    for (const std::size_t server : those_left()) {
      requests.push_back(Request::stats(server));
      requests.push_back(Request::stats(server, "slabs"));
      if (settings) requests.push_back(Request::stats(server, "settings"));
    }
    const std::vector<Reply> replies = requests.empty() ? std::vector<Reply>() : cluster_->execute(requests);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      PerServer& result = results_[replies[i].server];
      Moment& moment = moments[replies[i].server];
      if (replies[i].failed() && result.failure.empty()) result.failure = replies[i].failure->message;
      if (replies[i].failed()) continue;
      moment.at = clock_.steady();
      if (requests[i].key.empty()) moment.stats = StatisticsReply(replies[i].value);
      if (requests[i].key == "slabs") moment.slabs = StatisticsReply(replies[i].value);
      if (requests[i].key == "settings") settings_[replies[i].server] = StatisticsReply(replies[i].value);
    }
    return moments;
  }

  // Watches all remaining servers concurrently.
  template <typename Take>
  std::vector<std::size_t> watch_for(Duration longest, const Take& take) {
    const std::vector<std::size_t> servers = those_left();
    Pool part;
    for (const std::size_t server : servers) part.push_back(pool()[server]);
    auto reading = LineStreamOptions::of(options_.connecting);
    reading.longest = longest;
    const auto watched = watch_keys(
        part, reading, clock_, [&](const KeyEvent& event) { take(servers[event.server], event); },
        [&] { return goes_on_ = options_.wait(Duration::zero()); });
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].failure != nullptr)
        results_[servers[i]].failure = "the server's keys cannot be watched: " + watched[i].failure->message;
    }
    return servers;
  }

  // Measures the processor time per request without, with and without a watcher.
  bool measure_cost() {
    const auto first = look();
    if (!options_.wait(options_.measured)) return false;
    const auto second = look();
    watch_for(options_.measured, [](std::size_t, const KeyEvent&) {});
    const auto third = look();
    if (!goes_on_ || !options_.wait(options_.measured)) return false;
    const auto fourth = look();
    for (const std::size_t server : those_left()) {
      const auto off = price_in(first[server], second[server]), on = price_in(second[server], third[server]),
                 again = price_in(third[server], fourth[server]);
      PerServer& result = results_[server];
      if (!off || !on || !again || std::max(*off, *again) <= 0) {
        result.notes.emplace_back("too few requests to tell what watching costs");
        continue;
      }
      // Use the higher of the two without a watcher, so that other load does not count as our cost.
      result.cost = *on / std::max(*off, *again) - 1;
      if (*result.cost > options_.max_cost)
        stop(result, "watching makes each request " + format_percent(*result.cost) +
                         " more expensive, and at most " + format_percent(options_.max_cost) +
                         " is allowed (--max-cost)");
      else
        judge_dropped(result, second[server], third[server]);
    }
    return true;
  }

  static void stop(PerServer& result, const std::string& why) { result.failure = "stopped: " + why; }

  void judge_dropped(PerServer& result, const Moment& before, const Moment& now) {
    const double dropped = rise(before, now, "log_worker_dropped").value_or(0) +
                           rise(before, now, "log_watcher_skipped").value_or(0);
    const double all = requests_in(before, now).value_or(0);
    if (all <= 0) return;
    result.coverage = std::max(0.0, 1 - dropped / (all + dropped));
    if (dropped > max_dropped * all)
      stop(result, "the server dropped " + format_percent(dropped / all) + " of its events");
  }

  void list_keys() {
    const auto begin = look();
    const double largest = std::max(1.0, *std::ranges::max_element(options_.factors));
    const std::vector<std::size_t> servers = those_left();
    Pool part;
    for (const std::size_t server : servers) {
      part.push_back(pool()[server]);
      keys_[server] = std::make_unique<KeysOfServer>(begin[server], settings_[server], largest);
    }
    if (part.empty()) return;
    const auto read =
        read_live_keys(part, LiveKeysOptions::of(options_.connecting), clock_, [&](const LiveKey& key) {
          keys_[servers[key.server]]->list(key);
          return true;
        });
    for (std::size_t i = 0; i < read.size(); ++i) {
      PerServer& result = results_[servers[i]];
      if (read[i].failure != nullptr && read[i].keys == 0)
        result.failure = "the server's keys cannot be listed: " + read[i].failure->message;
      else if (!read[i].complete || read[i].may_be_short())
        result.notes.emplace_back("not all keys were listed");
      keys_[servers[i]]->begin();
    }
  }

  void watch() {
    const auto before = look();
    watch_for(options_.watched, [&](std::size_t server, const KeyEvent& event) {
      keys_[server]->take(event, whole_seconds(clock_.wall()));
    });
    const auto after = look();
    for (const std::size_t server : those_left()) judge(server, before[server], after[server]);
  }

  void judge(std::size_t server, const Moment& before, const Moment& after) {
    PerServer& result = results_[server];
    KeysOfServer& keys = *keys_[server];
    keys.finish();
    judge_dropped(result, before, after);
    const auto gets = rise(before, after, "cmd_get"), hits = rise(before, after, "get_hits");
    if (!gets || !hits || *gets < std::max(*hits, static_cast<double>(min_gets)) || keys.gets() < min_gets)
      result.failure = result.failure.empty() ? "too few look-ups for an estimate" : result.failure;
    if (!result.failure.empty()) return;
    result.gets = static_cast<std::uint64_t>(*gets);
    result.hit_ratio = *hits / *gets;
    if (!keys.is_full()) result.notes.emplace_back("the server is not full yet: more memory gives little");
    // The actual hit ratio is known for the current size. The other estimates are shifted by the same error.
    const double off = *result.hit_ratio - keys.at(1).hit_ratio;
    result.model_error = off;
    note_error(result, "");
    const auto estimate = [&](double factor) { return corrected(keys.at(factor), off); };
    for (const double factor : options_.factors) result.estimates.push_back(estimate(factor));
    const double count = static_cast<double>(pool().size());
    if (count > 1) result.one_lost = estimate((count - 1) / count);
  }

  std::shared_ptr<const Placement> placement_;
  const Clock& clock_;
  Options options_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<PerServer> results_;
  std::vector<StatisticsReply> settings_;
  std::vector<std::unique_ptr<KeysOfServer>> keys_;
  bool goes_on_ = true;
};

void add_weighted(Estimate& sum, const Estimate& one, double weight) {
  sum.factor = one.factor;
  sum.hit_ratio += one.hit_ratio * weight;
  sum.low += one.low * weight;
  sum.high += one.high * weight;
}

}  // namespace

ChunkSizes::ChunkSizes(double smallest, double factor, double largest) {
  if (smallest <= 0 || factor <= 1 || largest <= 0) return;
  constexpr double max_classes = 63;
  double size = smallest + static_cast<double>(header_bytes);
  while (static_cast<double>(sizes_.size()) < max_classes - 1 && size < largest / factor) {
    const auto aligned = (static_cast<std::uint64_t>(size) + 7) / 8 * 8;
    sizes_.push_back(aligned);
    size = static_cast<double>(aligned) * factor;
  }
  sizes_.push_back(static_cast<std::uint64_t>(largest));
}

std::uint64_t ChunkSizes::chunk_for(std::uint64_t item_bytes) const {
  const auto found = std::ranges::lower_bound(sizes_, item_bytes);
  return found == sizes_.end() ? item_bytes : *found;
}

Estimate corrected(Estimate estimate, double error) {
  const double shift = error < 0 ? error : error * std::min(1.0, estimate.factor);
  for (double* value : {&estimate.hit_ratio, &estimate.low, &estimate.high})
    *value = std::clamp(*value + shift, 0.0, 1.0);
  return estimate;
}

std::vector<PerServer> measure(std::shared_ptr<const Placement> placement, const Clock& clock,
                               Options options) {
  return Measurement(std::move(placement), clock, std::move(options)).run();
}

PerServer of_pool(const std::vector<PerServer>& servers) {
  PerServer pool;
  double gets = 0, seen = 0;
  for (const PerServer& one : servers) gets += one.estimates.empty() ? 0 : static_cast<double>(one.gets);
  for (const PerServer& one : servers) {
    if (one.estimates.empty() || gets <= 0) continue;
    const double weight = static_cast<double>(one.gets) / gets;
    pool.memory_bytes += one.memory_bytes;
    pool.gets += one.gets;
    pool.hit_ratio = pool.hit_ratio.value_or(0) + *one.hit_ratio * weight;
    pool.estimates.resize(one.estimates.size(), Estimate{1, 0, 0, 0});
    for (std::size_t i = 0; i < one.estimates.size(); ++i)
      add_weighted(pool.estimates[i], one.estimates[i], weight);
    if (one.one_lost) {
      if (!pool.one_lost) pool.one_lost = Estimate{1, 0, 0, 0};
      add_weighted(*pool.one_lost, *one.one_lost, weight);
    }
    seen += one.coverage.value_or(1) * weight;
    pool.coverage = seen;
    pool.model_error = std::max(pool.model_error, std::abs(one.model_error));
  }
  note_error(pool, "up to ");
  return pool;
}

}  // namespace mcds::capacity
