#include "common/operations/doctor/examination.hpp"

#include <cmath>

#include "common/base/bytes.hpp"

namespace mcds::doctor {

std::optional<double> Figures::real(std::string_view name) const {
  const auto text = statistic(lines_, name);
  return text ? parse_double(*text) : std::nullopt;
}

std::optional<bool> Figures::on(std::string_view name) const {
  const auto text = statistic(lines_, name);
  if (!text) return std::nullopt;
  if (*text == "yes" || *text == "on" || *text == "1") return true;
  if (*text == "no" || *text == "off" || *text == "0") return false;
  return std::nullopt;
}

std::uint64_t figure_of(const SlabClass& one, std::string_view name) {
  const auto found = one.find(name);
  return found == one.end() ? 0 : found->second;
}

bool Patient::restarted() const {
  if (!told()) return false;
  const auto pid = first.stats.number("pid"), pid_now = second.stats.number("pid");
  const auto uptime = first.stats.number("uptime"), uptime_now = second.stats.number("uptime");
  return pid != pid_now || (uptime && uptime_now && *uptime_now < *uptime) || is_balanced();
}

bool Patient::is_balanced() const {
  if (!told()) return false;
  const auto time = first.stats.number("time"), time_now = second.stats.number("time");
  const auto uptime = first.stats.number("uptime"), uptime_now = second.stats.number("uptime");
  if (!time || !time_now || !uptime || !uptime_now) return false;
  if (static_cast<double>(*uptime_now) <= seconds() + 2) return false;
  if (first.stats.number("pid") != second.stats.number("pid")) return true;
  // In containers every server is process 1: by the start then, unless the clock does not go on as ours.
  const auto went = static_cast<double>(*time_now) - static_cast<double>(*time);
  const auto older = static_cast<double>(*uptime_now) - static_cast<double>(*uptime);
  return std::abs(went - seconds()) <= 2 && std::abs(went - older) > 1;
}

std::optional<std::uint64_t> Patient::grown(std::string_view name) const {
  if (!told() || restarted()) return std::nullopt;
  const auto was = first.stats.number(name), is = second.stats.number(name);
  // `stats reset` sets them back.
  if (!was || !is || *is < *was) return std::nullopt;
  return *is - *was;
}

std::uint64_t Patient::class_grown(std::uint64_t number, std::string_view name) const {
  if (!told() || restarted()) return 0;
  const auto was = first.classes.find(number), is = second.classes.find(number);
  if (is == second.classes.end()) return 0;
  const std::uint64_t before = was == first.classes.end() ? 0 : figure_of(was->second, name);
  const std::uint64_t now = figure_of(is->second, name);
  return now < before ? 0 : now - before;
}

}  // namespace mcds::doctor
