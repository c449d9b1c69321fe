#include "common/base/bytes.hpp"

#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace mcds {

namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

template <typename Context, std::size_t size, typename Init, typename Update, typename Digest>
std::string digest_hex(std::string_view bytes, Init init, Update update, Digest digest) {
  Context context;
  init(&context);
  update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  std::array<std::uint8_t, size> result{};
  digest(&context, result.size(), result.data());
  std::string text;
  for (const std::uint8_t byte : result) append_hex(text, byte);
  return text;
}

// Tests a byte, or each byte of a block.
constexpr auto needs_encoding = [](auto byte) {
  return (byte <= 0x20) | (byte >= 0x7f) | (byte == '%') | (byte == ':');
};

// Returns the length of the valid UTF-8 sequence (RFC 3629) at the start of `bytes`, or 0.
std::size_t utf8_sequence(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < bytes.size() && at(i) >= low && at(i) <= high;
  };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

void append_json_escape(std::string& out, char c) {
  constexpr std::string_view named = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
  out += '\\';
  if (const std::size_t at = named.find(c); at != std::string_view::npos) {
    out += letters[at];
    return;
  }
  out += "u00";
  append_hex(out, static_cast<unsigned char>(c));
}

// Returns up to eight bytes as one word.
std::uint64_t first_word(std::string_view bytes) {
  std::uint64_t word = 0;
  if (bytes.size() >= sizeof word) {
    std::memcpy(&word, bytes.data(), sizeof word);
  } else {
    std::memcpy(&word, bytes.data(), bytes.size());
  }
  return word;
}

bool is_ascii(std::uint64_t word) {
  return (word & 0x8080808080808080) == 0;
}

// Copies 8 to 16 bytes as two overlapping words, and 1 to 3 likewise as bytes: a call would cost more than
// that.
inline char* copy_part(char* to, std::string_view part) {
  const std::size_t size = part.size();
  const char* from = part.data();
  if (size > 16) {
    std::memcpy(to, from, size);
  } else if (size >= 8) {
    std::memcpy(to, from, 8);
    std::memcpy(to + size - 8, from + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(to, from, 4);
    std::memcpy(to + size - 4, from + size - 4, 4);
  } else if (size > 0) {
    to[0] = from[0];
    to[size / 2] = from[size / 2];
    to[size - 1] = from[size - 1];
  }
  return to + size;
}

using Block = unsigned char __attribute__((vector_size(16)));

Block block_at(const char* bytes) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  return block;
}

// Returns true if any byte passes the test, which is applied to blocks. The last two blocks may overlap.
template <typename Test>
bool any_byte(std::string_view bytes, const Test& test) {
  constexpr std::size_t size = sizeof(Block);
  std::array<char, size> few;
  if (bytes.size() < size) {
    few.fill('x');  // which passes no test
    copy_part(few.data(), bytes);
    bytes = {few.data(), size};
  }
  auto found = test(block_at(bytes.data() + bytes.size() - size));
  for (; bytes.size() > size; bytes.remove_prefix(size)) found |= test(block_at(bytes.data()));
  std::array<std::uint64_t, 2> halves;
  std::memcpy(halves.data(), &found, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

}  // namespace

std::string hex(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4) text[i] = hex_digits[value & 15];
  return text;
}

std::string hex64(std::uint64_t value) {
  return hex(value, 16);
}

void append_hex(std::string& out, unsigned char byte) {
  out += hex_digits[byte >> 4];
  out += hex_digits[byte & 15];
}

std::optional<std::uint64_t> parse_hex64(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  return parse_number<std::uint64_t>(text, 16);
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  return parse_number<std::uint64_t>(text);
}

