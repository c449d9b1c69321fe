// Key hashes that read several bytes at a time.
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/placement/key_hash.hpp"

namespace mcds::key_hash {

namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read as little-endian words");

template <typename Word>
Word load(std::string_view key, std::size_t at) {
  Word word;
  std::memcpy(&word, key.data() + at, sizeof word);
  return word;
}

// Returns the bytes from `at` to the end (at most 8) as a little-endian number.
std::uint64_t tail(std::string_view key, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, key.data() + at, key.size() - at);
  return word;
}

std::uint32_t murmur3_seeded(std::string_view key, std::uint32_t seed) {
  const auto scrambled = [](std::uint32_t k) { return std::rotl(k * 0xcc9e2d51U, 15) * 0x1b873593U; };
  std::uint32_t h = seed;
  std::size_t at = 0;
  for (; at + 4 <= key.size(); at += 4) {
    h ^= scrambled(load<std::uint32_t>(key, at));
    h = std::rotl(h, 13) * 5 + 0xe6546b64U;
  }
  if (at < key.size()) h ^= scrambled(static_cast<std::uint32_t>(tail(key, at)));
  h ^= static_cast<std::uint32_t>(key.size());
  h = (h ^ (h >> 16)) * 0x85ebca6bU;
  h = (h ^ (h >> 13)) * 0xc2b2ae35U;
  return h ^ (h >> 16);
}

std::uint64_t mixed(std::uint64_t h) {
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdU;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53U;
  return h ^ (h >> 33);
}

// Returns the first half of MurmurHash3_x64_128 with seed 0.
std::uint64_t murmur3_x64(std::string_view key) {
  constexpr std::uint64_t c1 = 0x87c37b91114253d5U, c2 = 0x4cf5ad432745937fU;
  const auto first = [](std::uint64_t k) { return std::rotl(k * c1, 31) * c2; };
  const auto second = [](std::uint64_t k) { return std::rotl(k * c2, 33) * c1; };
  std::uint64_t h1 = 0, h2 = 0;
  std::size_t at = 0;
  for (; at + 16 <= key.size(); at += 16) {
    h1 = (std::rotl(h1 ^ first(load<std::uint64_t>(key, at)), 27) + h2) * 5 + 0x52dce729U;
    h2 = (std::rotl(h2 ^ second(load<std::uint64_t>(key, at + 8)), 31) + h1) * 5 + 0x38495ab5U;
  }
  h1 ^= first(tail(key.substr(0, std::min(key.size(), at + 8)), at));
  if (at + 8 < key.size()) h2 ^= second(tail(key, at + 8));
  h1 ^= key.size(), h2 ^= key.size();
  h1 += h2, h2 += h1;
  h1 = mixed(h1), h2 = mixed(h2);
  return h1 + h2;
}

std::uint32_t length_seed(std::string_view key) {
  return 0xdeadbeefU * static_cast<std::uint32_t>(key.size());
}

struct Lookup3 {
  std::uint32_t a, b, c;

  void mix() {
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }
  void finish() {
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
  }
  void add(const char* bytes) {
    std::array<std::uint32_t, 3> words;
    std::memcpy(words.data(), bytes, sizeof words);
    a += words[0], b += words[1], c += words[2];
  }
};

constexpr std::uint32_t mcrouter_seed = 4193360111U;

}  // namespace

std::uint64_t murmur64a_seeded(std::string_view key, std::uint64_t seed) {
  constexpr std::uint64_t m = 0xc6a4a7935bd1e995U;
  std::uint64_t h = seed ^ (key.size() * m);
  std::size_t at = 0;
  for (; at + 8 <= key.size(); at += 8) {
    std::uint64_t k = load<std::uint64_t>(key, at) * m;
    k = (k ^ (k >> 47)) * m;
    h = (h ^ k) * m;
  }
  if (at < key.size()) h = (h ^ tail(key, at)) * m;
  h = (h ^ (h >> 47)) * m;
  return h ^ (h >> 47);
}

namespace {

// The unlimited bit string that furc draws from: murmur64a of the key, then of the previous word.
class FurcBits {
 public:
  explicit FurcBits(std::string_view key) : words_{murmur64a(key)} {}

  std::size_t operator()(std::size_t index) {
    for (; known_ <= index / 64; ++known_) {
      std::array<char, 8> bytes;
      std::memcpy(bytes.data(), &words_[known_ - 1], sizeof bytes);
      words_[known_] = murmur64a(std::string_view(bytes.data(), bytes.size()));
    }
    return (words_[index / 64] >> (index % 64)) & 1U;
  }

