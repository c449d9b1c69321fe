// Formats a field of an answer for people: sizes and times with units. Only stored data is shown as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mcds {

// Names for servers, by address; they are shown instead of the addresses.
using ServerNames = std::map<std::string, std::string>;

// Returns the text of a cell. `name` is the field with its unit suffix, `json` its value as compact JSON.
std::string cell_text(std::string_view name, const std::string& json, const ServerNames& servers);

// Returns the title of a field's column without its unit, which the cells show: `uptime` for `uptime_s`.
std::string column_title(std::string_view name);

// Returns `1,024`.
std::string grouped(std::uint64_t number);

// Returns a share of `width` columns, from 0 to 1, as a bar of eighths of a character.
std::string bar(double share, std::size_t width);

// Marks the start and end of text that a Screen draws red. The marks take no column.
inline constexpr char red_begins = '\x0e', red_ends = '\x0f';

// Returns the number of terminal columns that a UTF-8 text takes.
std::size_t shown_width(std::string_view utf8);
// Returns the text, which begins at column `at`, broken before column `width`; later lines begin at `indent`.
std::string wrapped(std::string_view utf8, std::size_t at, std::size_t indent, std::size_t width = 80);
// Returns the text, shortened by an ellipsis at the end or in the middle if it is wider than `width`.
std::string shortened(const std::string& utf8, std::size_t width, bool in_the_middle);

}  // namespace mcds
