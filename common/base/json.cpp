#include "common/base/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/json_reader.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

// Most objects fit into this size: one allocation instead of one per doubling.
constexpr std::size_t usual_size = 190;
// A large value is written in parts of this size, which are whole groups of base64.
constexpr std::size_t brief_size = 60;
constexpr std::size_t part_size = std::size_t{3} << 14;

}  // namespace

// Returns the text before a field's name.
std::string_view JsonObject::opening() {
  if (!body_.empty()) return ",\"";
  body_.reserve(usual_size);
  return "{\"";
}

void JsonName::append_to(std::string& out, std::string_view suffix) const {
  if (is_literal_ || is_plain_json(text_)) {
    append_all(out, {text_, suffix});
    return;
  }
  const std::string quoted = json_quote(visible(text_));
  append_all(out, {std::string_view(quoted).substr(1, quoted.size() - 2), suffix});
}

std::string& JsonObject::start(JsonName name, std::string_view suffix) {
  body_ += opening();
  name.append_to(body_, suffix);
  body_ += "\":";
  return body_;
}

JsonObject& JsonObject::bytes(JsonName name, std::string_view value) {
  if (is_plain_json(value)) {
    append_all(start(name), {"\"", value, "\""});
  } else if (is_utf8(value)) {
    append_json_quoted(start(name), value);
  } else {
    start(name, "_b64") += '"' + base64(value) + '"';
  }
  return *this;
}

JsonObject& JsonObject::stored_bytes(JsonName name, std::string_view value) {
  if (value.size() <= part_size) return bytes(name, value);
  const bool as_base64 = !is_utf8(value);
  std::string& body = start(name, as_base64 ? "_b64" : "");
  body += '"';
  stored_.push_back({body.size(), value, as_base64});
  body += '"';
  return *this;
}

std::string JsonObject::brief() const {
  JsonObject shorter;
  std::size_t written = 0;
  for (const Stored& one : stored_) {
    shorter.body_.append(body_, written, one.at - written);
    written = one.at;
    std::string_view start =
        one.as_base64 ? one.bytes.substr(0, brief_size) : beginning(one.bytes, brief_size);
    shorter.body_ += take_part(start, one.as_base64) + "… (" + std::to_string(one.bytes.size()) + " bytes)";
  }
  shorter.body_.append(body_, written);
  return shorter.text();
}

std::string JsonObject::take_part(std::string_view& rest, bool as_base64) {
  std::size_t size = std::min(rest.size(), part_size);
  const auto inside = [&](std::size_t at) { return (rest[at] & 0xc0) == 0x80; };
  while (!as_base64 && size < rest.size() && inside(size)) --size;
  const std::string_view part = rest.substr(0, size);
  rest.remove_prefix(size);
  if (as_base64) return base64(part);
  const std::string quoted = json_quote(part);
  return quoted.substr(1, quoted.size() - 2);
}

JsonObject& JsonObject::fields(std::initializer_list<std::string_view> pieces) {
  body_ += opening().front();
  append_all(body_, pieces);
  return *this;
}

JsonObject& JsonObject::more(std::initializer_list<std::string_view> pieces) {
  append_all(body_, pieces);
  return *this;
}

std::string json_real(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

JsonObject& JsonObject::time(JsonName name, WallTime value) {
  start(name) += '"' + format_time(value) + '"';
  return *this;
}

JsonObject& JsonObject::objects(JsonName name, const std::vector<JsonObject>& values) {
  return raw(name, '[' + joined(values, ",", &JsonObject::text) + ']');
}

JsonObject& JsonObject::strings(JsonName name, const std::vector<std::string>& values) {
  const bool utf8 = std::ranges::all_of(values, is_utf8);
  const auto text = [&](const std::string& value) {
    return utf8 ? json_quote(value) : '"' + base64(value) + '"';
  };
  start(name, utf8 ? "" : "_b64") += '[' + joined(values, ",", text) + ']';
  return *this;
}

JsonObject& JsonObject::raw(JsonName name, std::string_view json) {
  start(name) += json;
  return *this;
}

bool is_json(std::string_view text) {
  return !json_fault(text);
}

bool is_compact_json(std::string_view text) {
  bool inside = false;  // a string
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!inside && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) return false;
    if (c == '"') inside = !inside;
    if (c == '\\') ++i;
  }
  return is_json(text);
}