std::optional<std::uint64_t> parse_padded_u64(std::string_view text) {
  return parse_u64(text.substr(0, text.find_last_not_of(' ') + 1));  // npos + 1 is 0
}
std::optional<std::int64_t> parse_i64(std::string_view text) {
  return parse_number<std::int64_t>(text);
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string base64(std::string_view bytes) {
  std::string text(BASE64_ENCODE_RAW_LENGTH(bytes.size()), '\0');
  base64_encode_raw(text.data(), bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  return text;
}

std::optional<std::string> parse_base64(std::string_view text) {
  base64_decode_ctx context;
  base64_decode_init(&context);
  std::string bytes(BASE64_DECODE_LENGTH(text.size()), '\0');
  std::size_t size = bytes.size();
  auto* out = reinterpret_cast<std::uint8_t*>(bytes.data());
  if (base64_decode_update(&context, &size, out, text.size(), text.data()) != 1) return std::nullopt;
  if (base64_decode_final(&context) != 1) return std::nullopt;
  bytes.resize(size);
  return bytes;
}

void append_all(std::string& out, std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  // Short texts are joined here first: growing `out` would fill the new bytes with zeros.
  std::array<char, 512> together;
  if (size <= together.size()) {
    char* to = together.data();
    for (const std::string_view part : parts) to = copy_part(to, part);
    out.append(together.data(), size);
    return;
  }
  size += out.size();
  if (size > out.capacity()) out.reserve(std::max(size, 2 * out.capacity()));
  for (const std::string_view part : parts) out += part;
}

CodePoint first_code_point(std::string_view utf8) {
  const std::size_t size = utf8_sequence(utf8);
  const auto lead = static_cast<unsigned char>(utf8.front());
  char32_t code = size < 2 ? lead : lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) code = (code << 6) | (static_cast<unsigned char>(utf8[i]) & 0x3fU);
  return {code, size};
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length =
        is_ascii(first_word(bytes)) ? std::min<std::size_t>(8, bytes.size()) : utf8_sequence(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string percent_encode(std::string_view bytes) {
  std::string text;
  append_percent_encoded(text, bytes);
  return text;
}

void append_percent_encoded(std::string& text, std::string_view bytes) {
  if (!any_byte(bytes, needs_encoding)) {
    text += bytes;
    return;
  }
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (needs_encoding(byte)) {
      text += '%';
      append_hex(text, byte);
    } else {
      text += c;
    }
  }
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    const auto byte = i + 2 < text.size() ? parse_number<unsigned>(text.substr(i + 1, 2), 16) : std::nullopt;
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
    i += 2;
  }
  return bytes;
}

std::string_view take_word(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::uint32_t crc32(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string checksum(std::string_view bytes) {
  return hex(crc32(bytes), 8);
}

std::string md5_hex(std::string_view bytes) {
  return digest_hex<md5_ctx, MD5_DIGEST_SIZE>(bytes, md5_init, md5_update, md5_digest);
}

std::string sha1_hex(std::string_view bytes) {
  return digest_hex<sha1_ctx, SHA1_DIGEST_SIZE>(bytes, sha1_init, sha1_update, sha1_digest);
}

std::string sha256_hex(std::string_view bytes) {
  return digest_hex<sha256_ctx, SHA256_DIGEST_SIZE>(bytes, sha256_init, sha256_update, sha256_digest);
}

std::string digest128(std::string_view bytes) {
  return sha256_hex(bytes).substr(0, 32);
}

bool is_plain_json(std::string_view bytes) {
  return !any_byte(
      bytes, [](Block block) { return (block < 0x20) | (block >= 0x7f) | (block == '"') | (block == '\\'); });
}

bool is_ascii_without_del(std::string_view bytes) {
  return !any_byte(bytes, [](Block block) { return block >= 0x7f; });
}

bool is_one_word(std::string_view bytes) {
  return !any_byte(bytes, [](Block block) { return (block < 0x21) | (block == 0x7f); });
}

bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= max_identifier_size && is_one_word(text) &&
         text.find_first_of(":,") == std::string_view::npos;
}

std::string json_quote(std::string_view utf8) {
  std::string text;
  text.reserve(utf8.size() + 2);
  append_json_quoted(text, utf8);
  return text;
}

void append_json_quoted(std::string& out, std::string_view utf8) {
  if (is_plain_json(utf8)) return append_all(out, {"\"", utf8, "\""});
  out += '"';
  std::size_t plain = 0;  // start of a run that needs no escape
  for (std::size_t i = 0; i < utf8.size();) {
    const std::size_t size = utf8_sequence(utf8.substr(i));
    const char c = utf8[i];
    if (size == 0 || static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      out += utf8.substr(plain, i - plain);
      plain = i + 1;
      if (size == 0)
        out += "\xef\xbf\xbd";
      else
        append_json_escape(out, c);
    }
    i += std::max<std::size_t>(size, 1);
  }
  append_all(out, {utf8.substr(plain), "\""});
}

}  // namespace mcds
