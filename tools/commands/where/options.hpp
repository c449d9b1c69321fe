// The options of `mcds where`, and the parts of it that contact servers.
#pragma once

#include "common/operations/listings.hpp"
#include "common/placement/guess.hpp"
#include "tools/cli/removal.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct WhereOptions {
  std::vector<std::string> keys;
  bool explain = false, profiles = false, guess = false;
  bool probe = false, prune = false, live = false, list = false, dry_run = false, yes = false;
  bool even_last = false, even_replicas = false, without_cas = false;
  std::optional<std::string> operation, down, moved_from, as_from, journal, audit, divergent;
  SelectedKeys selected;
  std::optional<std::uint64_t> sample;
};

using Placements = std::vector<std::shared_ptr<const Placement>>;

using TakeKey = std::function<ExitStatus(std::string&& key)>;
using SendKeys = std::function<ExitStatus()>;
// Calls `take` with every key given, including its namespace, or with every line of standard input for `-`,
// and `send` after each window of keys. Returns the worst status that they return. An invalid key (KeyRules)
// stops the others only on the command line.
ExitStatus for_each_key(Session& session, const Placements& placements, const WhereOptions& options,
                        const TakeKey& take, const SendKeys& send = {});

// probe.cpp: reports where the copies are.
ExitStatus where_probe(Session& session, const WhereOptions& options, const Placements& placements);
// audit.cpp: compares every key that the servers list with the place where it belongs. Returns nullopt if
// some server did not list all its keys: a key that seems to be missing on it may exist.
std::optional<ExitStatus> where_audit(Session& session, const WhereOptions& options,
                                      const Placements& placements);
// moved.cpp: finds what a move left in old places.
ExitStatus where_moved(Session& session, const WhereOptions& options);
// guess.cpp: finds which client put the keys where they are.
ExitStatus where_guess(Session& session, const WhereOptions& options);

// Keys that the servers of a pool hold now.

using KeyLocations = std::vector<KeyLocation>;

// Returns about `wanted` keys of the selection, alternating between the servers, each with its server. Throws
// NotApplied if no server lists any key. If `warns` is true, warns of servers that list none.
KeyLocations live_sample(Session& session, const Pool& pool, std::uint64_t wanted, bool warns = true,
                         const KeySelection& selection = {});

// Warns that most live keys are not where the profile reads; names a client that explains them, if any.
void warn_of_another_client(Session& session, const Placement& placement);

// Returns every key of the selection, with its name. A server that does not list all its keys is reported as
// an error and worsens `status`. Throws NotApplied if no server lists any key.
Listings all_live_keys(Session& session, const Pool& pool, const KeySelection& selection, ExitStatus& status);

}  // namespace mcds
