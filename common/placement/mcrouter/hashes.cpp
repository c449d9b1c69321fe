#include "common/placement/mcrouter/hashes.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "common/base/bytes.hpp"
#include "common/placement/key_hash.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t ring_seed = 4193360111, key_seed = 2718281828;
constexpr int weighted_tries = 32;

// Two 64-bit hashes to one, as CityHash's Hash128to64 does.
std::uint64_t mixed(std::uint64_t upper, std::uint64_t lower) {
  constexpr std::uint64_t multiplier = 0x9ddfea08eb382d69ULL;
  std::uint64_t a = (lower ^ upper) * multiplier;
  a ^= a >> 47;
  std::uint64_t b = (upper ^ a) * multiplier;
  b ^= b >> 47;
  return b * multiplier;
}

// Appends the digits of `salt`, the lowest first, to the original key until a child takes it.
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

// -ln(bits / 2^53), bits in [1, 2^53). By its series, because libm would be loaded at every start.
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

// The shard's number itself, where it is one of the children.
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

}  // namespace mcds
