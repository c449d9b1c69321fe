// Converts bytes to text and back: hex, base64, percent-encoding, UTF-8, checksums, digests. The functions
// accept any input, and return nullopt for input that they cannot decode.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

// Return the lowest hex digits of a number, in lower case: `digits` of them, or 16.
std::string hex(std::uint64_t value, std::size_t digits);
std::string hex64(std::uint64_t value);
std::optional<std::uint64_t> parse_hex64(std::string_view text);
// Appends two hex digits.
void append_hex(std::string& out, unsigned char byte);

// Returns true for ASCII digits, whatever the locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// Returns true for one or more ASCII digits.
bool is_digits(std::string_view text);
// Parses decimal digits without sign or spaces. Returns nullopt for anything else and beyond 64 bits.
std::optional<std::uint64_t> parse_u64(std::string_view text);
// Also accepts spaces after the digits, as memcached's decr leaves them.
std::optional<std::uint64_t> parse_padded_u64(std::string_view text);
std::optional<std::int64_t> parse_i64(std::string_view text);
std::optional<double> parse_double(std::string_view text);

std::string base64(std::string_view bytes);
std::optional<std::string> parse_base64(std::string_view text);

// Appends all parts and grows `out` once. Most text that batches print and send consists of small parts.
void append_all(std::string& out, std::initializer_list<std::string_view> parts);

bool is_utf8(std::string_view bytes);
// The first character of a non-empty text.
struct CodePoint {
  char32_t value;
  std::size_t size;  // in bytes; 0: malformed (RFC 3629)
};
CodePoint first_code_point(std::string_view utf8);
// Appends a character as UTF-8.
void append_utf8(std::string& out, std::uint32_t code);
// Calls `good` with each character and `bad` with each byte that belongs to none.
template <typename Good, typename Bad>
void for_each_code_point(std::string_view utf8, const Good& good, const Bad& bad) {
  while (!utf8.empty()) {
    const auto [value, size] = first_code_point(utf8);
    size == 0 ? bad(utf8.front()) : good(value);
    utf8.remove_prefix(size == 0 ? 1 : size);
  }
}

// Encodes bytes that a key part must not contain: controls, space, DEL, '%', ':' and bytes >= 0x80.
std::string percent_encode(std::string_view bytes);
void append_percent_encoded(std::string& text, std::string_view bytes);
std::optional<std::string> percent_decode(std::string_view text);

// Returns the text up to the next separator, and moves `text` past it.
std::string_view take_word(std::string_view& text, char separator = ' ');
inline std::string_view take_line(std::string_view& text) {
  return take_word(text, '\n');
}
// Returns the next word after any spaces, and moves `text` to its end.
inline std::string_view next_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}
// Returns the text without the mark with which Windows editors begin files.
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
}
// Returns the text without the blanks at its ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " ");
// Returns the parts between separators: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

// Joins the entries by a separator; `text_of` returns the text of each.
template <typename Range, typename TextOf = std::identity>
std::string joined(const Range& entries, std::string_view separator = ",", TextOf text_of = {}) {
  std::string list;
  for (const auto& entry : entries)
    append_all(list, {list.empty() ? "" : separator, std::invoke(text_of, entry)});
  return list;
}

// Returns the CRC-32 (IEEE), from zlib.
std::uint32_t crc32(std::string_view bytes);
// Returns crc32 as 8 lower-case hex digits: the checksum of lines and records.
std::string checksum(std::string_view bytes);
// Return lower-case hex digests, from nettle: 32, 40 and 64 digits.
std::string md5_hex(std::string_view bytes);
std::string sha1_hex(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);
// Returns the first 32 hex digits of SHA-256, which replace a name that is too long for a key.
std::string digest128(std::string_view bytes);

// Returns a JSON string literal (RFC 8259) with quotes; control characters are escaped. Input should be
// UTF-8: each byte that belongs to no character becomes U+FFFD.
std::string json_quote(std::string_view utf8);
void append_json_quoted(std::string& out, std::string_view utf8);
// Returns true for visible ASCII that a JSON string needs no escape for.
bool is_plain_json(std::string_view bytes);
bool is_ascii_without_del(std::string_view bytes);
// Returns true if there are no spaces and no ASCII control characters, so that memcached's text commands can
// carry the bytes as a key. Clients of the binary protocol can store other keys.
bool is_one_word(std::string_view bytes);
// Returns true for a word that may stand where a layout has an identifier (token, incarnation, segment, id),
// whichever program made it. Ours are 16 hex digits.
constexpr std::size_t max_identifier_size = 64;
bool is_identifier(std::string_view text);

}  // namespace mcds
