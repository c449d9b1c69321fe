// Which client put keys where they are: every profile is asked where it would have put them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/placement/placement.hpp"

namespace mcds {

// A key and the servers it was found on.
struct Sighting {
  std::string key;
  std::vector<std::size_t> servers;
};

// Profiles that place every key seen alike: these keys cannot tell them apart.
struct Candidate {
  std::vector<std::string_view> profiles;
  std::size_t explained = 0;  // keys that are where these profiles put them
  // So many keys, in the order seen, were needed until it fell behind the best for good; nullopt: it has not.
  // Of the best: until all others had; nullopt also when its profiles place other keys differently.
  std::optional<std::size_t> keys_needed = {};
};

// Best first; of equal ones in the order of the profiles' table. Profiles that cannot use the pool are left
// out. Throws InvalidInput when the pool has one server: every client would put everything there.
std::vector<Candidate> guess_profiles(const Pool& pool, const PlacementOptions& options,
                                      const std::vector<Sighting>& sightings);

}  // namespace mcds
