// The key hashes of memcached clients, bit for bit as each client computes them on x86-64. Hashes named
// `…_signed` read the key through a signed `char` and differ for bytes >= 0x80.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mcds {

using KeyHash = std::uint64_t (*)(std::string_view key);

namespace key_hash {

template <KeyHash hash>
std::uint64_t bits_16_to_30(std::string_view key) {
  return (hash(key) >> 16) & 0x7fffU;
}
// Same hash, ordered as a signed integer of 32 bits.
template <KeyHash hash>
std::uint64_t signed_order(std::string_view key) {
  return hash(key) ^ 0x80000000U;
}
// Same hash, with 0 replaced by 1.
template <KeyHash hash>
std::uint64_t or_1(std::string_view key) {
  const std::uint64_t value = hash(key);
  return value == 0 ? 1 : value;
}

std::uint64_t crc32(std::string_view key);
constexpr KeyHash crc15 = bits_16_to_30<crc32>;
std::uint64_t crc31(std::string_view key);  // crc32 without its top bit
std::uint64_t crc16(std::string_view key);  // twemproxy's: CCITT in a 32-bit accumulator that is never masked
constexpr KeyHash crc32_or_1 = or_1<crc32>;
constexpr KeyHash crc15_or_1 = or_1<crc15>;
constexpr KeyHash crc15_bits_16_to_30 = bits_16_to_30<crc15>;  // xmemcached: always 0

// Return the first words of a digest, little-endian.
std::array<std::uint32_t, 4> md5_words(std::string_view bytes);
std::array<std::uint32_t, 5> sha1_words(std::string_view bytes);
std::array<std::uint32_t, 4> sha256_words(std::string_view bytes);
std::array<std::uint32_t, 4> sha384_words(std::string_view bytes);
std::array<std::uint32_t, 4> sha512_words(std::string_view bytes);
// Returns the first of these words.
template <auto digest_words>
std::uint64_t first_word(std::string_view key) {
  return digest_words(key)[0];
}
constexpr KeyHash md5 = first_word<md5_words>;
constexpr KeyHash sha1 = first_word<sha1_words>;
constexpr KeyHash sha256 = first_word<sha256_words>;
constexpr KeyHash sha384 = first_word<sha384_words>;
constexpr KeyHash sha512 = first_word<sha512_words>;
std::uint64_t md5_top64(
    std::string_view key);  // the first 8 bytes, big-endian: orders as the whole digest does
std::uint64_t hex_top64(std::string_view hex);  // from the hex digits of such a digest
// Returns word 0 of such a digest in big-endian order.
template <KeyHash digest>
std::uint64_t big_endian(std::string_view key) {
  return __builtin_bswap32(static_cast<std::uint32_t>(digest(key)));
}

std::uint64_t one_at_a_time_signed(std::string_view key);
std::uint64_t one_at_a_time(std::string_view key);

// Returns the key as clients with UTF-16 strings see it. Malformed UTF-8 becomes U+FFFD, as in these clients.
std::u16string utf16_of(std::string_view utf8);
// npm's hashring 0.0: three groups of four digits of the CRC-32 as a decimal number.
std::array<std::uint32_t, 3> crc32_digits(std::string_view key);
constexpr KeyHash first_crc32_digits = first_word<crc32_digits>;

// The units that a client hashes: bytes, bytes through a signed char (0x80… becomes 0xffffff80…), or UTF-16
// code units.
enum class Units { bytes, signed_bytes, utf16 };
template <Units units, typename Take>
void for_each_unit(std::string_view key, const Take& take) {
  if constexpr (units == Units::utf16) {
    for (const char16_t unit : utf16_of(key)) take(std::uint32_t{unit});
  } else {
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      take(units == Units::bytes ? std::uint32_t{byte}
                                 : static_cast<std::uint32_t>(static_cast<signed char>(c)));
    }
  }
}

// FNV-1 and FNV-1a, with the width of `start`.
template <Units units, auto start, decltype(start) prime>
std::uint64_t fnv1(std::string_view key) {
  auto state = start;
  for_each_unit<units>(key, [&](std::uint32_t unit) { state = (state * prime) ^ unit; });
  return state;
}
template <Units units, auto start, decltype(start) prime>
std::uint64_t fnv1a(std::string_view key) {
  auto state = start;
  for_each_unit<units>(key, [&](std::uint32_t unit) { state = (state ^ unit) * prime; });
  return state;
}
constexpr std::uint32_t fnv_start_32 = 2166136261U, fnv_prime_32 = 16777619U;
constexpr std::uint64_t fnv_start_64 = 0xcbf29ce484222325U, fnv_prime_64 = 0x100000001b3U;
// In a 64-bit FNV, the low 32 bits never depend on the high ones.
constexpr std::uint32_t fnv_start_low = 0x84222325U, fnv_prime_low = 0x1b3U;

