// load_saved(): stores saved items (saved.hpp) where this pool's client looks for them. Its contract is at
// the end of this file.
#pragma once

#include <set>

#include "common/cluster/keys/live.hpp"
#include "common/operations/saved.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// The servers that the items were saved from.
struct SavedPlaces {
  std::shared_ptr<const Placement> before;  // of the saved server list, with the profile of the load
  std::vector<std::optional<std::size_t>>
      now;  // for each server of that list: its index in the pool, if it is there
};

struct LoadOptions {
  KeySelection selection = {};
  std::optional<std::uint64_t> rate = {};            // maximum items per second
  std::optional<std::chrono::seconds> max_ttl = {};  // limits the remaining ttl, and items without expiry
  std::optional<std::size_t> on = {};                // load everything to this server
  bool overwrite = false;
  bool dry_run = false;
  std::optional<SavedPlaces> places = {};
  bool even_misplaced =
      false;  // load misplaced items too; set if the caller checks the file's sample against the profile
  bool while_room = false;  // with `on`: stop when that server evicts
};

struct LoadedServer {
  std::uint64_t loaded = 0;  // or would be loaded
  std::uint64_t there = 0;   // existed already
  std::uint64_t failed = 0;
  std::uint64_t unknown = 0;  // no reply: may have been stored
};

struct LoadReport {
  std::vector<LoadedServer> servers;
  std::uint64_t items = 0;                 // read from the file and selected
  std::uint64_t expired = 0;               // since they were saved
  std::uint64_t misplaced = 0;             // skipped: not where a client looked, and their server is gone
  std::uint64_t no_room = 0;               // skipped: loading them would have evicted other items
  std::uint64_t merged = 0;                // existing journals and logs that got saved lines
  std::set<std::string> other_structures;  // existing ones that cannot be merged, such as `counter hits`
  std::map<std::string, std::uint64_t> skipped;  // skipped keys, by reason

  LoadedServer sum() const {
    LoadedServer all;
    for (const LoadedServer& one : servers) {
      all.loaded += one.loaded, all.there += one.there;
      all.failed += one.failed, all.unknown += one.unknown;
    }
    return all;
  }
};

struct LoadWatch {
  std::function<void(const std::string& key, const Failure& failure)> failed;
  std::function<void(std::uint64_t done)> progress;  // items done
};

// Loads the items that `next` returns, until it returns nullopt. `report` is valid even if this throws.
void load_saved(const Context& context, const LoadOptions& options, const LoadWatch& watch,
                const std::function<std::optional<SavedItem>()>& next, LoadReport& report);

}  // namespace mcds

// Items are stored by `add`, so that values written since then stay; with `overwrite`, by `set`. Each keeps
// its remaining ttl; expired items are skipped. Locks, fences, votes and structures with several copies are
// never loaded, whichever program wrote the file (not_saveable.hpp).
// An existing structure gets the lines that it lacks, as in a move (structure_merger.hpp): journals, parts of
// event logs and their directories. A journal's segments are loaded only if its root does not name others. If
// an index shard continues under another incarnation, the manifest loses the old one. Counters and other
// values that differ stay and are reported.
// An item saved from a server where its client, by the profile of the load, did not look goes back to that
// server, or is skipped if the pool lacks it: elsewhere it could be the older of two values.
// Expiry times beyond the maximum of servers, in 2038, are reduced to a day before it.
// Round trips: one for each batch of up to 512 items; batches overlap. `while_room`: two for each of up to
// 64, so that at most one batch is loaded at the cost of other items. One more for a journal with segments,
// and for a batch with existing structures, plus those of each merge. Memory: a few batches, and the segments
// of one structure.
// When things fail
//   crash          run it again: existing items stay.
//   lost reply     the item is counted as unknown; run it again.
//   server down, out of memory   its items are counted as failed; the others continue.
//   too large for the server     not sent, because a refused `set` would remove the old value.
