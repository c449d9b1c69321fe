#include "tools/commands/servers/rates.hpp"

#include "common/cluster/statistics.hpp"

namespace mcds {

namespace {

// memcached's names, in the order of Sample::Figure; out of memory is counted by slab class.
constexpr std::array names{"curr_items",         "bytes",           "limit_maxbytes",
                           "curr_connections",   "max_connections", "cmd_get",
                           "get_hits",           "cmd_set",         "evictions",
                           "expired_unfetched",  "bytes_read",      "bytes_written",
                           "listen_disabled_num"};
static_assert(names.size() == Sample::out_of_memory);

// `items:5:outofmemory 12`, of all classes.
std::uint64_t out_of_memory_in(std::string_view items) {
  std::uint64_t sum = 0;
  for (const std::string_view line : split(items, '\n')) {
    const std::size_t space = line.find(' ');
    if (space != std::string_view::npos && line.substr(0, space).ends_with(":outofmemory"))
      sum += parse_u64(line.substr(space + 1)).value_or(0);
  }
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
  sample.process = statistic_number(stats, "pid").value_or(0);
  sample.uptime_s = statistic_number(stats, "uptime").value_or(0);
  for (std::size_t i = 0; i < names.size(); ++i) sample.values[i] = statistic_number(stats, names[i]);
  if (!stats.empty()) sample.values[out_of_memory] = out_of_memory_in(items);
  return sample;
}

Rates::Rates(const Sample& before, const Sample& now)
    : restarted_(before.process != now.process || before.uptime_s > now.uptime_s) {
  for (std::size_t i = 0; i < Sample::first_count; ++i) now_[i] = now.values[i];
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  for (std::size_t i = Sample::first_count; i < Sample::figures && seconds > 0 && !restarted_; ++i) {
    const auto &was = before.values[i], &is = now.values[i];
    // `stats reset` sets them back.
    if (!was || !is || *is < *was) continue;
    more_[i] = *is - *was;
    per_s_[i] = static_cast<double>(*more_[i]) / seconds;
  }
}

void Rates::add(const Rates& other) {
  for (std::size_t i = 0; i < now_.size(); ++i) add_known(now_[i], other.now_[i]);
  for (std::size_t i = 0; i < per_s_.size(); ++i) {
    add_known(per_s_[i], other.per_s_[i]);
    add_known(more_[i], other.more_[i]);
  }
}

void Rates::describe(JsonObject& line) const {
  const auto rate = [&](const char* name, Sample::Figure figure) {
    if (per_s_[figure]) line.raw(name, format_fixed(*per_s_[figure], 1));
  };
  const auto number = [&](const char* name, const std::optional<std::uint64_t>& value) {
    if (value) line.number(name, *value);
  };
  rate("gets_per_s", Sample::gets);
  if (more_[Sample::gets].value_or(0) > 0 && more_[Sample::hits]) {
    const double ratio =
        static_cast<double>(*more_[Sample::hits]) / static_cast<double>(*more_[Sample::gets]);
    line.raw("hit_ratio", format_fixed(ratio, 4));
  }
  rate("sets_per_s", Sample::sets);
  rate("evictions_per_s", Sample::evictions);
  rate("expired_unfetched_per_s", Sample::expired_unfetched);
  rate("received_bytes_per_s", Sample::received_bytes);
  rate("sent_bytes_per_s", Sample::sent_bytes);
  number("items", now_[Sample::items]);
  number("used_bytes", now_[Sample::used_bytes]);
  number("limit_bytes", now_[Sample::limit_bytes]);
  number("connections", now_[Sample::connections]);
  number("max_connections", now_[Sample::max_connections]);
  number("listen_disabled", more_[Sample::listen_disabled]);
  number("out_of_memory", more_[Sample::out_of_memory]);
}

}  // namespace mcds
