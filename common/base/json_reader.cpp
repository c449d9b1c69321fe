#include "common/base/json_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds {

namespace {

constexpr std::string_view space = " \t\n\r";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Four hex digits at `at`, or -1.
int hex4(std::string_view text, std::size_t at) {
  const std::string_view digits = text.substr(std::min(at, text.size()), 4);
  const char* const end = digits.data() + digits.size();
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  return digits.size() == 4 && error == std::errc{} && stop == end ? static_cast<int>(value) : -1;
}

bool is_high_surrogate(int unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}
bool is_low_surrogate(int unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

// The size of the escape at the start of `text`; 0 if it is not one. Surrogates come in pairs.
std::size_t escape_size(std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] != 'u') return std::string_view("\"\\/bfnrt").find(text[1]) == std::string_view::npos ? 0 : 2;
  const int unit = hex4(text, 2);
  if (unit < 0 || is_low_surrogate(unit)) return 0;
  if (!is_high_surrogate(unit)) return 6;
  const bool paired = text.substr(6, 2) == "\\u" && is_low_surrogate(hex4(text, 8));
  return paired ? 12 : 0;
}

// The size of the string at the start of `text`, quotes included; 0 if it is not one.
std::size_t string_size(std::string_view text) {
  for (std::size_t i = 1; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"') return i + 1;
    if (byte < 0x20) return 0;
    const std::size_t size = byte == '\\' ? escape_size(text.substr(i)) : 1;
    if (size == 0) return 0;
    i += size;
  }
  return 0;
}

std::size_t digits_size(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

// Numbers that no double reaches are read as infinity by some and refused by others.
bool is_finite(std::string_view number) {
  constexpr std::size_t surely_finite = 300;  // digits without an exponent
  if (number.size() < surely_finite && number.find_first_of("eE") == std::string_view::npos) return true;
  return std::isfinite(std::strtod(std::string(number).c_str(), nullptr));
}

// The size of the number at the start of `text`; 0 if it is not one.
std::size_t number_size(std::string_view text) {
  std::size_t size = text.starts_with('-') ? 1 : 0;
  const std::size_t whole = digits_size(text.substr(size));
  if (whole == 0 || (whole > 1 && text[size] == '0')) return 0;
  size += whole;
  if (text.substr(size).starts_with('.')) {
    const std::size_t fraction = digits_size(text.substr(size + 1));
    if (fraction == 0) return 0;
    size += 1 + fraction;
  }
  if (size < text.size() && (text[size] == 'e' || text[size] == 'E')) {
    ++size;
    if (size < text.size() && (text[size] == '+' || text[size] == '-')) ++size;
    const std::size_t exponent = digits_size(text.substr(size));
    if (exponent == 0) return 0;
    size += exponent;
  }
  return is_finite(text.substr(0, size)) ? size : 0;
}

std::size_t word_size(std::string_view text) {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text.starts_with(word)) return word.size();
  }
  return 0;
}

// Appends what the escape at the start of `text` stands for.
void append_unescaped(std::string& out, std::string_view text) {
  constexpr std::string_view letters = "bfnrt";
  constexpr std::string_view meanings = "\b\f\n\r\t";
  if (text[1] != 'u') {
    const std::size_t letter = letters.find(text[1]);
    out += letter == std::string_view::npos ? text[1] : meanings[letter];
    return;
  }
  const int unit = hex4(text, 2);
  const int code =
      is_high_surrogate(unit) ? 0x10000 + ((unit - 0xd800) << 10) + (hex4(text, 8) - 0xdc00) : unit;
  append_utf8(out, static_cast<std::uint32_t>(code));
}

}  // namespace

JsonReader::JsonReader(std::string_view text)
    : rest_(text), size_(text.size()), state_(is_utf8(text) ? State::value : State::wrong) {}

std::optional<JsonToken> JsonReader::next() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(space), rest_.size()));
  if (rest_.empty() || state_ == State::done || state_ == State::wrong) return fault();
  const char c = rest_.front();
  switch (state_) {
    case State::value_or_end: return c == ']' ? close() : take_value();
    case State::key_or_end:
      if (c == '}') return close();
      [[fallthrough]];
    case State::key: return c == '"' ? take(string_size(rest_), State::colon, true) : fault();
    case State::colon: return c == ':' ? take(1, State::value) : fault();
    case State::comma_or_end:
      if (c == ',') return take(1, in_object_[depth_ - 1] ? State::key : State::value);
      return c == (in_object_[depth_ - 1] ? '}' : ']') ? close() : fault();
    default: return take_value();
  }
}

std::optional<JsonToken> JsonReader::fault() {
  if (state_ != State::done || !rest_.empty()) state_ = State::wrong;
  return std::nullopt;
}

std::optional<JsonToken> JsonReader::take(std::size_t size, State next, bool is_key) {
  if (size == 0) return state_ = State::wrong, std::nullopt;
  const JsonToken token{rest_.substr(0, size), depth_, is_key};
  rest_.remove_prefix(size);
  state_ = next;
  return token;
}

std::optional<JsonToken> JsonReader::open() {
  if (depth_ == deepest_json) return state_ = State::wrong, std::nullopt;
  const bool object = rest_.front() == '{';
  auto token = take(1, object ? State::key_or_end : State::value_or_end);
  in_object_[depth_++] = object;
  return token;
}

