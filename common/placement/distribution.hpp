// From an integer (or the text itself) to a server, for one pool.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

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

// Where a client goes for a key whose server is down, for clients that try one server after the other.
//
// This is the steady state, in which the client knows the dead servers. A client that learns of a dead server
// by failing loses its first operations or leaves them elsewhere.

// The word for a rule: `rebuilt`, `next_server`.
const char* name_of(Failover failover);

// An index into the pool, whose entries in `down` are dead; nullopt: the client gives up, as it does when its
// tries are used up. `text`: what was hashed. Not for Failover::unknown and rebuilt, which do not step.
std::optional<std::size_t> server_after_failures(const Rule& rule, const Distributor& distributor,
                                                 std::string_view text, const std::vector<bool>& down);

}  // namespace mcds
