// A sample of the keys that servers list, with where they are: what gate.hpp judges a profile by.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/cluster/keys/live.hpp"
#include "common/placement/guess.hpp"

namespace mcds {

class PlacementSample {
 public:
  // Takes the first `of_each` keys of each server. A key that several list is one, on all of them.
  PlacementSample(std::size_t servers, std::string key_prefix, std::size_t of_each)
      : counts_(servers), key_prefix_(std::move(key_prefix)), of_each_(of_each) {}

  void take(const LiveKey& key);
  const std::vector<Sighting>& keys() const { return keys_; }

 private:
  std::vector<std::size_t> counts_;
  std::string key_prefix_;
  std::size_t of_each_;
  std::vector<Sighting> keys_;
  std::unordered_map<std::string, std::size_t> known_;  // indexes
};

}  // namespace mcds

// Parts that lie beside other keys, locks, votes and what is kept in several copies are left out: they are
// not only where a client puts a key of such a name.
