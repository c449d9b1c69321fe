// Keys as clients written in languages with Unicode strings see them. Malformed UTF-8 becomes U+FFFD, as
// there.
#pragma once

#include <string>
#include <string_view>

namespace mcds {

std::u16string utf16_of(std::string_view utf8);

// pymemcache: every code point cut to its low 8 bits. Malformed bytes stay as they are.
std::string low_bytes_of(std::string_view utf8);

}  // namespace mcds
