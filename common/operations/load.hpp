// Puts back what was saved (saved.hpp), where this pool's client looks for it. Its contract stands at the
// end of this file.
#pragma once

#include <set>

#include "common/cluster/keys/live.hpp"
#include "common/operations/saved.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// Where the file says that its items were.
struct SavedPlaces {
  std::shared_ptr<const Placement> before;  // of the list that was saved, by the profile of the load
  std::vector<std::optional<std::size_t>>
      now;  // of each of its servers the index in the pool, if it is there
};

struct LoadOptions {
  KeySelection selection = {};
  std::optional<std::uint64_t> rate = {};            // items a second at most
  std::optional<std::chrono::seconds> max_ttl = {};  // of what is left, also of what would never end
  std::optional<std::size_t> on = {};                // all to this server
  bool overwrite = false;
  bool dry_run = false;
  std::optional<SavedPlaces> places = {};
  bool even_astray = false;  // for who compares the file's sample with the profile first
  bool while_room = false;   // with `on`: only until that server evicts
};

struct LoadedServer {
  std::uint64_t loaded = 0;  // or would be
  std::uint64_t there = 0;   // already
  std::uint64_t failed = 0;
  std::uint64_t unknown = 0;  // no reply came: stored or not
};

struct LoadReport {
  std::vector<LoadedServer> servers;
  std::uint64_t items = 0;                           // read, of the selection
  std::uint64_t expired = 0;                         // ended since they were saved
  std::uint64_t astray = 0;                          // left: no client looked, and their server is gone
  std::uint64_t no_room = 0;                         // not loaded: others would have been evicted for them
  std::uint64_t united = 0;                          // of those there: journals and logs that got old lines
  std::set<std::string> other_structures;            // there with what cannot be united: `counter hits`
  std::map<std::string, std::uint64_t> passed_over;  // keys, by reason

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
  std::function<void(std::uint64_t done)> progress;  // items
};

// What `next` gives, until there is no more. `report` says what was done also if it throws.
void load_saved(const Context& context, const LoadOptions& options, const LoadWatch& watch,
                const std::function<std::optional<SavedItem>()>& next, LoadReport& report);

}  // namespace mcds

// Items are stored by `add`, so what clients wrote since stays; with `overwrite` by `set`. Each is stored
// with what is left of its time, and what has ended is passed over. Never loaded, whoever wrote the file:
// locks, fences, votes, and what is kept in several copies (never_saved.hpp).
// Of structures what is there already gets what it lacks, as by a move (roots.hpp): journals, the parts
// of event logs and their directories. A journal's segments go only where its root does not name others; of
// an index whose shard goes on under another incarnation, the manifest loses the old one. Counters and other
// values that differ stay, and are named.
// An item that was where its client, by the profile of the load, did not look goes back to that server, and
// is left if that is not in the pool: elsewhere it may be the older value of two.
// What would end later than a server can hold, in 2038, ends a day before that.
// Round trips: one for each batch of up to 512 items; batches overlap. `while_room`: two for each of up to
// 64, so that no more than one batch is loaded at the cost of others. One more for a journal with segments;
// for a batch with structures of which something is there; and those of each union. Memory: a few batches,
// and the segments of one structure.
// When things fail
//   crash          run it again: what is there already stays.
//   lost reply     the item is counted as unknown; run it again.
//   server down, out of memory   its items are counted as failed; the others go on.
//   too large for the server     not sent, because a refused `set` would remove the old value.
