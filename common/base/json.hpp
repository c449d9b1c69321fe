// Writes JSON text field by field, without a document in memory, with which one answer takes five times as
// long. All functions here that read JSON accept what json_fault (json_reader.hpp) accepts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"

namespace mcds {

// Returns the shortest JSON number that reads back as the same double; null if it is not finite.
std::string json_real(double value);

// The name of a field. A string literal is written as it is. Other names may come from a server or a user and
// are quoted, so that no name can end early and add fields.
class JsonName {
 public:
  JsonName(const char* literal) : text_(literal), is_literal_(true) {}
  JsonName(std::string_view text) : text_(text) {}
  JsonName(const std::string& text) : text_(text) {}

  // Appends the name in quotes, with `suffix` inside them.
  void append_to(std::string& out, std::string_view suffix = {}) const;

 private:
  std::string_view text_;
  bool is_literal_ = false;
};

// One compact JSON object with its fields in the order in which they were added.
class JsonObject {
 public:
  JsonObject() = default;
  // Starts with bytes(name, value).
  JsonObject(JsonName name, std::string_view value) { bytes(name, value); }
  // Adds a string field. Bytes that are not UTF-8 go to `<name>_b64` instead.
  JsonObject& bytes(JsonName name, std::string_view value);
  // Same as bytes(), for a value that may be large and outlives the object: it is not copied.
  JsonObject& stored_bytes(JsonName name, std::string_view value);
  JsonObject& number(JsonName name, std::uint64_t value) { return raw(name, std::to_string(value)); }
  JsonObject& number_or_null(JsonName name, std::optional<std::uint64_t> value) {
    return value ? number(name, *value) : raw(name, "null");
  }
  JsonObject& signed_number(JsonName name, std::int64_t value) { return raw(name, std::to_string(value)); }
  // Uses json_real().
  JsonObject& real(JsonName name, double value) { return raw(name, json_real(value)); }
  JsonObject& boolean(JsonName name, bool value) { return raw(name, value ? "true" : "false"); }
  // Writes RFC 3339 in UTC with milliseconds.
  JsonObject& time(JsonName name, WallTime value);
  JsonObject& object(JsonName name, const JsonObject& value) { return raw(name, value.text()); }
  JsonObject& objects(JsonName name, const std::vector<JsonObject>& values);
  // Adds an array of strings. Unless all values are UTF-8, the whole array goes to `<name>_b64`.
  JsonObject& strings(JsonName name, const std::vector<std::string>& values);
  // Adds fields given as JSON text in pieces, so that text shared by many objects is made once.
  JsonObject& fields(std::initializer_list<std::string_view> pieces);
  // Continues the last of these fields: what is added next is in an object that they have opened.
  JsonObject& more(std::initializer_list<std::string_view> pieces);
  // `json` must be valid JSON.
  JsonObject& raw(JsonName name, std::string_view json);

  // Reuse a beginning that objects share: cut() removes all fields added after size() returned this value.
  std::size_t size() const { return body_.size(); }
  void cut(std::size_t size) {
    body_.resize(size);
    std::erase_if(stored_, [&](const Stored& one) { return one.at >= size; });
  }

  // Returns `{…}`.
  std::string text() const {
    std::string text;
    text.reserve(body_.size() + 2);
    write([&](std::string_view part) { text += part; });
    return text;
  }
  // Returns the object for display: values of stored_bytes() are shortened, with their size.
  std::string brief() const;
  // Writes text() in parts, each of whole characters. Values of stored_bytes() come in small parts.
  template <typename Sink>
  void write(const Sink& sink) const {
    std::size_t written = 0;
    if (body_.empty()) sink("{");
    for (const Stored& one : stored_) {
      sink(std::string_view(body_).substr(written, one.at - written));
      written = one.at;
      for (std::string_view rest = one.bytes; !rest.empty();) sink(take_part(rest, one.as_base64));
    }
    sink(std::string_view(body_).substr(written));
    sink("}");
  }

 private:
  struct Stored {
    std::size_t at;  // in body_, between the quotes
    std::string_view bytes;
    bool as_base64;
  };
  std::string_view opening();
  std::string& start(JsonName name, std::string_view suffix = {});
  static std::string take_part(std::string_view& rest, bool as_base64);
  std::string body_;
  std::vector<Stored> stored_;
};

// Returns true if `text` is one JSON value.
bool is_json(std::string_view text);
// Returns true if `text` is JSON as compact_json() returns it, which may be printed as it is.
bool is_compact_json(std::string_view text);

// Returns the value without insignificant white space, with object fields in their order, all digits of
// numbers, and strings in one spelling; nullopt if `text` is not JSON.
std::optional<std::string> compact_json(std::string_view text);

// Returns the bytes of a JSON string literal with its quotes, or nullopt if it is anything else.
std::optional<std::string> json_unquote(std::string_view text);

// Returns any bytes as one line: a JSON string if they are UTF-8, else b"<base64>", which is not JSON.
std::string quote_bytes(std::string_view bytes);
void append_quoted_bytes(std::string& out, std::string_view bytes);
// Returns the bytes, or nullopt if `text` has neither form.
std::optional<std::string> unquote_bytes(std::string_view text);

// Returns the elements of a JSON array as compact JSON, or nullopt if `text` is not a JSON array.
std::optional<std::vector<std::string>> json_elements(std::string_view text);

struct JsonMember {
  std::string name;
  std::string value;  // compact JSON
};
// Returns the members of a JSON object in order, with duplicate names; nullopt if it is not an object.
std::optional<std::vector<JsonMember>> json_members(std::string_view text);

// Returns the last member of this name as compact JSON; nullopt without one, or if it is not an object.
std::optional<std::string> json_field(std::string_view text, std::string_view name);
// Returns the bytes that JsonObject::bytes() wrote under this name, or nullopt if there are none.
std::optional<std::string> json_bytes(std::string_view text, std::string_view name);

}  // namespace mcds
