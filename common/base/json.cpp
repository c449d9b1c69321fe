#include "common/base/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"

namespace mcds {

namespace {

using Document = nlohmann::ordered_json;

// Most answers fit: one allocation instead of one per doubling.
constexpr std::size_t usual_size = 190;

std::optional<Document> parse(std::string_view text) {
  Document document = Document::parse(text, nullptr, false);
  if (document.is_discarded()) return std::nullopt;
  return document;
}

// The tokens of what is known to be JSON: strings, single marks, and everything else up to the next mark or
// white space.
template <typename Function>
void for_each_token(std::string_view json, Function function) {
  constexpr std::string_view space = " \t\n\r";
  constexpr std::string_view ends_words = " \t\n\r,:[]{}";
  for (std::size_t i = json.find_first_not_of(space); i < json.size(); i = json.find_first_not_of(space, i)) {
    std::size_t end = i + 1;
    if (json[i] == '"') {
      while (json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      ++end;
    } else if (ends_words.find(json[i]) == std::string_view::npos) {
      end = std::min(json.find_first_of(ends_words, end), json.size());
    }
    function(json.substr(i, end - i));
    i = end;
  }
}

// Strings in their one spelling; numbers keep their digits, unlike in a document that is parsed and printed.
void append_token(std::string& out, std::string_view token) {
  if (token.front() == '"' && token.find('\\') != std::string_view::npos) {
    append_json_quoted(out, *json_unquote(token));
  } else {
    out += token;
  }
}

}  // namespace

// What stands before a field's name.
std::string_view JsonObject::opening() {
  if (!body_.empty()) return ",\"";
  body_.reserve(usual_size);
  return "{\"";
}

std::string& JsonObject::start(std::string_view name) {
  append_all(body_, {opening(), name, "\":"});
  return body_;
}

JsonObject& JsonObject::bytes(std::string_view name, std::string_view value) {
  if (is_plain_json(value)) {
    append_all(body_, {opening(), name, "\":\"", value, "\""});
  } else if (is_utf8(value)) {
    append_json_quoted(start(name), value);
  } else {
    start(std::string(name) + "_b64") += '"' + base64(value) + '"';
  }
  return *this;
}

JsonObject& JsonObject::number(std::string_view name, std::uint64_t value) {
  return raw(name, std::to_string(value));
}

JsonObject& JsonObject::signed_number(std::string_view name, std::int64_t value) {
  return raw(name, std::to_string(value));
}

std::string json_real(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

JsonObject& JsonObject::real(std::string_view name, double value) {
  return raw(name, json_real(value));
}

JsonObject& JsonObject::boolean(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

JsonObject& JsonObject::time(std::string_view name, WallTime value) {
  start(name) += '"' + format_time(value) + '"';
  return *this;
}

JsonObject& JsonObject::object(std::string_view name, const JsonObject& value) {
  return raw(name, value.text());
}

JsonObject& JsonObject::objects(std::string_view name, const std::vector<JsonObject>& values) {
  std::string& body = start(name);
  body += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) body += ',';
    body += values[i].text();
  }
  body += ']';
  return *this;
}

JsonObject& JsonObject::strings(std::string_view name, const std::vector<std::string>& values) {
  bool utf8 = true;
  for (const std::string& value : values) utf8 = utf8 && is_utf8(value);
  std::string& body = start(utf8 ? std::string(name) : std::string(name) + "_b64");
  body += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) body += ',';
    body += utf8 ? json_quote(values[i]) : '"' + base64(values[i]) + '"';
  }
  body += ']';
  return *this;
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
  append_all(body_, {opening(), name, "\":", json});
  return *this;
}

bool is_json(std::string_view text) {
  return Document::accept(text);
}

std::optional<std::string> compact_json(std::string_view text) {
  if (!is_json(text)) return std::nullopt;
  std::string compact;
  compact.reserve(text.size());
  for_each_token(text, [&](std::string_view token) { append_token(compact, token); });
  return compact;
}

std::optional<std::string> json_unquote(std::string_view text) {
  const auto document = parse(text);
  if (!document || !document->is_string()) return std::nullopt;
  return document->get<std::string>();
}

std::optional<std::vector<std::string>> json_elements(std::string_view text) {
  if (!is_json(text)) return std::nullopt;
  std::vector<std::string> elements;
  bool is_array = false;
  int depth = 0;
  std::string element;
  for_each_token(text, [&](std::string_view token) {
    const char c = token.front();
    if (depth == 0) is_array = c == '[';
    if (c == ']' || c == '}') --depth;
    const bool ends = (depth == 1 && c == ',') || depth == 0;
    if (ends && !element.empty()) elements.push_back(std::exchange(element, {}));
    if (depth > 0 && !ends) append_token(element, token);
    if (c == '[' || c == '{') ++depth;
  });
  if (!is_array) return std::nullopt;
  return elements;
}

std::optional<std::string> json_field(std::string_view text, std::string_view name) {
  const auto document = parse(text);
  if (!document || !document->is_object()) return std::nullopt;
  const auto field = document->find(std::string(name));
  if (field == document->end()) return std::nullopt;
  return field->dump();
}

std::vector<std::string> json_names(std::string_view text) {
  const auto document = parse(text);
  std::vector<std::string> names;
  if (!document || !document->is_object()) return names;
  for (const auto& item : document->items()) names.push_back(item.key());
  return names;
}

std::string quote_bytes(std::string_view bytes) {
  return is_utf8(bytes) ? json_quote(bytes) : "b\"" + base64(bytes) + '"';
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
