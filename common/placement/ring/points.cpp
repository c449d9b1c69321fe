#include <cmath>

#include "common/placement/identity.hpp"

namespace mcds::points {

namespace {

constexpr std::size_t groups_per_server = 40;

std::string numbered(const std::string& name, std::size_t number) {
  return name + '-' + std::to_string(number);
}

template <auto digest_words = key_hash::md5_words>
void add_groups(const std::string& name, std::size_t groups, Values& values, std::size_t words_used = 4) {
  for (std::size_t group = 0; group < groups; ++group) {
    const auto words = digest_words(numbered(name, group));
    values.insert(values.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(words_used));
  }
}

void hash_points(const std::string& name, std::size_t count, KeyHash hash, Values& values) {
  for (std::size_t j = 0; j < count; ++j) values.push_back(hash(numbered(name, j)));
}

std::size_t floored(double groups) {
  return static_cast<std::size_t>(std::floor(groups));
}

// Each operation is rounded to float: 25, 47, 50 … equal servers get 39 groups instead of 40.
std::size_t groups_of_libmemcached(std::uint32_t weight, const Shares& shares) {
  const float share = static_cast<float>(weight) / static_cast<float>(shares.total_weight);
  const float of_160 = share * 160.0F;
  const float of_40 = of_160 / 4.0F;
  const float groups = of_40 * static_cast<float>(shares.servers);
  return floored(static_cast<float>(static_cast<double>(groups) + 1e-10));
}

// Computed in doubles from left to right: 7, 14, 28 … equal servers get 39 groups.
std::size_t groups_of_hashring(std::uint32_t weight, const Shares& shares) {
  const double share = static_cast<double>(weight) / static_cast<double>(shares.total_weight);
  return floored(share * 40.0 * static_cast<double>(shares.servers));
}

std::string_view as_bytes(const std::uint32_t& little_endian) {
  return {reinterpret_cast<const char*>(&little_endian), sizeof little_endian};
}

// Returns HOST NUL PORT. The text after the last ':' is a port if it is all digits.
std::string host_nul_port(const std::string& name) {
  const auto colon = name.rfind(':');
  if (colon == std::string::npos || name.find_first_not_of("0123456789", colon + 1) != std::string::npos) {
    return name + '\0';
  }
  return name.substr(0, colon) + '\0' + name.substr(colon + 1);
}

void chained_crcs(const Member& member, std::size_t count, Values& values) {
  const auto base = key_hash::crc32_continued(0, host_nul_port(member.name));
  std::uint32_t point = 0;
  for (std::size_t i = 0; i < count; ++i) {
    point = key_hash::crc32_continued(base, as_bytes(point));
    values.push_back(point);
  }
}

}  // namespace

void ketama(const Member& member, const Shares& shares, KeyHash, Values& values) {
  add_groups(member.name, groups_of_libmemcached(member.weight, shares), values);
}

// The share is a float, but the product is computed in double.
void ketama_of_libketama(const Member& member, const Shares& shares, KeyHash, Values& values) {
  const float share = static_cast<float>(member.weight) / static_cast<float>(shares.total_weight);
  const double groups = static_cast<double>(share) * 40.0 * static_cast<double>(shares.servers);
  add_groups(member.name, floored(static_cast<float>(groups)), values);
}

template <auto digest_words>
void of_hashring(const Member& member, const Shares& shares, KeyHash, Values& values) {
  add_groups<digest_words>(member.name, groups_of_hashring(member.weight, shares), values);
}
template void of_hashring<key_hash::md5_words>(const Member&, const Shares&, KeyHash, Values&);
template void of_hashring<key_hash::sha1_words>(const Member&, const Shares&, KeyHash, Values&);
template void of_hashring<key_hash::sha256_words>(const Member&, const Shares&, KeyHash, Values&);
template void of_hashring<key_hash::sha384_words>(const Member&, const Shares&, KeyHash, Values&);
template void of_hashring<key_hash::sha512_words>(const Member&, const Shares&, KeyHash, Values&);

void ketama_of_whalin(const Member& member, const Shares& shares, KeyHash, Values& values) {
  const auto product = static_cast<double>(groups_per_server * shares.servers * member.weight);
  add_groups(member.name, floored(product / static_cast<double>(shares.total_weight)), values);
}

void ketama_of_uhashring(const Member& member, const Shares& shares, KeyHash, Values& values) {
  add_groups(member.name, groups_per_server * shares.servers * member.weight / shares.total_weight, values);
}

void ketama_40(const Member& member, const Shares&, KeyHash, Values& values) {
  add_groups(member.name, groups_per_server * member.weight, values);
}

void hash_ring_of_hashring(const Member& member, const Shares& shares, KeyHash, Values& values) {
  add_groups(member.name, groups_of_hashring(member.weight, shares), values, 3);
}

void of_crc32_digits(const Member& member, const Shares& shares, KeyHash, Values& values) {
  const std::size_t groups = groups_per_server * shares.servers * member.weight / shares.total_weight;
  add_groups<key_hash::crc32_digits>(member.name, groups, values, 3);
}

void sha384_40(const Member& member, const Shares&, KeyHash, Values& values) {
  add_groups<key_hash::sha384_words>(member.name, groups_per_server, values);
}

void hash_50(const Member& member, const Shares&, KeyHash hash, Values& values) {
  hash_points(member.name, 50, hash, values);
}

void hash_100(const Member& member, const Shares&, KeyHash hash, Values& values) {
  hash_points(member.name, 100, hash, values);
}

void hash_160(const Member& member, const Shares&, KeyHash hash, Values& values) {
  hash_points(member.name, std::size_t{160} * member.weight, hash, values);
}

void hash_nul_50(const Member& member, const Shares&, KeyHash hash, Values& values) {
  const std::string name = member.name + '\0';
  for (std::size_t j = 1; j <= std::size_t{50} * member.weight; ++j)
    values.push_back(hash(name + std::to_string(j)));
}

void hash_100_or_ketama(const Member& member, const Shares& shares, KeyHash hash, Values& values) {
  shares.weighted ? ketama(member, shares, hash, values) : hash_100(member, shares, hash, values);
}

void crc_chain(const Member& member, const Shares& shares, KeyHash, Values& values) {
  chained_crcs(member, shares.points_per_weight * member.weight, values);
}

void folsom(const Member& member, const Shares&, KeyHash, Values& values) {
  auto point = static_cast<std::uint32_t>(key_hash::murmur3(member.name));
  for (int i = 0; i < 100; ++i) {
    values.push_back(point ^ 0x80000000U);
    point = static_cast<std::uint32_t>(key_hash::murmur3(as_bytes(point)));
  }
}

void dalli(const Member& member, const Shares& shares, KeyHash, Values& values) {
  const auto product = static_cast<double>(shares.servers * 160 * member.weight);
  const std::size_t count = floored(product / static_cast<double>(shares.total_weight));
  for (std::size_t j = 0; j < count; ++j) {
    values.push_back(key_hash::big_endian<key_hash::sha1>(member.name + ':' + std::to_string(j)));
  }
}

void enyim_default(const Member& member, const Shares&, KeyHash, Values& values) {
  const std::size_t first = values.size();
  hash_points(member.name, 100, key_hash::fnv1a_32, values);
  values[first] = key_hash::fnv1a_32_from_0(numbered(member.name, 0));
}

void enyimcore_default(const Member& member, const Shares&, KeyHash, Values& values) {
  for (int j = 0; j < 100; ++j) values.push_back(key_hash::fnv1a_32(std::to_string(j) + '-' + member.name));
}

void enyim_sha1(const Member& member, const Shares&, KeyHash, Values& values) {
  add_groups<key_hash::sha1_words>(member.name, 32, values, 5);
}

template <std::size_t words, KeyHash hash, KeyHash from_0>
void enyim_words(const Member& member, const Shares&, KeyHash, Values& values) {
  for (std::size_t j = 0; j < 160 / words; ++j) {
    const auto digest = (member.index == 0 && j == 0 ? from_0 : hash)(numbered(member.name, j));
    values.push_back(digest & 0xffffffffU);
    if (words == 2) values.push_back(digest >> 32);
  }
}
template void enyim_words<1, key_hash::fnv1_32, key_hash::fnv1_32_from_0>(const Member&, const Shares&,
                                                                          KeyHash, Values&);
template void enyim_words<1, key_hash::fnv1a_32, key_hash::fnv1a_32_from_0>(const Member&, const Shares&,
                                                                            KeyHash, Values&);
template void enyim_words<2, key_hash::fnv1_64, key_hash::fnv1_64_from_0>(const Member&, const Shares&,
                                                                          KeyHash, Values&);
template void enyim_words<2, key_hash::fnv1a_64, key_hash::fnv1a_64_from_0>(const Member&, const Shares&,
                                                                            KeyHash, Values&);

}  // namespace mcds::points
