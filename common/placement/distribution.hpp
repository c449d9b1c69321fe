// From an integer (or the text itself) to a server, for one pool.
#pragma once

#include <functional>
#include <memory>

#include "common/placement/profiles/profile.hpp"

namespace mcds {

struct Distributor {
  // An index into the pool. `text`: what was hashed.
  std::function<std::size_t(std::uint64_t hash, std::string_view text)> server_of;
  std::shared_ptr<const Continuum> continuum = nullptr;  // of a ring
};

// `members` in the order in which the client sees them. Throws InvalidInput when they have no place for a
// key.
Distributor make_distributor(const Rule& rule, const std::vector<Member>& members);

}  // namespace mcds
