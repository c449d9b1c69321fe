// Bytes to text and back: hex, base64, percent-encoding, UTF-8, checksums, digests. All total functions:
// anything may be passed in; what cannot be decoded is std::nullopt.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

// 16 lower-case hex digits.
std::string hex64(std::uint64_t value);
std::optional<std::uint64_t> parse_hex64(std::string_view text);
// Two of them.
void append_hex(std::string& out, unsigned char byte);

// Decimal without sign, spaces or leading '+'; nullopt when empty, too large or anything else.
std::optional<std::uint64_t> parse_u64(std::string_view text);
// The same with spaces after the digits, as left by memcached's decr.
std::optional<std::uint64_t> parse_padded_u64(std::string_view text);
std::optional<std::int64_t> parse_i64(std::string_view text);
std::optional<double> parse_double(std::string_view text);

std::string base64(std::string_view bytes);
std::optional<std::string> parse_base64(std::string_view text);

// Appends them all, growing `out` once: most of what batches print and send is put together from small
// pieces.
void append_all(std::string& out, std::initializer_list<std::string_view> parts);

bool is_utf8(std::string_view bytes);
// The character that `utf8`, which is not empty, begins with.
struct CodePoint {
  char32_t value;
  std::size_t size;  // bytes; 0: malformed (RFC 3629)
};
CodePoint first_code_point(std::string_view utf8);
// Appends a character.
void append_utf8(std::string& out, std::uint32_t code);
// What each is given to: the value of a character, or a byte that belongs to none.
template <typename Good, typename Bad>
void for_each_code_point(std::string_view utf8, const Good& good, const Bad& bad) {
  while (!utf8.empty()) {
    const auto [value, size] = first_code_point(utf8);
    size == 0 ? bad(utf8.front()) : good(value);
    utf8.remove_prefix(size == 0 ? 1 : size);
  }
}

// Percent-encodes every byte that may not stand in a key part: control characters, space, DEL, '%', ':' and
// bytes >= 0x80.
std::string percent_encode(std::string_view bytes);
void append_percent_encoded(std::string& text, std::string_view bytes);
std::optional<std::string> percent_decode(std::string_view text);

// What stands before the next separator; `text` moves behind it.
std::string_view take_word(std::string_view& text, char separator = ' ');
inline std::string_view take_line(std::string_view& text) {
  return take_word(text, '\n');
}
// The parts between separators; one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

// With commas between them, or what else; of each what `text_of` says.
template <typename Range, typename TextOf = std::identity>
std::string joined(const Range& entries, std::string_view separator = ",", TextOf text_of = {}) {
  std::string list;
  for (const auto& entry : entries)
    append_all(list, {list.empty() ? "" : separator, std::invoke(text_of, entry)});
  return list;
}

// CRC-32 (IEEE), from zlib.
std::uint32_t crc32(std::string_view bytes);
// 8 lower-case hex digits of crc32: the checksum of lines and records.
std::string checksum(std::string_view bytes);
// Lower-case hex digests, from nettle: 32, 40 and 64 digits.
std::string md5_hex(std::string_view bytes);
std::string sha1_hex(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);
// The first 32 hex digits of SHA-256: stands for a name too long for a key.
std::string digest128(std::string_view bytes);

// A JSON string literal (RFC 8259), quotes included; control characters escaped, the rest as it is. Input
// should be UTF-8: each byte that belongs to no character becomes U+FFFD.
std::string json_quote(std::string_view utf8);
void append_json_quoted(std::string& out, std::string_view utf8);
// Whether these bytes stand in a JSON string as they are, and are visible: ASCII with nothing to escape.
bool is_plain_json(std::string_view bytes);
bool is_ascii_without_del(std::string_view bytes);
// No spaces and no control characters of ASCII: a key that memcached's text commands can carry. Clients of
// the binary protocol can store others.
bool is_one_word(std::string_view bytes);

}  // namespace mcds
