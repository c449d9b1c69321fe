// Whether a command that places keys by a profile has the right one, judged by where a sample of them is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/placement/guess.hpp"

namespace mcds {

// Returns what speaks against `placement` as the client that wrote these keys, as the end of a sentence, with
// the better profile if there is one. Of a pool with several writers each passes: a profile is refused if
// another explains more keys and it explains, of the keys that one leaves, no more than chance; or if it
// explains no more than chance of all. Fewer than 12 keys, or one server, say nothing.
std::optional<std::string> objection_to(const Placement& placement, const PlacementOptions& options,
                                        const std::vector<Sighting>& sightings);

// Returns the profile of a second client, which explains `strays`, the copies that lie where `placement` does
// not look, above chance; empty if there is none. What clients leave that go to the next server while one is
// away is no second client.
std::string second_client(const Placement& placement, const PlacementOptions& options,
                          const std::vector<Sighting>& strays);

}  // namespace mcds
