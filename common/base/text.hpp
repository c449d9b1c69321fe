// Displays foreign text safely: nothing in it may control a terminal or break a line.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mcds {

// Returns the longest beginning of at most `most` bytes that ends with a whole UTF-8 character.
std::string_view beginning(std::string_view utf8, std::size_t most);

// Returns the text with A to Z replaced by a to z.
std::string lower_case(std::string text);

// Returns UTF-8 in which controls are JSON escapes (\n, \u001b, \u202e): C0, C1, DEL, text direction such as
// U+202E, line and paragraph separators. Bytes that belong to no character become \x and two digits;
// everything else is unchanged.
std::string visible(std::string_view text);
// Returns the text in single quotes, as messages show names, made visible.
std::string in_quotes(std::string_view text);
// Returns the text as one shell word: bare, or in single quotes.
std::string shell_word(std::string_view text);
// Returns the path of a file as one shell word that no command takes for an option.
std::string shell_path(std::string_view path);
// Returns true if the text has one of these controls.
bool has_controls(std::string_view text);
// Returns true if visible() leaves the text unchanged.
bool is_visible(std::string_view text);

// Appends JSON text with the same controls escaped. They occur only in strings.
void append_visible_json(std::string& out, std::string_view json);
// Does the same for the part of `out` from `start` on.
void make_json_visible(std::string& out, std::size_t start);

// Finds the word that the user probably meant.

// Returns `; did you mean "incr"?`, or `otherwise` if no candidate is similar enough to be a typing error.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         const std::string& otherwise = {});

}  // namespace mcds
