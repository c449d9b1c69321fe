// JSON text: written field by field without a document in memory. What is JSON is for one gate to say,
// json_reader.hpp:
// all functions here that read take what it passes, and nothing else.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"

namespace mcds {

// The shortest JSON number that reads back to the same double; not finite: null.
std::string json_real(double value);

// The name of a field. A string literal is written as it is; anything else may come from a server or a user
// and is quoted: no name can end early and add fields.
class JsonName {
 public:
  JsonName(const char* literal) : text_(literal), is_literal_(true) {}
  JsonName(std::string_view text) : text_(text) {}
  JsonName(const std::string& text) : text_(text) {}

  // Appends the name between its quotes, with `suffix` behind it.
  void append_to(std::string& out, std::string_view suffix = {}) const;

 private:
  std::string_view text_;
  bool is_literal_ = false;
};

// One compact JSON object, its fields in the order they were added.
class JsonObject {
 public:
  JsonObject() = default;
  // One that begins with bytes(name, value).
  JsonObject(JsonName name, std::string_view value) { bytes(name, value); }
  // A string field; bytes that are not UTF-8 go to `<name>_b64` instead.
  JsonObject& bytes(JsonName name, std::string_view value);
  // The same of a value that may be large and outlives the object: it is written from where it is.
  JsonObject& stored_bytes(JsonName name, std::string_view value);
  JsonObject& number(JsonName name, std::uint64_t value) { return raw(name, std::to_string(value)); }
  JsonObject& number_or_null(JsonName name, std::optional<std::uint64_t> value) {
    return value ? number(name, *value) : raw(name, "null");
  }
  JsonObject& signed_number(JsonName name, std::int64_t value) { return raw(name, std::to_string(value)); }
  // As json_real.
  JsonObject& real(JsonName name, double value) { return raw(name, json_real(value)); }
  JsonObject& boolean(JsonName name, bool value) { return raw(name, value ? "true" : "false"); }
  // RFC 3339 UTC with milliseconds.
  JsonObject& time(JsonName name, WallTime value);
  JsonObject& object(JsonName name, const JsonObject& value) { return raw(name, value.text()); }
  JsonObject& objects(JsonName name, const std::vector<JsonObject>& values);
  // An array of strings. All values must be UTF-8, else the whole array goes to `<name>_b64`.
  JsonObject& strings(JsonName name, const std::vector<std::string>& values);
  // Fields as they are written, in pieces: of what is the same in many objects the text is made once.
  JsonObject& fields(std::initializer_list<std::string_view> pieces);
  // More of the last of them: what is added then is in an object that they have opened.
  JsonObject& more(std::initializer_list<std::string_view> pieces);
  // `json` must already be valid JSON.
  JsonObject& raw(JsonName name, std::string_view json);

  // A beginning that many objects share is written once: cut back to its size, the object takes other fields
  // behind it.
  std::size_t size() const { return body_.size(); }
  void cut(std::size_t size) {
    body_.resize(size);
    std::erase_if(stored_, [&](const Stored& one) { return one.at >= size; });
  }

  // `{…}`.
  std::string text() const {
    std::string text;
    text.reserve(body_.size() + 2);
    write([&](std::string_view part) { text += part; });
    return text;
  }
  // The same for people: of what stored_bytes() added, the beginning and how much there is.
  std::string brief() const;
  // text() in parts, each of whole characters; what stored_bytes() added comes in many small ones.
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
    std::size_t at;  // in body_, between its quotes
    std::string_view bytes;
    bool as_base64;
  };
  std::string_view opening();
  std::string& start(JsonName name, std::string_view suffix = {});
  static std::string take_part(std::string_view& rest, bool as_base64);
  std::string body_;
  std::vector<Stored> stored_;
};

// Whether `text` is one JSON value.
bool is_json(std::string_view text);
// The same, without insignificant white space: what compact_json() returns, and may be printed as it is.
bool is_compact_json(std::string_view text);

// The same value without insignificant white space, object fields in their order, numbers with all their
// digits, strings in one spelling; nullopt if `text` is not JSON.
std::optional<std::string> compact_json(std::string_view text);

// The bytes of a JSON string literal, quotes included in `text`; nullopt when it is anything else.
std::optional<std::string> json_unquote(std::string_view text);

// Any bytes as one line of text: a JSON string if they are UTF-8, else b"<base64>", which no JSON text can
// be.
std::string quote_bytes(std::string_view bytes);
void append_quoted_bytes(std::string& out, std::string_view bytes);
// The bytes; nullopt when `text` is neither form.
std::optional<std::string> unquote_bytes(std::string_view text);

// The elements of a JSON array, each as compact JSON text; nullopt if `text` is not a JSON array.
std::optional<std::vector<std::string>> json_elements(std::string_view text);

struct JsonMember {
  std::string name;
  std::string value;  // compact JSON text
};
// The members of a JSON object in their order, duplicate names included; nullopt if `text` is not an object.
std::optional<std::vector<JsonMember>> json_members(std::string_view text);

// The compact JSON text of one field of a JSON object, the last of its name; nullopt if there is none or
// `text` is not an object.
std::optional<std::string> json_field(std::string_view text, std::string_view name);
// The bytes that JsonObject::bytes() wrote under this name; nullopt if there are none.
std::optional<std::string> json_bytes(std::string_view text, std::string_view name);

}  // namespace mcds
