#include "common/base/canonical_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
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

void refuse_inexact(double value, const std::string& literal) {
  std::array<char, 400> exact{};
  const auto end =
      std::to_chars(exact.data(), exact.data() + exact.size(), value, std::chars_format::fixed, 0).ptr;
  if (literal != std::string_view(exact.data(), static_cast<std::size_t>(end - exact.data()))) {
    throw bad_json("the integer " + literal.substr(0, 40) +
                   " cannot be held exactly by a double, so it has no canonical form; write it as a string");
  }
}

class Canonicalizer final : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& result() const { return result_; }

  bool null() override { return value("null"); }
  bool boolean(bool is_true) override { return value(is_true ? "true" : "false"); }
  bool number_integer(number_integer_t number) override {
    return integer(static_cast<double>(number), std::to_string(number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    return integer(static_cast<double>(number), std::to_string(number));
  }
  bool number_float(number_float_t number, const string_t& literal) override {
    if (!std::isfinite(number))
      throw bad_json("the number " + literal.substr(0, 40) + " is outside the range of a double");
    if (literal.find_first_of(".eE") == std::string::npos && number != 0) return integer(number, literal);
    return value(number_text(number));
  }
  bool string(string_t& text) override { return value(json_quote(text)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& name) override {
    frames_.back().members.emplace_back(name, std::string());
    return true;
  }
  bool end_object() override {
    Members members = std::move(frames_.back().members);
    frames_.pop_back();
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return utf16_less(a.first, b.first); });
    std::string text = "{";
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i != 0 && members[i].first == members[i - 1].first) {
        throw bad_json("the object key " + json_quote(members[i].first) + " appears twice; keep one of them");
      }
      text += (i == 0 ? "" : ",") + json_quote(members[i].first) + ':' + members[i].second;
    }
    return value(text + '}');
  }
  bool end_array() override {
    const std::string text = '[' + frames_.back().elements + ']';
    frames_.pop_back();
    return value(text);
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw bad_json("the JSON has no canonical form at byte " + std::to_string(position));
  }

 private:
  using Members = std::vector<std::pair<std::string, std::string>>;
  struct Frame {
    bool is_object;
    Members members;       // of an object: name, canonical text
    std::string elements;  // of an array: canonical texts joined by commas
  };

  bool integer(double number, const std::string& literal) {
    refuse_inexact(number, literal);
    return value(number_text(number));
  }
  bool open(bool is_object) {
    frames_.push_back({is_object, {}, {}});
    return true;
  }
  bool value(const std::string& text) {
    if (frames_.empty()) {
      result_ = text;
    } else if (Frame& frame = frames_.back(); frame.is_object) {
      frame.members.back().second = text;
    } else {
      frame.elements += (frame.elements.empty() ? "" : ",") + text;
    }
    return true;
  }

  std::vector<Frame> frames_;
  std::string result_;
};

}  // namespace

std::string canonical_json(std::string_view text) {
  JsonReader gate(text);
  while (gate.next()) {
  }
  if (!gate.valid()) {
    throw bad_json("invalid JSON at byte " + std::to_string(gate.position() + 1) +
                   "; give one JSON value in UTF-8");
  }
  Canonicalizer canonicalizer;
  nlohmann::json::sax_parse(text.begin(), text.end(), &canonicalizer);
  return canonicalizer.result();
}

}  // namespace mcds
