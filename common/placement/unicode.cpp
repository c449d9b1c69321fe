#include "common/placement/unicode.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

struct CodePoint {
  char32_t value;
  std::size_t size;  // bytes; 0: malformed
};

CodePoint first_code_point(std::string_view utf8) {
  const auto lead = static_cast<unsigned char>(utf8.front());
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (!is_utf8(utf8.substr(0, size))) return {0, 0};
  char32_t value = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) value = (value << 6) | (static_cast<unsigned char>(utf8[i]) & 0x3fU);
  return {value, size};
}

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
