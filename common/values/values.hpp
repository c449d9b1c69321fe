// Values as their clients read them: flags and bytes in, JSON out. Pure functions: nothing is executed, no
// class is loaded, and what a value claims of itself takes no memory before it is there.
//
// A format belongs to a client and says what its flags mean; the same flag means different things elsewhere
// (2: an integer, a boolean, a float, JSON, compressed). mcds-values(7) has the table.
//
// JSON forms of what JSON does not have: {"@b64":"…"} for bytes that are not UTF-8, {"@number":"…"} for
// infinities, NaN and integers beyond 64 bits, {"@set":[…]}, {"@class":"…",…members} for objects,
// {"@global":"module.name","args":[…]} for what a pickle would call. {"@ref":n} stands for an array or object
// that was shown already: the n-th of the document, counted by its opening brackets from 1, these forms
// included. A member's own name that begins with @ has another @ in front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

// Rules are words FLAGS=NAME, FLAGS/MASK=NAME or otherwise=NAME; the first that matches says what the bytes
// are. Without a mask all of these flags are set.
struct ValueFormat {
  std::string_view name;
  std::string_view clients;       // with the versions compared with
  std::string_view profiles;      // of placement, by the beginnings of their names
  std::string_view compressions;  // rules; undone first
  std::string_view forms;         // rules; the last matches always
};

std::span<const ValueFormat> value_formats();
// Returns the format with this name, or nullptr.
const ValueFormat* value_format_named(std::string_view name);
// Returns the usual format of the client that this placement profile belongs to, or nullptr if none is known.
const ValueFormat* value_format_of(std::string_view profile);

struct DecodedValue {
  std::vector<std::string> encoding;  // the outermost first
  std::string json;                   // empty: not understood
  bool guessed = false;               // from the bytes, by no format
  std::string problem;                // why, and at which byte; or in what flags and bytes disagree
};

// Returns what the bytes hold. Decompressed bytes, the document and its JSON each take at most `max_bytes`;
// more is a problem, not an exception.
DecodedValue decode_value(const ValueFormat& format, std::uint32_t flags, std::string_view bytes,
                          std::size_t max_bytes);

}  // namespace mcds
