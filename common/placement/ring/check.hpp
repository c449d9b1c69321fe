// Mistakes and pitfalls in a pool as one client sees it: found by placing keys on it and on
// pools that differ in one thing.
#pragma once

#include "common/placement/placement.hpp"

namespace mcds {

// Times the fair share of a server: what is far too much and far too little.
constexpr double much = 1.5, little = 0.5;

struct Finding {
  const char* check;  // a word: "duplicate_identity"
  bool problem;       // otherwise a note
  std::string message;
  std::vector<std::size_t> servers;  // those concerned; empty: all
};

// Findings in the list itself, as it was written. The indexes are those of without_repeats(listed).
std::vector<Finding> check_list(const Pool& listed, const Placement& placement,
                                const PlacementOptions& options);

// `options`: those the placement was made with.
std::vector<Finding> check_ring(const Placement& placement, const PlacementOptions& options);

// Counted keys per server of the pool: whether they are distributed by weight.
std::vector<Finding> check_counts(const Placement& placement, const std::vector<std::uint64_t>& counts);

}  // namespace mcds
