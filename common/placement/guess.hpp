// Finds the client that placed the keys: compares their servers with the predictions of each profile.
#pragma once

#include "common/placement/placement.hpp"

namespace mcds {

// A key and the servers it was found on.
struct KeyLocation {
  std::string key;
  std::vector<std::size_t> servers;
};

// Profiles that place all given keys alike, so that these keys cannot distinguish them.
struct Candidate {
  std::vector<std::string_view> profiles;    // the best known first
  std::vector<std::string_view> alike_here;  // those of them that place alike on this pool only
  // The profiles of the best candidate, if they place all keys alike, that differ with one more server.
  std::vector<std::string_view> not_elsewhere = {};
  std::string prefix = {};    // the prefix of the keys, if these profiles do not hash it
  std::size_t explained = 0;  // keys on the servers that these profiles predict
  // The number of keys, in the given order, after which it stayed behind the best candidate; nullopt if it
  // did not. For the best: the number after which all others were behind; nullopt also if its profiles place
  // other keys differently.
  std::optional<std::size_t> keys_needed = {};
  double by_chance = 1;  // the share of keys that would match by chance
  // The expected number of profiles that explain as many of these keys by chance.
  double chance = 1;
  std::vector<bool> matches = {};  // per location: it is on a server that these profiles predict
  std::vector<bool> own = {};      // per location: it begins with `prefix`

  // Returns the number of keys that begin with `prefix`.
  std::size_t keys() const { return static_cast<std::size_t>(std::ranges::count(own, true)); }
  // Returns true if it explains some keys, but no more than chance would.
  bool is_chance() const;
};

// Returns the candidates, best first, and among equal ones the best known first. Left out are profiles that
// cannot use the pool. If nearly all keys are on all servers, profiles with fewer copies are left out too;
// otherwise those that keep every key on all servers. If no prefix is configured, profiles that do not hash
// prefixes are tried with prefixes that keys share up to a delimiter; each explains only keys with that
// prefix. Throws InvalidInput if the pool has one server, since every client would use it for all keys.
std::vector<Candidate> guess_profiles(const Pool& pool, const PlacementOptions& options,
                                      const std::vector<KeyLocation>& locations);

// Returns true if the best candidate explains the keys, all others were ruled out, and chance cannot be the
// reason. A profile that places all keys alike here but not with one more server is not ruled out.
bool is_certain(const std::vector<Candidate>& candidates);

// One of several clients, or one of several prefixes of a client, that wrote the keys.
struct Writer {
  std::size_t candidate;  // an index
  double share;           // of the keys
};

// A client that does not sort its server list, and places keys like one that does if its own list is in this
// order.
struct OtherOrder {
  std::string_view profile;
  Pool servers;
};
// Returns it if the given list is not in that order, so that keys cannot distinguish the two.
std::optional<OtherOrder> other_order(const Candidate& best, const Pool& pool);

// Returns each copy on a server where the best candidate would not place it. A key that two clients wrote has
// two copies, and either client explains the key.
std::vector<KeyLocation> other_copies(const Candidate& best, const Pool& pool,
                                      const PlacementOptions& options,
                                      const std::vector<KeyLocation>& locations);

// Returns the probability that at least `met` of `keys` match, if each matches with probability `by_chance`.
double chance_of(std::size_t met, std::size_t keys, double by_chance);

// Returns clients that together explain the keys, the largest first. Returns nothing if one client explains
// them, or if too many stay unexplained.
std::vector<Writer> writers_of(const std::vector<Candidate>& candidates);

// Judges, by the servers of a sample of keys, whether a command uses the right profile.

// Returns the objection to `placement` as the client that wrote these keys, as the end of a sentence, with a
// better profile if there is one; nullopt if there is none. A profile is refused if another one explains more
// keys and this one explains no more than chance of the keys that the other leaves, or if it explains no more
// than chance of all keys. With several writers, each one's profile therefore passes. Fewer than 12 keys, or
// a single server, give no evidence.
std::optional<std::string> objection_to(const Placement& placement, const PlacementOptions& options,
                                        const std::vector<KeyLocation>& locations);

// Returns the profile of a second client that explains `not_on_owner`, the copies where `placement` does not
// look, better than chance; empty if there is none. Copies left on the next server while one was down do not
// count.
std::string second_client(const Placement& placement, const PlacementOptions& options,
                          const std::vector<KeyLocation>& not_on_owner);

}  // namespace mcds