 private:
  // 32 tries of at most 64 positions each, 23 bits apart.
  std::array<std::uint64_t, 32 * 24> words_{};
  std::size_t known_ = 1;
};

}  // namespace

std::uint64_t murmur2(std::string_view key) {
  constexpr std::uint32_t m = 0x5bd1e995U;
  std::uint32_t h = length_seed(key) ^ static_cast<std::uint32_t>(key.size());
  std::size_t at = 0;
  for (; at + 4 <= key.size(); at += 4) {
    std::uint32_t k = load<std::uint32_t>(key, at) * m;
    k = (k ^ (k >> 24)) * m;
    h = (h * m) ^ k;
  }
  if (at < key.size()) h = (h ^ static_cast<std::uint32_t>(tail(key, at))) * m;
  h = (h ^ (h >> 13)) * m;
  return h ^ (h >> 15);
}

std::uint64_t murmur3(std::string_view key) {
  return murmur3_seeded(key, 0);
}
std::uint64_t murmur3_length_seeded(std::string_view key) {
  return murmur3_seeded(key, length_seed(key));
}
// The first byte counts whole. Every other byte counts only if it is >= 0x80: then it sets all bits above it.
std::uint64_t murmur3_of_emcache(std::string_view key) {
  const std::uint64_t low = murmur3_x64(key);
  std::uint32_t hash = low & 0xffU;
  for (unsigned byte = 0; byte < 4; ++byte) {
    if ((low >> (8 * byte) & 0x80U) != 0) hash |= 0xffffff00U << (8 * (byte == 0 ? 0 : byte - 1));
  }
  return hash;
}
std::uint64_t murmur64a(std::string_view key) {
  return murmur64a_seeded(key, mcrouter_seed);
}

std::uint64_t jenkins(std::string_view key) {
  const std::uint32_t start = 0xdeadbeefU + static_cast<std::uint32_t>(key.size()) + 13;
  Lookup3 state{start, start, start};
  while (key.size() > 12) {
    state.add(key.data());
    state.mix();
    key.remove_prefix(12);
  }
  if (key.empty()) return state.c;
  std::array<char, 12> last{};
  std::memcpy(last.data(), key.data(), key.size());
  state.add(last.data());
  state.finish();
  return state.c;
}

std::uint64_t hsieh(std::string_view key) {
  if (key.empty()) return 0;
  const auto sign_extended = [](char c) { return static_cast<std::uint32_t>(static_cast<signed char>(c)); };
  std::uint32_t h = 0;
  std::size_t at = 0;
  for (; at + 4 <= key.size(); at += 4) {
    h += load<std::uint16_t>(key, at);
    h = (h << 16) ^ ((static_cast<std::uint32_t>(load<std::uint16_t>(key, at + 2)) << 11) ^ h);
    h += h >> 11;
  }
  switch (key.size() - at) {
    case 3:
      h += load<std::uint16_t>(key, at);
      h ^= h << 16;
      h ^= sign_extended(key[at + 2]) << 18;
      h += h >> 11;
      break;
    case 2:
      h += load<std::uint16_t>(key, at);
      h ^= h << 11;
      h += h >> 17;
      break;
    case 1:
      h += static_cast<unsigned char>(key[at]);
      h ^= h << 10;
      h += h >> 1;
      break;
    default: break;
  }
  h ^= h << 3;
  h += h >> 5;
  h ^= h << 4;
  h += h >> 17;
  h ^= h << 25;
  return h + (h >> 6);
}

std::uint64_t xxh64(std::string_view key) {
  return XXH64(key.data(), key.size(), 0);
}
std::uint64_t xxh3(std::string_view key) {
  return XXH3_64bits(key.data(), key.size());
}
std::uint64_t xxh3_low32(std::string_view key) {
  return xxh3(key) & 0xffffffffU;
}
std::uint64_t xxh3_seeded(std::string_view key, std::uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}
std::uint64_t xxh3_low32_seeded(std::string_view key, std::uint64_t seed) {
  return xxh3_seeded(key, seed) & 0xffffffffU;
}

std::size_t furc(std::string_view key, std::size_t n) {
  if (n <= 1) return 0;
  std::size_t width = std::bit_width(n - 1);
  FurcBits bit(key);
  std::size_t at = width;
  for (int attempt = 0; attempt < 32; ++attempt) {
    while (bit(at) == 0) {
      if (--width == 0) return 0;
      at = width;
    }
    at += 23;
    std::size_t number = 1;
    for (std::size_t i = 1; i < width; ++i, at += 23) number = number * 2 + bit(at);
    if (number < n) return number;
  }
  return 0;
}

}  // namespace mcds::key_hash
