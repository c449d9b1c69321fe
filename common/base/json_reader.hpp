// json_fault: decides what is JSON, for all text that is typed by a user or stored by any program. It accepts
// one value of RFC 8259 in UTF-8, nested at most `deepest_json` deep, without trailing bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mcds {

constexpr std::size_t deepest_json = 128;  // nested containers

struct JsonPart {
  enum class Kind { open, close, name, string, literal };
  Kind kind;
  std::string_view text;  // a bracket, the bytes of a name or string, or a number or word as written
  std::size_t depth;      // containers around it; a bracket does not count itself
  bool comma;             // precedes it
};
using JsonVisitor = std::function<void(const JsonPart&)>;

// Calls `visit` with each part in order, without recursion. Returns nullopt if the text is exactly one value,
// otherwise the position of the first byte that cannot be there, or 0 if it nests too deep; parts before
// it have been visited. With `comments`, those of C++ count as blanks.
std::optional<std::size_t> json_fault(std::string_view text, const JsonVisitor& visit = nullptr,
                                      bool comments = false);

// Appends the part as compact JSON, strings in their one spelling, with the comma or colon at its side.
void append_json_part(std::string& out, const JsonPart& part);

// Canonical JSON, one spelling for each value: RFC 8785 (JSON Canonicalization Scheme).

// Returns JSON with object members sorted by UTF-16 code units, numbers as ECMAScript prints them, no white
// space and minimal escapes. Throws Failure(bad_data) for text without a canonical form: invalid JSON or
// UTF-8, a lone surrogate, a duplicate object key, a number beyond a double, or an integer without an
// exponent that a double cannot hold exactly (two ids would share one key).
std::string canonical_json(std::string_view text);

}  // namespace mcds
