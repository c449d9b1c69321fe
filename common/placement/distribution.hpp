// From an integer (or the text itself) to a server, for one pool.
#pragma once

#include <memory>

#include "common/placement/profiles/profile.hpp"

namespace mcds {

class Distributor {
 public:
  virtual ~Distributor() = default;
  // An index into the pool. `text`: what was hashed.
  virtual std::size_t server_of(std::uint64_t hash, std::string_view text) const = 0;
  virtual const Continuum* continuum() const { return nullptr; }
};

// `members` in the order in which the client sees them. Throws InvalidInput when they have no place for a
// key.
std::unique_ptr<const Distributor> make_distributor(const Rule& rule, const std::vector<Member>& members);

}  // namespace mcds