std::optional<std::string> compact_json(std::string_view text) {
  std::string compact;
  compact.reserve(text.size());
  if (json_fault(text, [&](const JsonPart& part) { append_json_part(compact, part); })) return std::nullopt;
  return compact;
}

std::optional<std::string> json_unquote(std::string_view text) {
  std::optional<std::string> bytes;
  const auto keep = [&](const JsonPart& part) {
    if (part.depth == 0 && part.kind == JsonPart::Kind::string) bytes = part.text;
  };
  return json_fault(text, keep) ? std::nullopt : bytes;
}

namespace {

// Returns the direct elements of an array, or members of an object with their names, each value as compact
// text.
std::optional<std::vector<JsonMember>> children(std::string_view text, char bracket) {
  std::vector<JsonMember> found;
  if (text.find_first_not_of(" \t\r\n") != text.find(bracket)) return std::nullopt;
  const auto visit = [&](JsonPart part) {
    using enum JsonPart::Kind;
    if (part.depth == 0) return;
    if (part.depth == 1 && part.kind == name) return void(found.push_back({std::string(part.text), ""}));
    if (part.depth == 1 && part.kind != close && bracket == '[') found.emplace_back();
    part.comma = part.comma && part.depth > 1;
    append_json_part(found.back().value, part);
  };
  if (json_fault(text, visit)) return std::nullopt;
  return found;
}

}  // namespace

std::optional<std::vector<std::string>> json_elements(std::string_view text) {
  auto found = children(text, '[');
  if (!found) return std::nullopt;
  std::vector<std::string> elements;
  elements.reserve(found->size());
  for (JsonMember& child : *found) elements.push_back(std::move(child.value));
  return elements;
}

std::optional<std::vector<JsonMember>> json_members(std::string_view text) {
  return children(text, '{');
}

std::optional<std::string> json_field(std::string_view text, std::string_view name) {
  auto members = json_members(text);
  if (!members) return std::nullopt;
  const auto last = std::find_if(members->rbegin(), members->rend(),
                                 [&](const JsonMember& member) { return member.name == name; });
  if (last == members->rend()) return std::nullopt;
  return std::move(last->value);
}

std::optional<std::string> json_bytes(std::string_view text, std::string_view name) {
  if (const auto plain = json_field(text, name)) return json_unquote(*plain);
  const auto encoded = json_field(text, std::string(name) + "_b64");
  const auto digits = encoded ? json_unquote(*encoded) : std::nullopt;
  return digits ? parse_base64(*digits) : std::nullopt;
}

std::string quote_bytes(std::string_view bytes) {
  std::string quoted;
  append_quoted_bytes(quoted, bytes);
  return quoted;
}

void append_quoted_bytes(std::string& out, std::string_view bytes) {
  if (is_utf8(bytes)) return append_json_quoted(out, bytes);
  append_all(out, {"b\"", base64(bytes), "\""});
}

std::optional<std::string> unquote_bytes(std::string_view text) {
  const bool encoded = text.starts_with("b\"") && text.size() >= 3 && text.ends_with('"');
  if (encoded) return parse_base64(text.substr(2, text.size() - 3));
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  const std::string_view inside = quoted ? text.substr(1, text.size() - 2) : std::string_view();
  if (quoted && (is_plain_json(inside) || inside.find_first_of("\\\"") == std::string_view::npos))
    return std::string(inside);
  return json_unquote(text);
}

}  // namespace mcds
