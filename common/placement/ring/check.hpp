// What is wrong with a pool as one client sees it, or will be a surprise one day: found by placing keys on it and on
// pools that differ in one thing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/placement/placement.hpp"

namespace mcds {

struct Finding {
  const char* check;  // a word: "duplicate_identity"
  bool problem;       // else worth knowing
  std::string message;
  std::vector<std::size_t> servers;  // those concerned; empty: all
};

// `options`: those the placement was made with.
std::vector<Finding> check_ring(const Placement& placement, const PlacementOptions& options);

}  // namespace mcds
