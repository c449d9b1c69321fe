// The points of one server on the continuum, as each client makes them.
#pragma once

#include "common/placement/profile.hpp"

namespace mcds::points {

using Values = std::vector<std::uint64_t>;

// libmemcached and twemproxy: the four words of md5(NAME-GROUP), 40 groups per average weight, in float
// arithmetic.
void ketama(const Member& member, const Shares& shares, KeyHash, Values& values);
// hash(NAME-J), J from 0.
void hash_100(const Member& member, const Shares& shares, KeyHash hash, Values& values);
void hash_160(const Member& member, const Shares& shares, KeyHash hash, Values& values);
// libmemcached CONSISTENT: hash_100, but ketama as soon as one weight is above 1.
void hash_100_or_ketama(const Member& member, const Shares& shares, KeyHash hash, Values& values);

}  // namespace mcds::points