constexpr KeyHash fnv1_32_signed = fnv1<Units::signed_bytes, fnv_start_32, fnv_prime_32>;
constexpr KeyHash fnv1a_32_signed = fnv1a<Units::signed_bytes, fnv_start_32, fnv_prime_32>;
constexpr KeyHash fnv1_32 = fnv1<Units::bytes, fnv_start_32, fnv_prime_32>;
constexpr KeyHash fnv1a_32 = fnv1a<Units::bytes, fnv_start_32, fnv_prime_32>;
constexpr KeyHash fnv1_64 = fnv1<Units::bytes, fnv_start_64, fnv_prime_64>;
constexpr KeyHash fnv1a_64 = fnv1a<Units::bytes, fnv_start_64, fnv_prime_64>;
constexpr KeyHash fnv1_64_low = fnv1<Units::bytes, fnv_start_low, fnv_prime_low>;
constexpr KeyHash fnv1a_64_low = fnv1a<Units::bytes, fnv_start_low, fnv_prime_low>;
// Enyim: a new hash object starts from 0.
constexpr KeyHash fnv1_32_from_0 = fnv1<Units::bytes, std::uint32_t{0}, fnv_prime_32>;
constexpr KeyHash fnv1a_32_from_0 = fnv1a<Units::bytes, std::uint32_t{0}, fnv_prime_32>;
constexpr KeyHash fnv1_64_from_0 = fnv1<Units::bytes, std::uint64_t{0}, fnv_prime_64>;
constexpr KeyHash fnv1a_64_from_0 = fnv1a<Units::bytes, std::uint64_t{0}, fnv_prime_64>;
constexpr KeyHash fnv1a_15_signed_or_1 = or_1<bits_16_to_30<fnv1a_32_signed>>;
constexpr KeyHash fnv1_64_low_signed = fnv1<Units::signed_bytes, fnv_start_low, fnv_prime_low>;
constexpr KeyHash fnv1a_64_low_signed = fnv1a<Units::signed_bytes, fnv_start_low, fnv_prime_low>;

std::uint64_t murmur2(std::string_view key);  // libmemcached's seed
std::uint64_t murmur3(std::string_view key);  // x86_32, seed 0
constexpr KeyHash murmur3_signed_order = signed_order<murmur3>;
std::uint64_t murmur3_length_seeded(std::string_view key);  // libmemcached's seed
std::uint64_t murmur3_of_emcache(std::string_view key);     // x64_128; four bytes combined with their signs
std::uint64_t murmur64a(std::string_view key);              // mcrouter's seed
std::uint64_t murmur64a_seeded(std::string_view key, std::uint64_t seed);
std::uint64_t jenkins(std::string_view key);  // lookup3 hashlittle, initval 13
std::uint64_t hsieh(std::string_view key);    // SuperFastHash, signed tail

std::uint64_t xxh64(std::string_view key);
std::uint64_t xxh3(std::string_view key);
std::uint64_t xxh3_low32(std::string_view key);
std::uint64_t siphash13(std::string_view key);  // Rust's DefaultHasher of a str: keys 0, key + 0xff

std::uint64_t always_0(std::string_view key);

// Hashes over UTF-16 code units, as Java and JavaScript see the key.
std::uint64_t java(std::string_view key);  // String.hashCode as u32
constexpr KeyHash java_bits_16_to_30 = bits_16_to_30<java>;
std::uint64_t java_abs(std::string_view key);       // the absolute value
std::uint64_t java_times_33(std::string_view key);  // |h * 33 + c| in 64 bits
constexpr KeyHash java_fnv1_32 = fnv1<Units::utf16, fnv_start_32, fnv_prime_32>;
constexpr KeyHash java_fnv1a_32 = fnv1a<Units::utf16, fnv_start_32, fnv_prime_32>;
constexpr KeyHash java_fnv1_64 = fnv1<Units::utf16, fnv_start_low, fnv_prime_low>;
constexpr KeyHash java_fnv1a_64 = fnv1a<Units::utf16, fnv_start_low, fnv_prime_low>;
// npm memcache: FNV-1a 32 multiplied in doubles, which lose the lowest bits of the product. The second orders
// values as signed integers.
std::uint64_t js_fnv1a_32(std::string_view key);
constexpr KeyHash js_fnv1a_32_signed_order = signed_order<js_fnv1a_32>;

// Functions that the point makers need too.
std::uint32_t crc32_continued(std::uint32_t crc, std::string_view bytes);
std::uint64_t xxh3_seeded(std::string_view key, std::uint64_t seed);
std::uint64_t xxh3_low32_seeded(std::string_view key, std::uint64_t seed);

// mcrouter's furc: returns one of n servers.
std::size_t furc(std::string_view key, std::size_t n);

}  // namespace key_hash
}  // namespace mcds
