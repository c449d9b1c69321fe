// Finds the client that placed the keys: compares where they are with where each profile would place them.
#pragma once

#include "common/placement/placement.hpp"

namespace mcds {

// A key and the servers it was found on.
struct Sighting {
  std::string key;
  std::vector<std::size_t> servers;
};

// Profiles that place all given keys alike: these keys cannot distinguish them.
struct Candidate {
  std::vector<std::string_view> profiles;    // the best known first
  std::vector<std::string_view> alike_here;  // those of them that place alike on this pool only
  // Of the best, where all of them place all keys alike here: those that do not with one server more.
  std::vector<std::string_view> not_elsewhere = {};
  std::string prefix = {};    // where keys carry one that these profiles do not hash
  std::size_t explained = 0;  // keys that are where these profiles put them
  // The number of keys, in the given order, after which it fell behind the best for good; nullopt: it has
  // not.
  // Of the best: until all others had; nullopt also if its profiles place other keys differently.
  std::optional<std::size_t> keys_needed = {};
  double by_luck = 1;  // the share of keys that would match by chance
  // How many profiles are expected to explain as many of these keys by chance.
  double lucky = 1;
  std::vector<bool> matches = {};  // per sighting: it is where these profiles put it
  std::vector<bool> own = {};      // per sighting: it begins with `prefix`

  // Returns the number of keys that begin with `prefix`.
  std::size_t keys() const { return static_cast<std::size_t>(std::ranges::count(own, true)); }
  // Returns whether it explains some keys, and chance alone would as many.
  bool is_luck() const;
};

// Best first; of equal ones the best known. Profiles that cannot use the pool are left out; where nearly all
// keys are on all servers, so are those that keep them on fewer, and else those that keep every key on all.
// Where no prefix is configured, profiles that do not hash one are tried with what keys have in common before
// a delimiter; each explains keys with that prefix alone.
// Throws InvalidInput when the pool has one server: every client would put everything there.
std::vector<Candidate> guess_profiles(const Pool& pool, const PlacementOptions& options,
                                      const std::vector<Sighting>& sightings);

// Whether the best explains the keys, all others were ruled out, and chance cannot be the reason. A profile
// that places all keys alike here, but not with one server more, was not.
bool is_certain(const std::vector<Candidate>& candidates);

// One of several clients, or of several prefixes of a client, that wrote the keys.
struct Writer {
  std::size_t candidate;  // an index
  double share;           // of the keys
};

// A client that places keys as one that sorts its list does, if its own list is in this order.
struct OtherOrder {
  std::string_view profile;
  Pool servers;
};
// Returns it if the given list is not in that order, so that keys do not tell the two apart.
std::optional<OtherOrder> other_order(const Candidate& best, const Pool& pool);

// The copies that lie where the best candidate would not put them, one by one: a key that two clients wrote
// is in two places, and either explains the key.
std::vector<Sighting> other_copies(const Candidate& best, const Pool& pool, const PlacementOptions& options,
                                   const std::vector<Sighting>& sightings);

// Returns the chance that of `keys`, each met by luck with `by_luck`, at least `met` are.
double chance_of(std::size_t met, std::size_t keys, double by_luck);

// Clients that together explain what none explains alone, the largest first; empty: one does, or too much
// stays unexplained.
std::vector<Writer> writers_of(const std::vector<Candidate>& candidates);

// Whether a command that places keys by a profile has the right one, judged by where a sample of them is.

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
