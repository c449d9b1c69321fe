#include "common/operations/doctor/examination.hpp"

#include <cmath>

#include "common/base/bytes.hpp"

namespace mcds::doctor {

std::optional<double> StatisticsReply::real(std::string_view name) const {
  const auto text = statistic(lines_, name);
  return text ? parse_double(*text) : std::nullopt;
}

std::optional<bool> StatisticsReply::on(std::string_view name) const {
  const auto text = statistic(lines_, name);
  if (!text) return std::nullopt;
  if (*text == "yes" || *text == "on" || *text == "1") return true;
  if (*text == "no" || *text == "off" || *text == "0") return false;
  return std::nullopt;
}

std::uint64_t metric_of(const SlabClass& one, std::string_view name) {
  const auto found = one.find(name);
  return found == one.end() ? 0 : found->second;
}

bool ServerSnapshot::restarted() const {
  if (!reported()) return false;
  const auto pid = before.stats.number("pid"), pid_now = after.stats.number("pid");
  const auto uptime = before.stats.number("uptime"), uptime_now = after.stats.number("uptime");
  return pid != pid_now || (uptime && uptime_now && *uptime_now < *uptime) || is_balanced();
}

bool ServerSnapshot::is_balanced() const {
  if (!reported()) return false;
  const auto time = before.stats.number("time"), time_now = after.stats.number("time");
  const auto uptime = before.stats.number("uptime"), uptime_now = after.stats.number("uptime");
  if (!time || !time_now || !uptime || !uptime_now) return false;
  if (static_cast<double>(*uptime_now) <= seconds() + 2) return false;
  if (before.stats.number("pid") != after.stats.number("pid")) return true;
  // In containers every server is process 1, so compare start times, unless its clock runs at another speed.
  const auto went = static_cast<double>(*time_now) - static_cast<double>(*time);
  const auto older = static_cast<double>(*uptime_now) - static_cast<double>(*uptime);
  return std::abs(went - seconds()) <= 2 && std::abs(went - older) > 1;
}

std::optional<std::uint64_t> ServerSnapshot::grown(std::string_view name) const {
  if (!reported() || restarted()) return std::nullopt;
  const auto was = before.stats.number(name), is = after.stats.number(name);
  // `stats reset` resets the counters.
  if (!was || !is || *is < *was) return std::nullopt;
  return *is - *was;
}

std::uint64_t ServerSnapshot::class_grown(std::uint64_t number, std::string_view name) const {
  if (!reported() || restarted()) return 0;
  const auto was = before.classes.find(number), is = after.classes.find(number);
  if (is == after.classes.end()) return 0;
  const std::uint64_t earlier = was == before.classes.end() ? 0 : metric_of(was->second, name);
  const std::uint64_t now = metric_of(is->second, name);
  return now < earlier ? 0 : now - earlier;
}

}  // namespace mcds::doctor
