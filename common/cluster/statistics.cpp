#include "common/cluster/statistics.hpp"

#include "common/base/bytes.hpp"

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

}  // namespace mcds
