// Encodes and reads those lines of an index that do not list names; index.hpp describes them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.hpp"
#include "common/structures/elements/index.hpp"

namespace mcds {

constexpr std::string_view born_mark = "born";
constexpr std::string_view named_mark = "named:";
constexpr std::string_view loss_mark = "lost";          // of the manifest
constexpr std::string_view restored_mark = "restored";  // has no effect; a shard begins with some line

// Returns true if the line records how its shard relates to the manifest, or what only a later version knows.
inline bool is_mark(const JournalLine& line) {
  return line.change == Change::remove && line.element != restored_mark;
}

inline std::string manifest_entry(std::size_t shard, const std::string& incarnation) {
  return std::to_string(shard) + ':' + incarnation;
}

inline std::int64_t unix_seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

// Calls `function` for each name that a line lists, as it is quoted there. A quoted name contains no tab.
template <typename Function>
void for_each_quoted(std::string_view element, const Function& function) {
  while (!element.empty()) function(take_word(element, '\t'));
}
inline void append_quoted(std::string& element, std::string_view quoted) {
  if (!element.empty()) element += '\t';
  element += quoted;
}

// Returns when a line was written, by its writer's clock; nullopt if the id of another program's line does
// not begin with a time.
inline std::optional<std::int64_t> seconds_of(std::string_view line_id) {
  std::uint32_t seconds = 0;
  const std::string_view digits = line_id.substr(0, 8);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds, 16);
  if (error != std::errc() || end != digits.data() + 8) return std::nullopt;
  return seconds;
}
// Returns false for a line without a time: its writer may be about to create the element.
inline bool is_old(std::string_view line_id, std::int64_t now) {
  const auto seconds = seconds_of(line_id);
  return seconds && now - *seconds > ElementIndex::grace.count();
}

}  // namespace mcds
