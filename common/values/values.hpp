// Decodes values as their clients do: flags and bytes to JSON. The functions execute nothing and load no
// class, and sizes that a value declares are not allocated before its bytes are read.
//
// A format belongs to a client and defines the meaning of its flags, which differs between clients (2: an
// integer, a boolean, a float, JSON, compressed). mcds-values(7) has the table.
//
// Types that JSON lacks: {"@b64":"…"} for bytes that are not UTF-8, {"@number":"…"} for infinities, NaN and
// integers beyond 64 bits, {"@set":[…]}, {"@class":"…",…members} for objects,
// {"@global":"module.name","args":[…]} for calls in a pickle. {"@ref":n} stands for an array or object that
// was shown before: the n-th of the document, counted by opening brackets from 1, these forms included. A
// member name that starts with @ gets another @ in front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

// Rules are words FLAGS=NAME, FLAGS/MASK=NAME or otherwise=NAME. The first that matches decides; without a
// mask, all these flags must be set.
struct ValueFormat {
  std::string_view name;
  std::string_view clients;       // with the versions that were compared
  std::string_view profiles;      // placement profiles, by the beginnings of their names
  std::string_view compressions;  // rules, applied first
  std::string_view forms;         // rules; the last one always matches
};

std::span<const ValueFormat> value_formats();
// Returns the format with this name, or nullptr.
const ValueFormat* value_format_named(std::string_view name);
// Returns the usual format of the client of this placement profile, or nullptr if none is known.
const ValueFormat* value_format_of(std::string_view profile);

struct DecodedValue {
  std::vector<std::string> encoding;  // the outermost first
  std::string json;                   // empty: not decoded
  bool guessed = false;               // from the bytes, without a format
  std::string problem;                // why, and at which byte; or how flags and bytes disagree
};

// Returns the decoded value. Decompressed bytes, the document and its JSON may each take `max_bytes`; more is
// reported as a problem, not thrown.
DecodedValue decode_value(const ValueFormat& format, std::uint32_t flags, std::string_view bytes,
                          std::size_t max_bytes);

}  // namespace mcds
