// Which keys memcached's text commands can carry.
#pragma once

#include <algorithm>
#include <string_view>

namespace mcds {

// No spaces and no control characters; clients of the binary protocol can store others.
inline bool is_plain_key(std::string_view key) {
  return std::none_of(key.begin(), key.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7f;
  });
}

}  // namespace mcds