std::optional<JsonToken> JsonReader::close() {
  --depth_;
  return take(1, after_value());
}

std::optional<JsonToken> JsonReader::take_value() {
  const char c = rest_.front();
  if (c == '{' || c == '[') return open();
  const std::size_t size = c == '"'                  ? string_size(rest_)
                           : c == '-' || is_digit(c) ? number_size(rest_)
                                                     : word_size(rest_);
  return take(size, after_value());
}

std::string json_string_bytes(std::string_view token) {
  std::string bytes;
  const std::string_view inside = token.substr(1, token.size() - 2);
  bytes.reserve(inside.size());
  for (std::size_t i = 0; i < inside.size();) {
    const std::size_t plain = std::min(inside.find('\\', i), inside.size());
    bytes += inside.substr(i, plain - i);
    i = plain;
    if (i == inside.size()) break;
    append_unescaped(bytes, inside.substr(i));
    i += escape_size(inside.substr(i));
  }
  return bytes;
}

namespace {

Failure bad_json(const std::string& why) {
  return {ErrorCode::bad_data, why};
}

// UTF-8 bytes in the order of the UTF-16 code units they stand for: U+E000…U+FFFF (lead bytes ee, ef) sort
// after the surrogate pairs of U+10000 and above (lead bytes f0…f4); everything else is in byte order
// already.
bool utf16_less(std::string_view a, std::string_view b) {
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0xee || byte == 0xef ? byte + 0x10 : byte;
  };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

// ECMAScript's Number::toString: the shortest digits, plain notation for exponents -7 < n <= 21.
std::string number_text(double value) {
  if (value == 0) return "0";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view shortest(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = shortest.find('e');
  std::string digits(1, shortest[0]);
  if (e > 1) digits += shortest.substr(2, e - 2);
  std::string_view exponent = shortest.substr(e + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  const auto count = static_cast<std::int64_t>(digits.size());
  const std::int64_t point = *parse_i64(exponent) + 1;  // the decimal point stands after this many digits
  std::string text;
  if (point >= count && point <= 21) {
    text = digits + std::string(static_cast<std::size_t>(point - count), '0');
  } else if (point > 0 && point <= 21) {
    text = digits.substr(0, static_cast<std::size_t>(point)) + '.' +
           digits.substr(static_cast<std::size_t>(point));
  } else if (point > -6 && point <= 0) {
    text = "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  } else {
    text = digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + 'e' + (point > 0 ? "+" : "-") +
           std::to_string(std::abs(point - 1));
  }
  return value < 0 ? '-' + text : text;
}

void refuse_inexact(double value, std::string_view literal) {
  std::array<char, 400> exact{};
  const auto end =
      std::to_chars(exact.data(), exact.data() + exact.size(), value, std::chars_format::fixed, 0).ptr;
  if (literal != std::string_view(exact.data(), static_cast<std::size_t>(end - exact.data()))) {
    throw bad_json("the integer " + std::string(literal.substr(0, 40)) +
                   " cannot be held exactly by a double, so it has no canonical form; write it as a string");
  }
}

std::string canonical_number(std::string_view token) {
  double value = 0;  // which it stays where the number is too small for a double
  std::from_chars(token.data(), token.data() + token.size(), value);
  if (token.find_first_of(".eE") == std::string_view::npos) refuse_inexact(value, token);
  return number_text(value);
}

std::string canonical_value(JsonReader& reader, std::string_view token);

// The reader stands behind the opening bracket.
std::string canonical_array(JsonReader& reader) {
  std::string text = "[";
  for (auto token = reader.next(); token->text != "]"; token = reader.next())
    text += token->text == "," ? "," : canonical_value(reader, token->text);
  return text + ']';
}

std::string canonical_object(JsonReader& reader) {
  std::vector<std::pair<std::string, std::string>> members;
  for (auto token = reader.next(); token->text != "}"; token = reader.next()) {
    if (token->is_key) members.emplace_back(json_string_bytes(token->text), std::string());
    if (!token->is_key && token->text != ":" && token->text != ",")
      members.back().second = canonical_value(reader, token->text);
  }
  std::ranges::sort(members, [](const auto& a, const auto& b) { return utf16_less(a.first, b.first); });
  std::string text = "{";
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i != 0 && members[i].first == members[i - 1].first)
      throw bad_json("the object key " + json_quote(members[i].first) + " appears twice; keep one of them");
    text += (i == 0 ? "" : ",") + json_quote(members[i].first) + ':' + members[i].second;
  }
  return text + '}';
}

// The value that begins with `token`, of a text that a JsonReader has passed.
std::string canonical_value(JsonReader& reader, std::string_view token) {
  switch (token.front()) {
    case '{': return canonical_object(reader);
    case '[': return canonical_array(reader);
    case '"': return json_quote(json_string_bytes(token));
    case 't':
    case 'f':
    case 'n': return std::string(token);
    default: return canonical_number(token);
  }
}

}  // namespace

std::string canonical_json(std::string_view text) {
  JsonReader gate(text);
  while (gate.next()) {
  }
  if (!gate.valid()) {
    throw bad_json("invalid JSON at byte " + std::to_string(gate.position() + 1) +
                   "; give one JSON value in UTF-8");
  }
  JsonReader reader(text);
  const auto first = reader.next();
  return canonical_value(reader, first->text);
}

}  // namespace mcds
