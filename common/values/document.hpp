// Input and Document: the bytes that decoders read, and the document that they build. Values of a document
// are identified by numbers, so that cycles and shared values need no ownership.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/values/values.hpp"

namespace mcds::values {

// Throws CorruptData: the bytes do not match the flags.
[[noreturn]] void fail(const std::string& what, std::size_t offset);

// The maximum nesting of containers, in the value and in its JSON.
constexpr std::size_t max_depth = 100;

// Reads bytes in order. Each function throws CorruptData if too few bytes are left.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  std::size_t offset() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::string_view rest() const { return bytes_.substr(at_); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1).front()); }
  std::string_view take(std::uint64_t size);
  // Returns the bytes before `end`, and also consumes `end`.
  std::string_view until(char end);
  void expect(std::string_view text);
  // Throws CorruptData unless all bytes have been read.
  void expect_end() const {
    if (left() > 0) fail("more bytes follow the value");
  }
  std::uint64_t big(std::size_t size);
  std::uint64_t little(std::size_t size);
  [[noreturn]] void fail(const std::string& what) const { values::fail(what, at_); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

using Id = std::uint32_t;

class Document {
 public:
  enum class Kind { json, bytes, list, map };
  struct Value {
    Kind kind;
    std::string text;       // JSON, or bytes; of a map: its class, if it is an object
    std::vector<Id> items;  // of a map: names and values alternate
  };

  explicit Document(std::size_t max_bytes) : max_bytes_(max_bytes), budget_(max_bytes) {}
  Value& operator[](Id id) { return values_[id]; }

  Id json(std::string text) { return add(Kind::json, std::move(text)); }
  Id null() { return json("null"); }
  bool is_json(Id id, std::string_view text) const {
    return values_[id].kind == Kind::json && values_[id].text == text;
  }
  Id boolean(bool value) { return json(value ? "true" : "false"); }
  Id bytes(std::string_view bytes) { return add(Kind::bytes, std::string(bytes)); }
  Id list() { return add(Kind::list, {}); }
  Id map() { return add(Kind::map, {}); }
  // Adds a map that starts with this member, whose name is not escaped: {"@set":…}.
  Id tagged(std::string_view tag, Id value);
  // Adds a map tagged @class.
  Id object(std::string_view name);
  // Adds a member whose name is not escaped.
  void tag(Id map, std::string_view tag, Id value);
  Id real(double value);
  // Adds a number as programs print it, INF and NaN included. Returns nullopt if the text is not a number.
  std::optional<Id> real(std::string_view text);
  // Adds a number, or {"@number":"…"} beyond 64 bits. Returns nullopt if the text is not an integer.
  std::optional<Id> integer(std::string_view text);
  // Adds bytes whose values are the characters of a text. Throws CorruptData.
  Id latin1(Id text);
  // Adds an integer from its magnitude, the lowest byte first.
  Id big_integer(std::string_view magnitude, bool negative);
  void push(Id container, Id item);
  void member(Id map, Id name, Id value);
  // Subtracts `bytes` from the total budget. Throws CorruptData if it is used up.
  void charge(std::size_t bytes);

  // Returns compact JSON. Throws CorruptData if it is too long or too deep.
  std::string text(Id root);

 private:
  Id add(Kind kind, std::string text);
  void write(Id id, std::size_t depth);
  void write_name(Id id, std::size_t depth);
  void check_length() const;

  std::size_t max_bytes_, budget_;
  std::vector<Value> values_;
  std::vector<std::uint32_t> shown_;  // by Id: the container's number in the text
  std::uint32_t containers_ = 0;
  bool in_name_ = false;  // inside a name, where containers are text and not counted
  std::string out_;
};

// Each function reads one value to the end of its bytes and returns it. Throws CorruptData.
Id read_php(Document& document, std::string_view bytes);
Id read_php_session(Document& document, std::string_view bytes);
Id read_igbinary(Document& document, std::string_view bytes);
Id read_pickle(Document& document, std::string_view bytes);
Id read_marshal(Document& document, std::string_view bytes);
// Reads the value of an entry of ActiveSupport::Cache::MemCacheStore of Rails 6.1, 7.0 or 7.1, and appends
// the encodings that it removed to `encoding`.
Id read_rails(Document& document, std::string_view bytes, std::size_t max_bytes,
              std::vector<std::string>& encoding);

// Decompresses zlib (or gzip), zstd, or one of sized-zlib, sized-zstd and sized-fastlz, which start with the
// length, and sets `name`. Throws CorruptData, also for more than `max_bytes`.
std::string decompress(std::string_view form, std::string_view bytes, std::size_t max_bytes,
                       std::string& name);

}  // namespace mcds::values
