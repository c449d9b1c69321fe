// mcrouter's hash functions beside Ch3 and Crc32: from a key to one of n children.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

struct RouteHash {
  enum class Function { ch3, crc32, weighted_ch3, rendezvous, weighted_rendezvous, const_shard };
  Function function = Function::ch3;
  std::string salt = {};                 // put behind the key
  std::vector<double> weights = {};      // of the weighted functions, one a child
  std::vector<std::uint64_t> tags = {};  // hashed, of rendezvous; one a child
  std::uint64_t buckets = 0;             // `bucketize`: the number of the key's bucket is hashed; 0: the key

  // `text`: the key without its routing prefix and what follows |#|. `children` is at least 1.
  std::size_t child_of(std::string_view text, std::size_t children) const;
  // What is reported as the key's hash.
  std::uint64_t hash_of(std::string_view text) const;
};

std::uint64_t rendezvous_tag(std::string_view tag);

// SHARD in `name:SHARD:rest`, if it ends with a digit; otherwise empty.
std::string_view shard_of(std::string_view text);

// SpookyHash V2 (Bob Jenkins), the low 32 bits.
std::uint32_t spooky32(std::string_view bytes, std::uint32_t seed);

}  // namespace mcds
