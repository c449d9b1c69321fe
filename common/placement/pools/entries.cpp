#include "common/placement/pools/entries.hpp"

namespace mcds {

std::string_view without_quotes(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r\n\"'");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n\"'") - from + 1);
}

std::vector<std::string_view> entries_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find_first_of(separators);
    if (const auto part = without_quotes(text.substr(0, end)); !part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace mcds
