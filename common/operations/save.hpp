// Saves what servers hold, so that it can be put back: the keys are listed, then read, the last used first,
// and written as saved.hpp says. Nothing on the servers changes, no item's place in the LRU either. Its
// contract stands at the end of this file.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/pace.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/cluster/keys/selection.hpp"
#include "common/operations/never_saved.hpp"
#include "common/operations/saved.hpp"
#include "common/primitives/context.hpp"
#include "common/structures/move/expiry.hpp"
#include "common/structures/move/spool.hpp"

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
};

class Save {
 public:
  Save(const Context& context, SaveOptions options, SavedWriter::Sink sink);

  // Lists the servers' keys; `read` is given a function that takes them, and is called again for structures.
  // How many are to be read.
  using ReadKeys = std::function<std::vector<LiveKeysOfServer>(const TakeLiveKey& take)>;
  std::uint64_t list(ReadKeys read);
  struct Watch {
    std::function<void(const Failure& failure)> failed;
    std::function<void(std::uint64_t done)> progress;
  };
  const SaveReport& write(const Watch& watch);

 private:
  using Records = std::vector<moving::Spooled>;
  struct Reading {
    Records records;
    WallTime asked;
    std::unique_ptr<Pending> pending;
  };
  // The keys of a structure, as one listing had them.
  struct Group {
    std::uint64_t keys = 0, sum = 0;
    bool comparable = true;
    bool operator==(const Group&) const = default;
  };
  using Groups = std::unordered_map<std::uint64_t, Group>;
  using Names = std::map<std::uint64_t, std::string>;

  bool take(const LiveKey& key);
  void add_to(Groups& groups, std::uint64_t structure, const LiveKey& key) const;
  void write_structures(const Watch& watch);
  void write_part(Records records, const Groups& unchanged, Groups& saved, Names& names, const Watch& watch);
  bool write_whole(std::span<moving::Spooled> records, std::span<Reply> replies);
  void write_items(const Watch& watch);
  void begin(Records records, std::deque<Reading>& reading);
  void finish(Reading reading, const Watch& watch);
  std::vector<Reply> replies_of(Reading& reading);
  void keep(moving::Spooled& record, const Reply& reply, const Watch& watch);
  std::optional<std::int64_t> end_of(const moving::Spooled& record) const;
  JsonObject first_words() const;

  Context context_;
  SaveOptions options_;
  SavedWriter::Sink sink_;
  ReadKeys read_;
  moving::Clocks clocks_;
  WallTime started_;
  Pace pace_;
  std::unique_ptr<SavedWriter> writer_;
  static constexpr std::size_t heats = 64;
  std::array<std::optional<moving::Spool>, heats> spools_;  // by the time since the last use
  Groups groups_;
  std::uint64_t done_ = 0;
  SaveReport report_;
};

}  // namespace mcds

// What is saved: an application's items; with `structures` also ours that are kept in one copy. Never locks,
// fences, votes, marks, nor what is kept in several copies (never_saved.hpp).
//   An item is saved as it was at some moment of the run. What is deleted after that comes back when the file
//   is loaded, and what is written after that is not in it.
//   A structure is saved as it was at one moment, or not at all, and named: its keys are listed twice, and
//   between the first listing and the reading of each nothing of it may have changed, by the items' cas. One
//   that is written all the time is tried three times.
// Round trips: one for each batch of up to 512 items; batches overlap. Memory: a few batches; keys are on
// disk, in files without a name.
// When things fail: a key whose server does not answer is reported; one that was listed and is gone is
// counted, as expired or as vanished.
