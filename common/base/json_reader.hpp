// The one gate for JSON text: all that is taken for JSON, typed by a user or stored by anybody, was read by
// this to its end. It passes one value of RFC 8259 in UTF-8, no deeper than `deepest_json`, without a byte
// behind it.
#pragma once

#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mcds {

constexpr std::size_t deepest_json = 128;  // containers in each other

struct JsonToken {
  std::string_view text;  // a mark, or a string with its quotes, a number, a word
  std::size_t depth = 0;  // containers around it; a bracket is not around itself
  bool is_key = false;
};

// Token by token, without recursion. What next() has returned may still turn out to belong to no JSON:
// valid() says.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text);
  // nullopt at the end, and at the first fault.
  std::optional<JsonToken> next();
  // After next() returned nullopt: the text is one value, whole.
  bool valid() const { return state_ == State::done && rest_.empty(); }
  // The bytes taken so far: after a fault, where it is; 0 of a text that is not UTF-8.
  std::size_t position() const { return size_ - rest_.size(); }

 private:
  enum class State { value, value_or_end, key, key_or_end, colon, comma_or_end, done, wrong };

  std::optional<JsonToken> fault();
  std::optional<JsonToken> take(std::size_t size, State next, bool is_key = false);
  std::optional<JsonToken> open();
  std::optional<JsonToken> close();
  std::optional<JsonToken> take_value();
  State after_value() const { return depth_ == 0 ? State::done : State::comma_or_end; }

  std::string_view rest_;
  std::size_t size_;
  State state_ = State::value;
  std::bitset<deepest_json> in_object_;
  std::size_t depth_ = 0;
};

// The bytes of a string token that a JsonReader passed.
std::string json_string_bytes(std::string_view token);

// One spelling for one JSON value: RFC 8785 (JSON Canonicalization Scheme).

// Object members sorted by UTF-16 code units, numbers as ECMAScript prints them, no white space, minimal
// escapes.
// Throws Failure(bad_data) for what has no canonical form: no JSON, invalid UTF-8 or a lone surrogate, a
// duplicate object key, a number beyond a double, an integer that a double cannot hold exactly (two ids would
// share one key).
std::string canonical_json(std::string_view text);

}  // namespace mcds
