#include "common/cluster/statistics.hpp"

#include "common/base/bytes.hpp"

namespace mcds {

std::optional<std::string_view> statistic(std::string_view lines, std::string_view name) {
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string_view line = lines.substr(at, end - at);
    if (line.size() > name.size() && line[name.size()] == ' ' && line.starts_with(name))
      return line.substr(name.size() + 1);
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> statistic_number(std::string_view lines, std::string_view name) {
  const auto text = statistic(lines, name);
  return text ? parse_u64(*text) : std::nullopt;
}

}  // namespace mcds
