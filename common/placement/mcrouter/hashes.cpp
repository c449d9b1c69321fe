#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "common/base/bytes.hpp"
#include "common/placement/key_hash.hpp"
#include "common/placement/mcrouter/routes.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t ring_seed = 4193360111, key_seed = 2718281828;
constexpr int weighted_tries = 32;

// Combines two 64-bit hashes into one, like CityHash's Hash128to64.
std::uint64_t mixed(std::uint64_t upper, std::uint64_t lower) {
  constexpr std::uint64_t multiplier = 0x9ddfea08eb382d69ULL;
  std::uint64_t a = (lower ^ upper) * multiplier;
  a ^= a >> 47;
  std::uint64_t b = (upper ^ a) * multiplier;
  b ^= b >> 47;
  return b * multiplier;
}

// Appends the digits of `salt` to the original key, lowest first, until a child accepts it.
std::size_t weighted_ch3(std::string_view key, const std::vector<double>& weights) {
  std::string text(key);
  std::size_t index = 0;
  for (int salt = 0; salt < weighted_tries; ++salt) {
    index = key_hash::furc(text, weights.size());
    const auto limit = static_cast<std::uint64_t>(
        weights[index] * static_cast<double>(std::numeric_limits<std::uint32_t>::max()));
    if (spooky32(text, 0xface2014) < limit) return index;
    std::string digits = std::to_string(salt);
    std::ranges::reverse(digits);
    text = std::string(key) + digits;
  }
  return index;
}

// Returns -ln(bits / 2^53) for bits in [1, 2^53), by a series: linking libm would cost time at every start.
double minus_log(std::uint64_t bits) {
  constexpr long double ln2 = 0.693147180559945309417232121458L;
  int halvings = 53 - (64 - std::countl_zero(bits));
  long double mantissa = static_cast<long double>(bits);  // then in [0.5, 1)
  for (int i = 0; i < 53 - halvings; ++i) mantissa /= 2;
  const long double t = (mantissa - 1) / (mantissa + 1);
  long double sum = 0, power = t;
  for (int i = 1; i < 60; i += 2, power *= t * t) sum += power / i;
  return static_cast<double>(static_cast<long double>(halvings) * ln2 - 2 * sum);
}

double weighted_score(std::uint64_t bits, double weight) {
  bits &= (std::uint64_t{1} << 53) - 1;
  return bits == 0 ? 0 : weight * (1.0 / minus_log(bits));
}

std::size_t rendezvous(std::string_view key, const RouteHash& hash, bool weighted) {
  const std::uint64_t of_key = key_hash::murmur64a_seeded(key, key_seed);
  std::size_t best = 0;
  double highest = weighted ? 0 : -1;
  for (std::size_t i = 0; i < hash.tags.size(); ++i) {
    const std::uint64_t bits = mixed(hash.tags[i], of_key);
    const double score = weighted ? weighted_score(bits, hash.weights[i]) : static_cast<double>(bits);
    if (score > highest || (!weighted && score == highest)) highest = score, best = i;
  }
  return best;
}

// Returns the shard's number itself if there is such a child, otherwise ch3's choice.
std::size_t const_shard(std::string_view key, std::size_t children) {
  const auto shard = parse_u64(shard_of(key));
  return shard && *shard < children ? static_cast<std::size_t>(*shard) : key_hash::furc(key, children);
}

}  // namespace

std::uint64_t rendezvous_tag(std::string_view tag) {
  return key_hash::murmur64a_seeded(tag, ring_seed);
}

std::string_view shard_of(std::string_view text) {
  const auto first = text.find(':');
  if (first == std::string_view::npos) return {};
  const auto second = text.find(':', first + 1);
  if (second == std::string_view::npos || second == first + 1) return {};
  const char last = text[second - 1];
  return last >= '0' && last <= '9' ? text.substr(first + 1, second - first - 1) : std::string_view();
}

std::size_t RouteHash::child_of(std::string_view text, std::size_t children) const {
  if (children == 1) return 0;
  std::string salted(text);
  if (buckets > 0) salted = std::to_string(key_hash::furc(text, static_cast<std::size_t>(buckets)));
  salted += salt;
  switch (function) {
    case Function::ch3: return key_hash::furc(salted, children);
    case Function::crc32: return static_cast<std::size_t>(key_hash::crc31(salted)) % children;
    case Function::weighted_ch3: return weighted_ch3(salted, weights);
    case Function::rendezvous:
    case Function::weighted_rendezvous:
      return rendezvous(salted, *this, function == Function::weighted_rendezvous);
    case Function::const_shard: return const_shard(salted, children);
  }
  return 0;
}

