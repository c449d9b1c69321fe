#include <cmath>

#include "common/placement/identity.hpp"

namespace mcds::points {

namespace {

constexpr std::size_t groups_per_server = 40;

std::size_t floored(double groups) {
  return static_cast<std::size_t>(std::floor(groups));
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

}  // namespace

std::string numbered(const std::string& name, std::size_t number) {
  return name + '-' + std::to_string(number);
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

// The share is a float, but the product is computed in double.
std::size_t groups_of_libketama(std::uint32_t weight, const Shares& shares) {
  const float share = static_cast<float>(weight) / static_cast<float>(shares.total_weight);
  const double groups = static_cast<double>(share) * 40.0 * static_cast<double>(shares.servers);
  return floored(static_cast<float>(groups));
}

std::size_t groups_of_whalin(std::uint32_t weight, const Shares& shares) {
  const auto product = static_cast<double>(groups_per_server * shares.servers * weight);
  return floored(product / static_cast<double>(shares.total_weight));
}

std::size_t groups_of_uhashring(std::uint32_t weight, const Shares& shares) {
  return groups_per_server * shares.servers * weight / shares.total_weight;
}

std::size_t groups_by_weight(std::uint32_t weight, const Shares&) {
  return groups_per_server * weight;
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
  const auto base = key_hash::crc32_continued(0, host_nul_port(member.name));
  std::uint32_t point = 0;
  for (std::size_t i = 0; i < shares.points_per_weight * member.weight; ++i) {
    point = key_hash::crc32_continued(base, as_bytes(point));
    values.push_back(point);
  }
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

void enyim_default(const Member& member, const Shares& shares, KeyHash, Values& values) {
  const std::size_t first = values.size();
  hash_100(member, shares, key_hash::fnv1a_32, values);
  values[first] = key_hash::fnv1a_32_from_0(numbered(member.name, 0));
}

void enyimcore_default(const Member& member, const Shares&, KeyHash, Values& values) {
  for (int j = 0; j < 100; ++j) values.push_back(key_hash::fnv1a_32(std::to_string(j) + '-' + member.name));
}

}  // namespace mcds::points
