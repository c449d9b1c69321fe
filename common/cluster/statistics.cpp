#include "common/cluster/statistics.hpp"

#include <algorithm>

namespace mcds {

std::optional<std::string_view> statistic(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    const std::string_view line = take_line(lines);
    if (line.size() > name.size() && line[name.size()] == ' ' && line.starts_with(name))
      return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> statistic_number(std::string_view lines, std::string_view name) {
  const auto text = statistic(lines, name);
  return text ? parse_u64(*text) : std::nullopt;
}

std::optional<ServerLife> ServerLife::of(std::string_view lines) {
  const auto process = statistic_number(lines, "pid");
  const auto time = statistic_number(lines, "time"), uptime = statistic_number(lines, "uptime");
  if (!process || !time || !uptime || *uptime > *time) return std::nullopt;
  return ServerLife{*process, *time - *uptime};
}

ServerLife ServerLife::of(std::uint64_t process, WallTime started_at) {
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(started_at.time_since_epoch());
  return {process, static_cast<std::uint64_t>(since.count())};
}

bool ServerLife::is(const ServerLife& other) const {
  return process == other.process && std::max(start, other.start) - std::min(start, other.start) <= 1;
}

}  // namespace mcds
