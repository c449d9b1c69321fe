#include "common/base/json_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"

namespace mcds {

namespace {

using nlohmann::json;

// Receives the events of nlohmann's parser.
class JsonEvents {
 public:
  explicit JsonEvents(const JsonVisitor& visit) : visit_(visit) {}

  bool null() { return part(JsonPart::Kind::literal, "null"); }
  bool boolean(bool value) { return part(JsonPart::Kind::literal, value ? "true" : "false"); }
  // Only numbers with a sign are of this type.
  bool number_integer(std::int64_t value) {
    return part(JsonPart::Kind::literal, value == 0 ? "-0" : std::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) { return part(JsonPart::Kind::literal, std::to_string(value)); }
  bool number_float(double, const std::string& written) { return part(JsonPart::Kind::literal, written); }
  bool string(const std::string& bytes) { return part(JsonPart::Kind::string, bytes); }
  bool binary(const json::binary_t&) { return false; }
  bool key(const std::string& name) {
    part(JsonPart::Kind::name, name);
    comma_ = false;
    return true;
  }
  bool start_object(std::size_t) { return open("{"); }
  bool start_array(std::size_t) { return open("["); }
  bool end_object() { return close("}"); }
  bool end_array() { return close("]"); }

  bool parse_error(std::size_t read, const std::string&, const json::exception& error) {
    constexpr int out_of_range = 406;
    if (error.id == out_of_range) limit_ = "a number is outside the range of a double";
    fault_ = read - 1;
    return false;
  }
  std::size_t fault() const { return fault_; }
  // Returns the limit that JSON without a fault exceeds, or an empty text.
  const std::string& limit() const { return limit_; }

 private:
  bool part(JsonPart::Kind kind, std::string_view text) {
    if (visit_) visit_({kind, text, depth_, comma_ && kind != JsonPart::Kind::close});
    comma_ = true;
    return true;
  }
  bool open(const char* bracket) {
    if (depth_ == deepest_json) {
      limit_ = "the value nests more than " + std::to_string(deepest_json) + " deep";
      return false;
    }
    part(JsonPart::Kind::open, bracket);
    ++depth_;
    comma_ = false;
    return true;
  }
  bool close(const char* bracket) {
    --depth_;
    return part(JsonPart::Kind::close, bracket);
  }

  const JsonVisitor& visit_;
  std::string limit_;
  std::size_t fault_ = 0, depth_ = 0;
  bool comma_ = false;
};

std::optional<std::size_t> fault_in(std::string_view text, JsonEvents& events, bool comments) {
  if (text.starts_with("\xef\xbb\xbf")) return 0;  // the parser skips a byte order mark
  const bool valid =
      json::sax_parse(text.begin(), text.end(), &events, json::input_format_t::json, true, comments);
  const auto fault = valid ? text.find('\0') : events.fault();  // a NUL ends the text for the parser
  return fault == std::string_view::npos ? std::nullopt : std::optional(fault);
}

}  // namespace

std::optional<std::size_t> json_fault(std::string_view text, const JsonVisitor& visit, bool comments) {
  JsonEvents events(visit);
  return fault_in(text, events, comments);
}

void append_json_part(std::string& out, const JsonPart& part) {
  if (part.comma) out += ',';
  if (part.kind == JsonPart::Kind::name || part.kind == JsonPart::Kind::string)
    append_json_quoted(out, part.text);
  else
    out += part.text;
  if (part.kind == JsonPart::Kind::name) out += ':';
}

namespace {

Failure bad_json(const std::string& why) {
  return {ErrorCode::bad_data, why};
}

// Compares UTF-8 bytes in the order of UTF-16 code units. U+E000…U+FFFF (lead bytes ee, ef) sort after the
// surrogate pairs of U+10000 and above (lead bytes f0…f4); all others are already in byte order.
bool utf16_less(std::string_view a, std::string_view b) {
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0xee || byte == 0xef ? byte + 0x10 : byte;
  };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

// Implements ECMAScript's Number::toString: the shortest digits, plain notation for exponents -7 < n <= 21.
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
  const std::int64_t point = *parse_i64(exponent) + 1;  // the decimal point comes after this many digits
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
  double value = 0;  // unchanged if the number is too small for a double
  std::from_chars(token.data(), token.data() + token.size(), value);
  const std::string_view whole = token.substr(0, token.find('.'));
  if (token.find_first_not_of(".0", whole.size()) == std::string_view::npos &&
      whole.find_first_of("eE") == std::string_view::npos)
    refuse_inexact(value, whole);
  return number_text(value);
}

struct CanonicalLevel {
  bool object = false;
  std::vector<std::pair<std::string, std::string>> members = {};  // without names in an array
};

std::string canonical_container(CanonicalLevel level) {
  auto& [object, members] = level;
  if (object) std::ranges::sort(members, utf16_less, &std::pair<std::string, std::string>::first);
  std::string text(1, object ? '{' : '[');
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& [name, value] = members[i];
    if (object && i != 0 && name == members[i - 1].first)
      throw bad_json("the object key " + in_quotes(name) + " appears twice; keep one of them");
    append_all(text, {i == 0 ? "" : ",", object ? json_quote(name) + ':' : "", value});
  }
  return text + (object ? '}' : ']');
}

}  // namespace

std::string canonical_json(std::string_view text) {
  const JsonVisitor none;
  JsonEvents events(none);
  if (const auto position = fault_in(text, events, false)) {
    if (!events.limit().empty()) throw bad_json("the JSON has no canonical form: " + events.limit());
    throw bad_json("invalid JSON at byte " + std::to_string(*position + 1) +
                   "; give one JSON value in UTF-8");
  }
  std::vector<CanonicalLevel> levels(1);  // the value is the only one of the first
  const auto add = [&](std::string value) {
    auto& [object, members] = levels.back();
    if (!object) members.emplace_back();
    members.back().second = std::move(value);
  };
  json_fault(text, [&](const JsonPart& part) {
    switch (part.kind) {
      case JsonPart::Kind::open: levels.push_back({.object = part.text == "{"}); break;
      case JsonPart::Kind::name: levels.back().members.emplace_back(part.text, ""); break;
      case JsonPart::Kind::string: add(json_quote(part.text)); break;
      case JsonPart::Kind::literal:
        add(std::isalpha(part.text[0]) != 0 ? std::string(part.text) : canonical_number(part.text));
        break;
      case JsonPart::Kind::close: {
        std::string container = canonical_container(std::move(levels.back()));
        levels.pop_back();
        add(std::move(container));
      }
    }
  });
  return levels.front().members.front().second;
}

}  // namespace mcds
