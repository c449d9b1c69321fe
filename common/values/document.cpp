#include "common/values/document.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"

namespace mcds::values {

void fail(const std::string& what, std::size_t offset) {
  throw CorruptData(what + " at byte " + std::to_string(offset));
}

std::string_view Input::take(std::uint64_t size) {
  if (size > left()) fail("the value ends too early: " + std::to_string(size) + " bytes are expected");
  const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(size));
  at_ += taken.size();
  return taken;
}

std::string_view Input::until(char end) {
  const std::size_t size = rest().find(end);
  if (size == std::string_view::npos)
    fail(std::string("no '") + (end == '\n' ? "\\n" : std::string(1, end)) + "' follows");
  const std::string_view taken = take(size);
  ++at_;
  return taken;
}

void Input::expect(std::string_view text) {
  if (!rest().starts_with(text)) fail("'" + std::string(text) + "' is expected");
  at_ += text.size();
}

std::uint64_t Input::big(std::size_t size) {
  std::uint64_t value = 0;
  for (const char c : take(size)) value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

std::uint64_t Input::little(std::size_t size) {
  std::string bytes(take(size));
  std::ranges::reverse(bytes);
  return Input(bytes).big(size);
}

void Document::charge(std::size_t bytes) {
  if (bytes > budget_) throw CorruptData("the value holds more than --max-bytes allows");
  budget_ -= bytes;
}

Id Document::add(Kind kind, std::string text) {
  charge(text.size() + sizeof(Value) / 2);
  values_.push_back({kind, std::move(text), {}});
  return static_cast<Id>(values_.size() - 1);
}

Id Document::tagged(std::string_view tag_name, Id value) {
  const Id made = map();
  tag(made, tag_name, value);
  return made;
}

Id Document::object(std::string_view name) {
  const Id made = tagged("@class", bytes(name));
  values_[made].text = name;
  return made;
}

void Document::tag(Id map, std::string_view tag, Id value) {
  member(map, json('"' + std::string(tag) + '"'), value);
}

void Document::push(Id container, Id item) {
  charge(sizeof(Id));
  values_[container].items.push_back(item);
}

void Document::member(Id map, Id name, Id value) {
  push(map, name);
  push(map, value);
}

Id Document::real(double value) {
  if (std::isfinite(value)) return json(json_real(value));
  return tagged("@number", bytes(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity"));
}

std::optional<Id> Document::real(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);  // accepts INF and NaN in any case
  if (error != std::errc{} || stop != end) return {};
  return real(value);
}

std::optional<Id> Document::integer(std::string_view text) {
  // memcached's decr leaves spaces.
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (const auto number = parse_i64(text)) return json(std::to_string(*number));
  if (const auto number = parse_u64(text)) return json(std::to_string(*number));
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (!is_digits(digits)) return {};
  return tagged("@number", bytes(text));
}

Id Document::big_integer(std::string_view magnitude, bool negative) {
  if (magnitude.size() > 4096) throw CorruptData("an integer of more than 4096 bytes is not shown");
  charge(magnitude.size() * magnitude.size() / 16);  // for the time it takes
  std::vector<std::uint32_t> parts;                  // of nine digits, the lowest first
  for (std::size_t i = magnitude.size(); i-- > 0;) {
    std::uint64_t carry = static_cast<std::uint8_t>(magnitude[i]);
    for (std::uint32_t& part : parts) {
      carry += std::uint64_t{part} << 8;
      part = static_cast<std::uint32_t>(carry % 1'000'000'000);
      carry /= 1'000'000'000;
    }
    if (carry > 0) parts.push_back(static_cast<std::uint32_t>(carry));
  }
  std::string text = parts.empty() ? "0" : (negative ? "-" : "") + std::to_string(parts.back());
  for (std::size_t i = parts.size(); i-- > 1;) {
    const std::string part = std::to_string(parts[i - 1]);
    text.append(9 - part.size(), '0') += part;
  }
  return *integer(text);
}

Id Document::latin1(Id text) {
  std::string out;
  const auto add = [&](char32_t c) {
    if (c > 0xff) throw CorruptData("a character above U+00FF stands for no byte");
    out += static_cast<char>(c);
  };
  for_each_code_point(values_[text].text, add, [&](char) { add(0x100); });
  return bytes(out);
}

void Document::check_length() const {
  if (out_.size() > max_bytes_) throw CorruptData("as JSON the value is longer than --max-bytes");
}

void Document::write_name(Id id, std::size_t depth) {
  const Value& name = values_[id];
  if (name.kind == Kind::json && name.text.starts_with('"')) {
    out_ += name.text;
  } else if (name.kind == Kind::bytes) {
    const std::string escape = name.text.starts_with('@') ? "@" : "";
    append_json_quoted(out_, is_utf8(name.text) ? escape + name.text : "@b64:" + base64(name.text));
  } else {
    const std::size_t start = out_.size();
    const bool outer = std::exchange(in_name_, true);
    write(id, depth);
    in_name_ = outer;
    const std::string text = out_.substr(start);
    out_.resize(start);
    append_json_quoted(out_, text);
    check_length();  // names within names double in size each time
  }
}

void Document::write(Id id, std::size_t depth) {
  const Value& value = values_[id];
  check_length();
  if (depth > max_depth) throw CorruptData("the value is nested deeper than " + std::to_string(max_depth));
  if (value.kind == Kind::json) {
    out_ += value.text;
  } else if (value.kind == Kind::bytes && is_utf8(value.text)) {
    append_json_quoted(out_, value.text);
  } else if (value.kind == Kind::bytes) {
    containers_ += in_name_ ? 0 : 1;
    append_all(out_, {R"({"@b64":")", base64(value.text), R"("})"});
  } else if (!in_name_ && shown_[id] != 0) {
    append_all(out_, {R"({"@ref":)", std::to_string(shown_[id]), "}"});
    ++containers_;
  } else {
    const bool map = value.kind == Kind::map;
    if (!in_name_) shown_[id] = ++containers_;
    out_ += map ? '{' : '[';
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) out_ += map && i % 2 == 1 ? ':' : ',';
      map&& i % 2 == 0 ? write_name(value.items[i], depth + 1) : write(value.items[i], depth + 1);
    }
    out_ += map ? '}' : ']';
  }
}

std::string Document::text(Id root) {
  out_.clear();
  containers_ = 0;
  shown_.assign(values_.size(), 0);
  write(root, 0);
  return std::move(out_);
}

}  // namespace mcds::values
