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

}  // namespace mcds::key_hash
