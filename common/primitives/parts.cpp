#include "common/primitives/parts.hpp"

#include <optional>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

constexpr std::string_view segment_mark = ":s:";

// `text` without the number it ends in and the mark before that.
std::optional<std::string_view> without_number(std::string_view text, char mark) {
  const auto end = text.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == text.size() || text[end] != mark) return std::nullopt;
  return text.substr(0, end);
}

// `key` without `word`, a number of copies, and the colon behind them.
std::optional<std::string_view> behind(std::string_view key, std::string_view word) {
  if (!key.starts_with(word)) return std::nullopt;
  key.remove_prefix(word.size());
  const auto colon = key.find_first_not_of("0123456789");
  if (colon == std::string_view::npos || key[colon] != ':') return std::nullopt;
  return key.substr(colon + 1);
}

// The bytes at the end of `rest` that make it a part; 0 if it is not one.
std::size_t segment_suffix(std::string_view rest) {
  constexpr std::size_t size = segment_mark.size() + 16;
  if (rest.size() <= size) return 0;
  const std::string_view end = rest.substr(rest.size() - size);
  return end.starts_with(segment_mark) && parse_hex64(end.substr(segment_mark.size())) ? size : 0;
}

std::size_t index_segment_suffix(std::string_view rest) {
  const std::size_t size = segment_suffix(rest);
  if (size == 0) return 0;
  const std::string_view journal = rest.substr(0, rest.size() - size);
  return without_number(journal, ':').value_or(journal).ends_with(":i") ? size : 0;
}

std::size_t part_suffix(std::string_view rest) {
  const auto first = without_number(rest, '.');
  auto before = first;
  for (const char mark : {':', 'x', ':'}) before = before ? without_number(*before, mark) : before;
  return before ? rest.size() - first->size() : 0;
}

std::size_t fence_suffix(std::string_view rest) {
  constexpr std::string_view part = ":fence";
  return rest.size() > part.size() && rest.ends_with(part) ? part.size() : 0;
}

std::size_t suffix_of(std::string_view key) {
  if (key.find(':') == std::string_view::npos) return 0;
  if (const auto rest = behind(key, "lock")) return fence_suffix(*rest);
  if (const auto rest = behind(key, "array")) return segment_suffix(*rest);
  if (const auto rest = behind(key, "eventlog")) return part_suffix(*rest);
  for (const std::string_view word : {"table", "hash"}) {
    if (const auto rest = behind(key, word)) return index_segment_suffix(*rest);
  }
  return 0;
}

}  // namespace

PlacedKey placed(std::string key, std::string_view key_prefix) {
  const std::string_view whole = key;
  const std::size_t suffix = whole.starts_with(key_prefix) ? suffix_of(whole.substr(key_prefix.size())) : 0;
  if (suffix == 0) return {std::move(key)};
  std::string with = key.substr(0, key.size() - suffix);
  return {std::move(key), std::move(with)};
}

bool is_segment(const PlacedKey& key) {
  return !key.with.empty() && key.key.compare(key.with.size(), segment_mark.size(), segment_mark) == 0;
}

}  // namespace mcds
