// Saves what servers hold, so that it can be put back: the keys are listed, then read, the last used first,
// and written as saved.hpp says. Nothing on the servers changes, no item's place in the LRU either. Its
// contract stands at the end of this file.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/saved.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

struct SaveOptions {
  KeySelection selection = {};
  std::optional<std::uint64_t> rate = {};  // items a second at most
  bool structures = false;
};

struct SavedServer {
  std::uint64_t keys = 0;  // listed, of the selection
  std::uint64_t saved = 0;
  std::uint64_t expired = 0;   // since it was listed
  std::uint64_t vanished = 0;  // removed or evicted since it was listed
  std::uint64_t failed = 0;
};

struct SaveReport {
  std::vector<SavedServer> servers;
  std::vector<LiveKeysOfServer> dumps;
  std::map<std::string, std::uint64_t> passed_over;  // keys, by reason
  std::uint64_t structures = 0;                      // saved
  std::vector<std::string> torn;                     // structures that changed each time: `table blocked`
  std::uint64_t items = 0, bytes = 0;                // in the file

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
  std::function<void(std::uint64_t keys)> listed;  // that are to be read
  std::function<void(const std::string& key, const Failure& failure)> failed;
  std::function<void(std::uint64_t done)> progress;
};

// Lists the servers' keys for the function that it is given.
using ReadLiveKeys = std::function<std::vector<LiveKeysOfServer>(const TakeLiveKey& take)>;

// `read` is called once, and again for structures.
SaveReport save_pool(const Context& context, const SaveOptions& options, const SavedWriter::Sink& sink,
                     const ReadLiveKeys& read, const SaveWatch& watch);

}  // namespace mcds

// What is saved: an application's items; with `structures` also ours that are kept in one copy. Never locks,
// fences, votes, nor what is kept in several copies (never_saved.hpp).
//   What a key is, its value tells. Of keys that are called as those of one structure are, those by which it
// is known, its shards and directories are read first: if none is of ours, all are an application's. So
// elements whose index is on a server that is not saved are items, too.
//   A selection is about the structure: all its keys are saved, or none.
//   An item is saved as it was at some moment of the run. What is deleted after that comes back when the file
//   is loaded, and what is written after that is not in it.
//   A structure is saved as it was at one moment, or not at all, and named: its keys are listed twice, and
//   between the first listing and the reading of each nothing of it may have changed, by the items' cas. One
//   that is written all the time is tried three times.
// Round trips: one for each batch of up to 512 items; batches overlap. One more for each batch of those keys
// that tell what a structure is. Memory: a few batches, and a sixteenth of the keys that are called as those
// of structures are; the others are on disk, in files without a name.
// When things fail: a key whose server does not answer is reported; one that was listed and is gone is
// counted, as expired or as vanished.