std::uint64_t RouteHash::hash_of(std::string_view text) const {
  const std::string salted = std::string(text) + salt;
  return function == Function::crc32 ? key_hash::crc31(salted) : key_hash::murmur64a(salted);
}

// SpookyHash V2 after its author's description: short messages use four lanes, long ones twelve.
namespace {

using Word = std::uint64_t;
constexpr Word filler = 0xdeadbeefdeadbeefULL;
constexpr std::size_t connections = 12, block = connections * 8, short_below = 2 * block;

Word word_at(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

void short_mix(std::array<Word, 4>& h) {
  constexpr std::array<int, 12> turns{50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36};
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Word& changed = h[(i + 2) % 4];
    changed = std::rotl(changed, turns[i]) + h[(i + 3) % 4];
    h[i % 4] ^= changed;
  }
}

void short_end(std::array<Word, 4>& h) {
  constexpr std::array<int, 11> turns{15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63};
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Word& turned = h[(i + 2) % 4];
    h[(i + 3) % 4] ^= turned;
    turned = std::rotl(turned, turns[i]);
    h[(i + 3) % 4] += turned;
  }
}

Word short_hash(std::string_view message, Word seed) {
  std::array<Word, 4> h{seed, seed, filler, filler};
  const char* at = message.data();
  std::size_t left = message.size();
  for (; left >= 32; left -= 32, at += 32) {
    h[2] += word_at(at), h[3] += word_at(at + 8);
    short_mix(h);
    h[0] += word_at(at + 16), h[1] += word_at(at + 24);
  }
  if (left >= 16) {
    h[2] += word_at(at), h[3] += word_at(at + 8);
    short_mix(h);
    left -= 16, at += 16;
  }
  h[3] += static_cast<Word>(message.size()) << 56;
  if (left == 0) {
    h[2] += filler, h[3] += filler;
  } else {
    std::array<char, 16> tail{};
    std::memcpy(tail.data(), at, left);
    h[2] += word_at(tail.data()), h[3] += word_at(tail.data() + 8);
  }
  short_end(h);
  return h[0];
}

using State = std::array<Word, connections>;

void mix(const char* data, State& s) {
  constexpr std::array<int, connections> turns{11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46};
  for (std::size_t i = 0; i < connections; ++i) {
    s[i] += word_at(data + 8 * i);
    s[(i + 2) % connections] ^= s[(i + 10) % connections];
    s[(i + 11) % connections] ^= s[i];
    s[i] = std::rotl(s[i], turns[i]);
    s[(i + 11) % connections] += s[(i + 1) % connections];
  }
}

void end_partial(State& h) {
  constexpr std::array<int, connections> turns{44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54};
  for (std::size_t i = 0; i < connections; ++i) {
    h[(i + 11) % connections] += h[(i + 1) % connections];
    h[(i + 2) % connections] ^= h[(i + 11) % connections];
    h[(i + 1) % connections] = std::rotl(h[(i + 1) % connections], turns[i]);
  }
}

Word long_hash(std::string_view message, Word seed) {
  State s;
  for (std::size_t i = 0; i < connections; ++i) s[i] = i % 3 == 2 ? filler : seed;
  const char* at = message.data();
  std::size_t left = message.size();
  for (; left >= block; left -= block, at += block) mix(at, s);
  std::array<char, block> tail{};
  std::memcpy(tail.data(), at, left);
  tail[block - 1] = static_cast<char>(left);
  for (std::size_t i = 0; i < connections; ++i) s[i] += word_at(tail.data() + 8 * i);
  for (int round = 0; round < 3; ++round) end_partial(s);
  return s[0];
}

}  // namespace

std::uint32_t spooky32(std::string_view bytes, std::uint32_t seed) {
  return static_cast<std::uint32_t>(bytes.size() < short_below ? short_hash(bytes, seed)
                                                               : long_hash(bytes, seed));
}

}  // namespace mcds
