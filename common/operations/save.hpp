// save_pool(): saves the items of a pool to a file (saved.hpp). The keys are listed, then read, the most
// recently used first. Nothing on the servers changes, including the LRU. Its contract is at the end.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/saved.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

struct SaveOptions {
  KeySelection selection = {};
  std::optional<std::uint64_t> rate = {};  // maximum items per second
  bool structures = false;
};

struct SavedServer {
  std::uint64_t keys = 0;  // listed and selected
  std::uint64_t saved = 0;
  std::uint64_t expired = 0;   // since it was listed
  std::uint64_t vanished = 0;  // removed or evicted since it was listed
  std::uint64_t failed = 0;
};

struct SaveReport {
  std::vector<SavedServer> servers;
  std::vector<LiveKeysOfServer> dumps;
  std::map<std::string, std::uint64_t> skipped;  // skipped keys, by reason
  std::uint64_t unselected = 0;                  // keys outside the selection, without locks and votes
  std::uint64_t structures = 0;                  // saved
  std::vector<std::string> torn;                 // structures that changed each time, such as `table blocked`
  std::uint64_t items = 0, bytes = 0;            // in the file

  SavedServer sum() const {
    SavedServer all;
    for (const SavedServer& one : servers) {
      all.keys += one.keys, all.saved += one.saved, all.expired += one.expired;
      all.vanished += one.vanished, all.failed += one.failed;
    }
    return all;
  }
};

struct SaveWatch {
  std::function<void(std::uint64_t keys)> listed;  // keys that will be read
  std::function<void(const std::string& key, const Failure& failure)> failed;
  std::function<void(std::uint64_t done)> progress;
};

// Lists the servers' keys and passes each to `take`.
using ReadLiveKeys = std::function<std::vector<LiveKeysOfServer>(const TakeLiveKey& take)>;

// Calls `read` once, and again for structures.
SaveReport save_pool(const Context& context, const SaveOptions& options, const SavedWriter::Sink& sink,
                     const ReadLiveKeys& read, const SaveWatch& watch);

}  // namespace mcds

// An application's items are saved; with `structures`, also our structures that have one copy. Locks, fences,
// votes, cached output with its tags, and structures with several copies are never saved (not_saveable.hpp).
// A key's value decides what it is. If keys are named like those of one structure, its root, shards and
// directories are read first. If none of them has our format, all the keys belong to an application. Elements
// whose index is on a server that is not saved are therefore saved as items.
// A selection applies to whole structures: all keys are saved, or none.
// An item is saved as it was at some moment of the run. If it is deleted later, loading the file brings it
// back; later writes are missing.
// A structure is saved as it was at one moment, or reported as not saved. Its keys are listed twice, and none
// may change, by cas token, between the first listing and the reading of its value. A structure that is
// written all the time is tried three times.
// Round trips: one for each batch of up to 512 items; batches overlap. One more for each batch of keys that
// identify structures. Memory: a few batches, and 1/128 of the keys that are named like those of structures;
// the others are on disk, in unnamed files.
// When things fail: a key whose server does not answer is reported. A key that was listed but is missing is
// counted as expired or vanished.
