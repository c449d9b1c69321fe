// Storing an item whatever is there, so that a server that refuses it keeps the older value. memcached's
// `set` removes that first when there is no memory for the new one (-M, or a slab class without pages).
#pragma once

#include <span>
#include <vector>

#include "common/cluster/cluster.hpp"

namespace mcds {

// What an item takes beside its key and value, at most.
constexpr std::size_t item_overhead = 80;

// `first`: add or replace, whichever will do for most; those for which it does not have the other next. Items
// that others store and remove each time in between are refused. One trip, or two; one more for each rival.
std::vector<Reply> store(Cluster& cluster, std::span<const Request> items, Op first);

}  // namespace mcds
