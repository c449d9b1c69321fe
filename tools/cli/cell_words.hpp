// One field of an answer in words for people: sizes, durations and times in units, never JSON but for stored
// data.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace mcds {

// Names for servers, shown instead of their addresses.
using ServerNames = std::map<std::string, std::string>;

// `name` is the field's, whose unit tells what its number means; `json` its value as compact JSON.
std::string cell_words(std::string_view name, const std::string& json, const ServerNames& servers);

// `uptime` of `uptime_s`: the cells have the unit.
std::string column_title(std::string_view name);

// How many columns of a terminal a UTF-8 text takes.
std::size_t shown_width(std::string_view utf8);
// Broken between words before this column; what follows the first line begins at the column `indent`. `at`:
// where the text begins.
std::string wrapped(std::string_view utf8, std::size_t at, std::size_t indent, std::size_t width = 80);
// The text, shortened by an ellipsis at the end or in the middle if it does not fit.
std::string shortened(const std::string& utf8, std::size_t width, bool in_the_middle);

}  // namespace mcds
