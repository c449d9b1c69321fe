// Keys that the servers of a pool hold now.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/listings.hpp"
#include "common/placement/guess.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

using Sightings = std::vector<Sighting>;

// About `wanted` keys, alternating between the servers, each with the server it was listed by. Throws
// NotApplied when none lists any; `warns` of those that do not.
Sightings live_sample(Session& session, const Pool& pool, std::uint64_t wanted, bool warns = true);

// Warns that most live keys are not where the profile looks, and names the client that explains them if there
// is one (guess.cpp).
void warn_of_another_client(Session& session, const Placement& placement);

// Every key of the selection, with its name. What servers do not list makes the answer incomplete: each is an
// error and worsens the status. Throws NotApplied when none lists any.
Listings all_live_keys(Session& session, const Pool& pool, const KeySelection& selection, ExitStatus& status);

}  // namespace mcds
