#include "common/base/canonical_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json_reader.hpp"

namespace mcds {

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
