#include "common/base/text.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

constexpr char del = 0x7f;

// Returns true for C1 controls, ends of lines and paragraphs, and characters that change the text direction.
bool controls(char32_t character) {
  return (character >= 0x80 && character < 0xa0) || character == 0x061c || character == 0x200e ||
         character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

// The JSON escape of the control character at the start of a text, and the size of the character.
struct Escape {
  std::string text;
  std::size_t size;
};
std::optional<Escape> escape_of(std::string_view text) {
  const auto [character, size] = first_code_point(text);
  if (size == 0) return std::nullopt;
  if (character < 0x20) {
    const std::string quoted = json_quote(text.substr(0, 1));
    return Escape{quoted.substr(1, quoted.size() - 2), 1};
  }
  if (character != del && !controls(character)) return std::nullopt;
  Escape escape{"\\u", size};
  append_hex(escape.text, static_cast<unsigned char>(character >> 8));
  append_hex(escape.text, static_cast<unsigned char>(character & 0xff));
  return escape;
}

}  // namespace

std::string_view beginning(std::string_view utf8, std::size_t most) {
  if (utf8.size() <= most) return utf8;
  while (most > 0 && (utf8[most] & 0xc0) == 0x80) --most;
  return utf8.substr(0, most);
}

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

bool has_controls(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (escape_of(text.substr(i))) return true;
  }
  return false;
}

bool is_visible(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < del; });
  if (plain) return true;
  return is_utf8(text) && !has_controls(text);
}

std::string visible(std::string_view text) {
  if (is_visible(text)) return std::string(text);
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = first_code_point(text).size;
    if (size == 0) {
      shown += "\\x";
      append_hex(shown, static_cast<unsigned char>(text.front()));
    } else {
      const auto escape = escape_of(text);
      shown += escape ? escape->text : std::string(text.substr(0, size));
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return shown;
}

void make_json_visible(std::string& out, std::size_t start) {
  if (is_ascii_without_del(std::string_view(out).substr(start))) return;
  constexpr std::string_view marks = "\x7f\xc2\xd8\xe2";  // the first bytes of DEL, C1 and the other controls
  const std::string json = out.substr(start);
  out.resize(start);
  std::string_view rest = json;
  while (!rest.empty()) {
    const std::size_t plain = std::min(rest.find_first_of(marks), rest.size());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const auto escape = escape_of(rest);
    out += escape ? std::string_view(escape->text) : rest.substr(0, 1);
    rest.remove_prefix(escape ? escape->size : 1);
  }
}

void append_visible_json(std::string& out, std::string_view json) {
  const std::size_t start = out.size();
  out += json;
  make_json_visible(out, start);
}

std::string shell_word(std::string_view text) {
  const bool bare = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:@%+=,").find(c) != std::string_view::npos;
  });
  if (bare) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string shell_path(std::string_view path) {
  return shell_word(path.starts_with('-') ? "./" + std::string(path) : std::string(path));
}

namespace {

constexpr std::size_t max_word_length = 100;

// Returns the Damerau-Levenshtein distance: the number of bytes inserted, deleted or replaced, or of
// neighbours swapped, to change `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), before, two_before;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_before = std::exchange(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, before[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string in_quotes(std::string_view text) {
  return '\'' + visible(text) + '\'';
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         const std::string& otherwise) {
  if (word.empty() || word.size() > max_word_length) return otherwise;
  // A short word may have one error; with two, `pop` would suggest `drop`.
  std::size_t least = std::min(word.size(), std::max<std::size_t>(1, word.size() / 3) + 1);
  const std::string* nearest = nullptr;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d >= least) continue;
    least = d;
    nearest = &candidate;
  }
  return nearest == nullptr ? otherwise : "; did you mean '" + *nearest + "'?";
}

}  // namespace mcds
