#include "common/placement/key_hash.hpp"

#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <zlib.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "common/base/bytes.hpp"

namespace mcds::key_hash {

namespace {

std::uint32_t unsigned_byte(char c) {
  return static_cast<unsigned char>(c);
}
// Reads the byte through a signed char: 0x80… becomes 0xffffff80….
std::uint32_t signed_byte(char c) {
  return static_cast<std::uint32_t>(static_cast<signed char>(c));
}

template <typename Byte>
std::uint32_t jenkins_one_at_a_time(std::string_view key, Byte byte) {
  std::uint32_t value = 0;
  for (const char c : key) {
    value += byte(c);
    value += value << 10;
    value ^= value >> 6;
  }
  value += value << 3;
  value ^= value >> 11;
  return value + (value << 15);
}

constexpr std::array<std::uint32_t, 256> ccitt_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
    table[i] = crc & 0xffffU;
  }
  return table;
}

struct SipState {
  std::uint64_t a = 0x736f6d6570736575U, b = 0x646f72616e646f6dU, c = 0x6c7967656e657261U,
                d = 0x7465646279746573U;

  void round() {
    a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
    c += d, d = std::rotl(d, 16) ^ c;
    a += d, d = std::rotl(d, 21) ^ a;
    c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
  }
  void word(std::uint64_t word) {
    d ^= word;
    round();
    a ^= word;
  }
};

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

std::uint32_t crc32_continued(std::uint32_t crc, std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

std::uint64_t crc32(std::string_view key) {
  return crc32_continued(0, key);
}
std::uint64_t crc31(std::string_view key) {
  return crc32(key) & 0x7fffffffU;
}

std::uint64_t crc16(std::string_view key) {
  static constexpr auto table = ccitt_table();
  std::uint32_t crc = 0;
  for (const char c : key) crc = (crc << 8) ^ table[((crc >> 8) ^ unsigned_byte(c)) & 0xffU];
  return crc;
}

std::uint64_t one_at_a_time_signed(std::string_view key) {
  return jenkins_one_at_a_time(key, signed_byte);
}
std::uint64_t one_at_a_time(std::string_view key) {
  return jenkins_one_at_a_time(key, unsigned_byte);
}

std::uint64_t always_0(std::string_view) {
  return 0;
}

std::uint64_t java(std::string_view key) {
  std::uint32_t hash = 0;
  for (const char16_t unit : utf16_of(key)) hash = 31 * hash + unit;
  return hash;
}

std::uint64_t java_abs(std::string_view key) {
  const std::int64_t hash = static_cast<std::int32_t>(java(key));
  return static_cast<std::uint64_t>(hash < 0 ? -hash : hash);
}

std::uint64_t java_times_33(std::string_view key) {
  std::uint64_t hash = 0;
  for (const char16_t unit : utf16_of(key)) hash = hash * 33 + unit;
  return static_cast<std::int64_t>(hash) < 0 ? 0 - hash : hash;
}

std::uint64_t js_fnv1a_32(std::string_view key) {
  auto hash = static_cast<std::int32_t>(fnv_start_32);
  for (const char16_t unit : utf16_of(key)) {
    const double product = static_cast<double>(hash ^ unit) * static_cast<double>(fnv_prime_32);
    hash = static_cast<std::int32_t>(static_cast<std::int64_t>(product));
  }
  return static_cast<std::uint32_t>(hash);
}
std::array<std::uint32_t, 3> crc32_digits(std::string_view key) {
  std::string bytes;
  for (const char16_t unit : utf16_of(key)) bytes += static_cast<char>(unit & 0xff);
  const std::string digits = std::to_string(crc32(bytes));
  std::array<std::uint32_t, 3> words{};
  for (std::size_t i = 0; i < digits.size(); ++i)
    words[i / 4] |= std::uint32_t{static_cast<unsigned char>(digits[i])} << (i % 4 * 8);
  return words;
}

std::uint64_t siphash13(std::string_view key) {
  SipState state;
  std::uint64_t word = 0;
  std::size_t size = 0;
  const auto feed = [&](std::uint64_t byte) {
    word |= byte << (8 * (size % 8));
    if (++size % 8 == 0) state.word(std::exchange(word, 0));
  };
  for (const char c : key) feed(unsigned_byte(c));
  feed(0xff);
  state.word(word | (static_cast<std::uint64_t>(size) << 56));
  state.c ^= 0xff;
  for (int i = 0; i < 3; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

// Key hashes made of cryptographic digests.
namespace {

const std::uint8_t* data_of(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

template <typename Context, std::size_t count, typename Init, typename Update, typename Digest>
std::array<std::uint32_t, count> first_words(std::string_view bytes, Init init, Update update,
                                             Digest digest) {
  Context context;
  init(&context);
  update(&context, bytes.size(), data_of(bytes));
  std::array<std::uint32_t, count> words;
  digest(&context, sizeof words, reinterpret_cast<std::uint8_t*>(words.data()));
  return words;
}

}  // namespace

// Uses the compression function directly: the streaming interface takes twice as long for keys of one block.
std::array<std::uint32_t, 4> md5_words(std::string_view bytes) {
  std::array<std::uint32_t, 4> state{0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= 64; bytes.remove_prefix(64)) nettle_md5_compress(state.data(), data_of(bytes));
  std::array<std::uint8_t, 128> last{};
  if (!bytes.empty()) std::memcpy(last.data(), bytes.data(), bytes.size());
  last[bytes.size()] = 0x80;
  const std::size_t end = bytes.size() < 56 ? 64 : 128;
  std::memcpy(last.data() + end - 8, &bits, sizeof bits);
  nettle_md5_compress(state.data(), last.data());
  if (end == 128) nettle_md5_compress(state.data(), last.data() + 64);
  return state;
}

std::array<std::uint32_t, 5> sha1_words(std::string_view bytes) {
  return first_words<sha1_ctx, 5>(bytes, sha1_init, sha1_update, sha1_digest);
}

std::array<std::uint32_t, 4> sha256_words(std::string_view bytes) {
  return first_words<sha256_ctx, 4>(bytes, sha256_init, sha256_update, sha256_digest);
}

std::array<std::uint32_t, 4> sha384_words(std::string_view bytes) {
  return first_words<sha512_ctx, 4>(bytes, sha384_init, sha512_update, sha384_digest);
}

std::array<std::uint32_t, 4> sha512_words(std::string_view bytes) {
  return first_words<sha512_ctx, 4>(bytes, sha512_init, sha512_update, sha512_digest);
}

std::uint64_t md5_top64(std::string_view key) {
  const auto words = md5_words(key);
  return (std::uint64_t{__builtin_bswap32(words[0])} << 32) | __builtin_bswap32(words[1]);
}

std::uint64_t hex_top64(std::string_view hex) {
  std::uint64_t value = 0;
  std::from_chars(hex.data(), hex.data() + std::min<std::size_t>(hex.size(), 16), value, 16);
  return value;
}

}  // namespace mcds::key_hash
