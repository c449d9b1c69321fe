// Keys that the servers of a pool hold now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/placement/guess.hpp"

namespace mcds {

class Session;

using Sightings = std::vector<Sighting>;

// About `wanted` keys, alternating between the servers, each with the server it was listed by. Warns of servers that
// list none; throws NotApplied when none does.
Sightings live_sample(Session& session, const Pool& pool, std::uint64_t wanted);

// Every key of the session's namespace, once.
std::vector<std::string> all_live_keys(Session& session, const Pool& pool);

}  // namespace mcds
