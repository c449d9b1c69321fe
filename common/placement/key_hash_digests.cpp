// The key hashes made of cryptographic digests.
#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>

#include <cstring>

#include "common/placement/key_hash.hpp"

namespace mcds::key_hash {

namespace {

const std::uint8_t* data_of(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

}  // namespace

// Straight on the compression function: the streaming interface costs as much again for keys of one block.
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

std::string md5_hex(std::string_view bytes) {
  const auto words = md5_words(bytes);
  std::string hex;
  for (const auto word : words) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      hex += "0123456789abcdef"[(word >> (shift + 4)) & 15U];
      hex += "0123456789abcdef"[(word >> shift) & 15U];
    }
  }
  return hex;
}

std::array<std::uint8_t, 20> sha1_bytes(std::string_view bytes) {
  sha1_ctx context;
  sha1_init(&context);
  sha1_update(&context, bytes.size(), data_of(bytes));
  std::array<std::uint8_t, 20> digest;
  sha1_digest(&context, digest.size(), digest.data());
  return digest;
}

std::array<std::uint32_t, 12> sha384_words(std::string_view bytes) {
  sha512_ctx context;
  sha384_init(&context);
  sha384_update(&context, bytes.size(), data_of(bytes));
  std::array<std::uint8_t, 48> digest;
  sha384_digest(&context, digest.size(), digest.data());
  std::array<std::uint32_t, 12> words;
  std::memcpy(words.data(), digest.data(), digest.size());
  return words;
}

std::uint64_t md5(std::string_view key) {
  return md5_words(key)[0];
}

std::uint64_t md5_top64(std::string_view key) {
  const auto words = md5_words(key);
  return (std::uint64_t{__builtin_bswap32(words[0])} << 32) | __builtin_bswap32(words[1]);
}

std::uint64_t sha1(std::string_view key) {
  const auto digest = sha1_bytes(key);
  std::uint32_t word;
  std::memcpy(&word, digest.data(), sizeof word);
  return word;
}

std::uint64_t sha384(std::string_view key) {
  return sha384_words(key)[0];
}

}  // namespace mcds::key_hash
