// What `mcds where` was asked, and its parts that ask servers.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/listings.hpp"
#include "common/placement/guess.hpp"
#include "common/placement/placement.hpp"
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
// Every key given, with its namespace, or every line of standard input for `-`. The worst of
// what `take` and `send` return; it is called behind each window of keys. A key that is none
// (KeyRules) stops the others only on the command line.
ExitStatus for_each_key(Session& session, const Placements& placements, const WhereOptions& options,
                        const TakeKey& take, const SendKeys& send = {});

// probe.cpp: where the copies are.
ExitStatus where_probe(Session& session, const WhereOptions& options, const Placements& placements);
// audit.cpp: every key that the servers list, against where it belongs. nullopt: not every server listed all
// its keys, so that what is missing on one may be there.
std::optional<ExitStatus> where_audit(Session& session, const WhereOptions& options,
                                      const Placements& placements);
// moved.cpp: what a move left on old places.
ExitStatus where_moved(Session& session, const WhereOptions& options);
// guess.cpp: which client put the keys where they are.
ExitStatus where_guess(Session& session, const WhereOptions& options);

// Keys that the servers of a pool hold now.

using Sightings = std::vector<Sighting>;

// Returns about `wanted` keys of the selection, alternating between the servers, each with the server it was
// listed by. Throws NotApplied when none lists any; `warns` of those that do not.
Sightings live_sample(Session& session, const Pool& pool, std::uint64_t wanted, bool warns = true,
                      const KeySelection& selection = {});

// Warns that most live keys are not where the profile looks, and names the client that explains them if there
// is one (guess.cpp).
void warn_of_another_client(Session& session, const Placement& placement);

// Every key of the selection, with its name. What servers do not list makes the answer incomplete: each is an
// error and worsens the status. Throws NotApplied when none lists any.
Listings all_live_keys(Session& session, const Pool& pool, const KeySelection& selection, ExitStatus& status);

}  // namespace mcds
