#include "common/placement/unicode.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

template <typename Good, typename Bad>
void for_each_code_point(std::string_view utf8, Good good, Bad bad) {
  while (!utf8.empty()) {
    const auto [value, size] = first_code_point(utf8);
    size == 0 ? bad(utf8.front()) : good(value);
    utf8.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

}  // namespace

std::u16string utf16_of(std::string_view utf8) {
  std::u16string text;
  const auto add = [&](char32_t value) {
    if (value < 0x10000) {
      text += static_cast<char16_t>(value);
    } else {
      text += static_cast<char16_t>(0xd7c0 + (value >> 10));
      text += static_cast<char16_t>(0xdc00 + (value & 0x3ff));
    }
  };
  for_each_code_point(utf8, add, [&](char) { text += u'\ufffd'; });
  return text;
}

std::string low_bytes_of(std::string_view utf8) {
  std::string text;
  for_each_code_point(
      utf8, [&](char32_t value) { text += static_cast<char>(value & 0xff); }, [&](char c) { text += c; });
  return text;
}

}  // namespace mcds
