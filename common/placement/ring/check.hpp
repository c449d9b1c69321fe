// Finds mistakes in a pool as one client sees it, by placing keys on it and on slightly different pools.
#pragma once

#include "common/placement/placement.hpp"

namespace mcds {

// Limits for too much and too little, as multiples of a server's fair share.
constexpr double much = 1.5, little = 0.5;

struct Finding {
  const char* check;  // a word, such as "duplicate_identity"
  bool problem;       // otherwise a note
  std::string message;
  std::vector<std::size_t> servers;  // the servers concerned; empty: all
};

// Returns findings in the list as it was written. Indexes are those of without_repeats(listed).
std::vector<Finding> check_list(const Pool& listed, const Placement& placement,
                                const PlacementOptions& options);

// `options` are those of the placement.
std::vector<Finding> check_ring(const Placement& placement, const PlacementOptions& options);

// Returns findings about counted keys per server: whether these are distributed by weight.
std::vector<Finding> check_counts(const Placement& placement, const std::vector<std::uint64_t>& counts);

}  // namespace mcds
