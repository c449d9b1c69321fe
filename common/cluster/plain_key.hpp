// Which keys memcached's text commands can carry.
#pragma once

#include <string_view>

#include "common/base/bytes.hpp"

namespace mcds {

// No spaces and no control characters; clients of the binary protocol can store others.
inline bool is_plain_key(std::string_view key) {
  return is_one_word(key);
}

}  // namespace mcds
