// Foreign text shown to people: nothing in it may control a terminal, or break a line.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mcds {

// The longest beginning of at most `most` bytes that ends with a whole character, if the text is UTF-8.
std::string_view beginning(std::string_view utf8, std::size_t most);

// With a to z in place of A to Z.
std::string lower_case(std::string text);

// UTF-8 in which controls (C0, C1, DEL, those of the direction of text such as U+202E, line and paragraph
// separators) are written as JSON escapes (\n, \u001b, \u202e) and bytes that belong to no character as \x
// and two digits; everything else as it is.
std::string visible(std::string_view text);
// As one word for a shell: bare, or in single quotes.
std::string shell_word(std::string_view text);
// Returns whether the text has one of these controls.
bool has_controls(std::string_view text);
// Whether visible() leaves the text as it is.
bool is_visible(std::string_view text);

// Appends JSON text, with the same controls escaped: in strings, the only place where they are, JSON lets
// them stand.
void append_visible_json(std::string& out, std::string_view json);
// The same with what stands in `out` from `start` on.
void make_json_visible(std::string& out, std::size_t start);

// "did you mean": the nearest of the words that would have been right.

// `; did you mean "incr"?`, or `otherwise` when no candidate is near enough to be a slip of the finger.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         const std::string& otherwise = {});

}  // namespace mcds
