// One spelling for one JSON value: RFC 8785 (JSON Canonicalization Scheme).
#pragma once

#include <string>
#include <string_view>

namespace mcds {

// Object members sorted by UTF-16 code units, numbers as ECMAScript prints them, no white space, minimal
// escapes.
// Throws Failure(bad_data) for what has no canonical form: no JSON, invalid UTF-8 or a lone surrogate, a
// duplicate object key, a number beyond a double, an integer that a double cannot hold exactly (two ids would
// share one key).
std::string canonical_json(std::string_view text);

}  // namespace mcds
