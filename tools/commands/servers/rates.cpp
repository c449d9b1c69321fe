#include "tools/commands/servers/rates.hpp"

namespace mcds {

namespace {

// A field of the answer and memcached's name for it. A value that counts from the server's start is shown as
// a rate, as its increase, or as its share of the previous value; others are shown as they are.
enum class ShownAs { rate, share, now, more };
struct RateField {
  const char* name;
  const char* statistic;
  ShownAs shown_as;
};
constexpr std::array<RateField, Sample::metrics> rate_fields{{
    {"gets_per_s", "cmd_get", ShownAs::rate},
    {"hit_ratio", "get_hits", ShownAs::share},
    {"sets_per_s", "cmd_set", ShownAs::rate},
    {"evictions_per_s", "evictions", ShownAs::rate},
    {"expired_unfetched_per_s", "expired_unfetched", ShownAs::rate},
    {"received_bytes_per_s", "bytes_read", ShownAs::rate},
    {"sent_bytes_per_s", "bytes_written", ShownAs::rate},
    {"items", "curr_items", ShownAs::now},
    {"used_bytes", "bytes", ShownAs::now},
    {"limit_bytes", "limit_maxbytes", ShownAs::now},
    {"connections", "curr_connections", ShownAs::now},
    {"max_connections", "max_connections", ShownAs::now},
    {"listen_disabled", "listen_disabled_num", ShownAs::more},
    {"out_of_memory", "outofmemory", ShownAs::more},  // counted per slab class
}};

// Returns the sum over all classes of `items:5:outofmemory 12`.
std::uint64_t out_of_memory_in(std::string_view items) {
  std::uint64_t sum = 0;
  for_each_statistic(items, [&](std::string_view name, std::string_view value) {
    if (name.ends_with(":outofmemory")) sum += parse_u64(value).value_or(0);
  });
  return sum;
}

template <typename Number>
void add_known(std::optional<Number>& sum, const std::optional<Number>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

}  // namespace

Sample Sample::of(SteadyTime at, std::string_view stats, std::string_view items) {
  Sample sample;
  sample.at = at;
  sample.start = ServerStart::of(stats);
  for (std::size_t i = 0; i < Sample::metrics; ++i)
    sample.values[i] = statistic_number(stats, rate_fields[i].statistic);
  if (!stats.empty()) sample.values.back() = out_of_memory_in(items);
  return sample;
}

Rates::Rates(const Sample& before, const Sample& now)
    : restarted_(before.start && now.start && !now.start->is(*before.start)) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  bool counts = !restarted_ && seconds > 0;
  for (std::size_t i = 0; i < Sample::metrics; ++i) {
    if (rate_fields[i].shown_as == ShownAs::now)
      metrics_[i].now = now.values[i];
    else if (i + 1 != Sample::metrics && now.values[i] < before.values[i])
      counts = false;  // not the last one: a slab class without items is not reported
  }
  for (std::size_t i = 0; counts && i < Sample::metrics; ++i) {
    const auto &was = before.values[i], &is = now.values[i];
    if (!was || !is || *is < *was || rate_fields[i].shown_as == ShownAs::now) continue;
    Metric& metric = metrics_[i];
    metric.more = *is - *was;
    metric.per_s = static_cast<double>(*is - *was) / seconds;
    if (rate_fields[i].shown_as != ShownAs::share) continue;
    metric.of = metrics_[i - 1].more.value_or(0);
    if (metric.of < *metric.more) metric = {};
  }
}

void Rates::add(const Rates& other) {
  for (std::size_t i = 0; i < Sample::metrics; ++i) {
    add_known(metrics_[i].now, other.metrics_[i].now);
    add_known(metrics_[i].more, other.metrics_[i].more);
    add_known(metrics_[i].per_s, other.metrics_[i].per_s);
    metrics_[i].of += other.metrics_[i].of;
  }
}

void Rates::describe(JsonObject& line) const {
  for (std::size_t i = 0; i < Sample::metrics; ++i) {
    const auto& [name, statistic, shown_as] = rate_fields[i];
    const Metric& metric = metrics_[i];
    if (shown_as == ShownAs::rate && metric.per_s) line.raw(name, format_fixed(*metric.per_s, 1));
    if (shown_as == ShownAs::now && metric.now) line.number(name, *metric.now);
    if (shown_as == ShownAs::more && metric.more) line.number(name, *metric.more);
    if (shown_as == ShownAs::share && metric.of > 0)
      line.raw(name, format_fixed(
                         static_cast<double>(metric.more.value_or(0)) / static_cast<double>(metric.of), 4));
  }
}

}  // namespace mcds
