#include "common/placement/points.hpp"

#include <cmath>

namespace mcds::points {

namespace {

std::string numbered(const std::string& name, std::size_t number) {
  return name + '-' + std::to_string(number);
}

void md5_groups(const std::string& name, std::size_t groups, Values& values) {
  for (std::size_t group = 0; group < groups; ++group) {
    for (const auto word : key_hash::md5_words(numbered(name, group))) values.push_back(word);
  }
}

void hash_points(const std::string& name, std::size_t count, KeyHash hash, Values& values) {
  for (std::size_t j = 0; j < count; ++j) values.push_back(hash(numbered(name, j)));
}

// Each operation rounded to float: with 25, 47, 50 … equal servers this gives 39 groups, not 40.
std::size_t ketama_groups(std::uint32_t weight, const Shares& shares) {
  const float share = static_cast<float>(weight) / static_cast<float>(shares.total_weight);
  const float of_160 = share * 160.0F;
  const float of_40 = of_160 / 4.0F;
  const float groups = of_40 * static_cast<float>(shares.servers);
  return static_cast<std::size_t>(std::floor(static_cast<float>(static_cast<double>(groups) + 1e-10)));
}

}  // namespace

void ketama(const Member& member, const Shares& shares, KeyHash, Values& values) {
  md5_groups(member.name, ketama_groups(member.weight, shares), values);
}

void hash_100(const Member& member, const Shares&, KeyHash hash, Values& values) {
  hash_points(member.name, 100, hash, values);
}

void hash_160(const Member& member, const Shares&, KeyHash hash, Values& values) {
  hash_points(member.name, 160, hash, values);
}

void hash_100_or_ketama(const Member& member, const Shares& shares, KeyHash hash, Values& values) {
  shares.weighted ? ketama(member, shares, hash, values) : hash_100(member, shares, hash, values);
}

}  // namespace mcds::points
