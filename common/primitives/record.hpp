// One line with a checksum: `<body> *<crc32 in 8 hex digits>`. Foreign writes, truncation and bit rot do not
// pass. The first byte of a body is a letter, so that no incr takes a record for a number.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mcds {

std::string seal(std::string_view body);
// Seals the body that `text` ends with, from `start` on.
void append_seal(std::string& text, std::size_t start);

// The body; nullopt when the checksum is missing or wrong.
std::optional<std::string_view> unseal(std::string_view line);

}  // namespace mcds
