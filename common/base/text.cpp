#include "common/base/text.hpp"

#include <algorithm>
#include <optional>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

constexpr char del = 0x7f;
constexpr char c1_lead = '\xc2';  // C1 controls are c2 80 … c2 9f

bool is_c1(std::string_view text) {
  return text.size() >= 2 && text[0] == c1_lead && static_cast<unsigned char>(text[1]) >= 0x80 &&
         static_cast<unsigned char>(text[1]) < 0xa0;
}

void append_hex2(std::string& out, unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

// The size of the character at the start; 0 if there is none.
std::size_t character_size(std::string_view text) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(4, text.size()); ++size) {
    if (is_utf8(text.substr(0, size))) return size;
  }
  return 0;
}

// Of the control character at the start, its escape as JSON has it.
std::optional<std::string> escape_of(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  if (byte < 0x20) {
    const std::string quoted = json_quote(text.substr(0, 1));
    return quoted.substr(1, quoted.size() - 2);
  }
  std::string escape = "\\u00";
  if (text.front() == del) {
    append_hex2(escape, byte);
  } else if (is_c1(text)) {
    append_hex2(escape, static_cast<unsigned char>(text[1]));
  } else {
    return std::nullopt;
  }
  return escape;
}

}  // namespace

std::string_view beginning(std::string_view utf8, std::size_t most) {
  if (utf8.size() <= most) return utf8;
  while (most > 0 && (utf8[most] & 0xc0) == 0x80) --most;
  return utf8.substr(0, most);
}

bool is_visible(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < del; });
  if (plain) return true;
  if (!is_utf8(text)) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (escape_of(text.substr(i))) return false;
  }
  return true;
}

std::string visible(std::string_view text) {
  if (is_visible(text)) return std::string(text);
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) {
      shown += "\\x";
      append_hex2(shown, static_cast<unsigned char>(text.front()));
    } else {
      shown += escape_of(text).value_or(std::string(text.substr(0, size)));
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return shown;
}

void make_json_visible(std::string& out, std::size_t start) {
  constexpr std::string_view marks = "\x7f\xc2";
  if (out.find(marks[0], start) == std::string::npos && out.find(marks[1], start) == std::string::npos)
    return;
  const std::string json = out.substr(start);
  out.resize(start);
  std::string_view rest = json;
  while (!rest.empty()) {
    const std::size_t plain = std::min(rest.find_first_of(marks), rest.size());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const auto escape = escape_of(rest);
    out += escape.value_or(std::string(rest.substr(0, 1)));
    rest.remove_prefix(escape && rest.front() != del ? 2 : 1);
  }
}

void append_visible_json(std::string& out, std::string_view json) {
  const std::size_t start = out.size();
  out += json;
  make_json_visible(out, start);
}

}  // namespace mcds
