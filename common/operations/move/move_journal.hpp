// MoveJournal: the file of --journal, which records what was copied. An interrupted run continues from it,
// and a second run uses it to find the items that still are as they were copied.
//
// The file has 64 bytes of text that identify the move, then records of 40 bytes in the machine's byte order:
//   copied     the key's 128-bit hash, a 64-bit digest of value and flags, the old server's cas token, and
//              the expiry; written before the item is stored. The digest 0 means that the item is missing
//              on its new server, which evicted items
//   settled    a copied record that is done: the key's hash, the record's number, and the cas token that the
//              copy has on its new server; others may or may not have been stored
//   declined   the same of a record that was not stored, because the new server has another client's value
//   start      a server at the start of a run: the hash of its address, its start time, flushes and pid
// The last copied record of a key counts. The new server may hold the item of any since the last settled one.
// A partial record at the end is cut off.
#pragma once

#include <unordered_map>

#include "common/base/clock.hpp"
#include "common/base/process.hpp"
#include "common/cluster/keys/probe.hpp"
#include "common/operations/spill_file.hpp"

namespace mcds::moving {

struct KeyHash {
  std::uint64_t low = 0, high = 0;
  bool operator==(const KeyHash&) const = default;
};
// Returns the hash of a key. `copy` distinguishes copies of the key that move to different servers.
KeyHash hash_of(std::string_view key, std::uint8_t copy = 0);
std::uint64_t digest_of(std::string_view value, std::uint32_t flags);

// One run of a server process, with its flushes.
struct RecordedStart {
  std::uint64_t started = 0;       // UNIX seconds by the server's clock
  std::uint32_t flushes = 0;       // `stats reset` sets this number to 0
  std::uint32_t last_flush_s = 0;  // by the server's clock since its start; 0 if it is not reported
  std::uint32_t pid = 0;
};

struct Copied {
  std::uint64_t digest = 0;
  std::uint64_t cas = 0;        // the old server's; 0: unknown
  std::uint32_t expires_s = 0;  // 0: never
  bool settled = false;
  std::uint64_t index = 0;  // value of written() before this record
  bool lost = false;        // it was settled, and its new server has evicted it since
  struct Stored {
    std::uint64_t digest = 0;
    std::uint64_t cas = 0;  // the new server's; 0: unknown
  };
  // The last settled copy and those of interrupted runs since: the new server may hold any of them.
  std::vector<Stored> stored = {};

  // Returns true if an item with this digest, and with this cas token if both are known, may have been stored
  // by a move. The same bytes with another token are a client's write.
  bool may_be(std::uint64_t found, std::uint64_t its_cas = 0) const {
    return std::ranges::any_of(stored, [&](const Stored& one) {
      return one.digest == found && (one.cas == 0 || its_cas == 0 || one.cas == its_cas);
    });
  }
};

class MoveJournal {
 public:
  // An empty journal that records nothing.
  MoveJournal() = default;
  // Throws Failure: try_again if another run has the file open (after two seconds, given a clock), bad_data
  // if it belongs to another move or is no journal, cannot_write.
  MoveJournal(const std::string& path, std::string_view move, Clock* clock = nullptr);

  // Records of earlier runs are loaded by parts; load() keeps only that part in memory.
  std::size_t parts() const { return std::max<std::size_t>(parts_.size(), 1); }
  std::size_t part_of(const KeyHash& key) const { return parts_.empty() ? 0 : key.low % parts_.size(); }
  void load(std::size_t part);
  void load_all();
  const Copied* find(const KeyHash& key) const;
  // Returns true if an earlier run wrote records.
  bool has_history() const { return history_; }

  // add() and write() record a batch before its items are stored; settle() or decline(), and write(), say
  // afterwards what became of them. `index` is the value of written() before the item, `cas` its new token.
  std::uint64_t written() const { return written_; }
  void add(const KeyHash& key, const Copied& copied);
  void settle(const KeyHash& key, std::uint64_t index, std::uint64_t cas);
  void decline(const KeyHash& key, std::uint64_t index);
  void write();

  // Returns the value of written() when the server was first seen since its latest start and flush.
  std::uint64_t alive_since(const KeyHash& server, const RecordedStart& now) const;
  bool knows(const KeyHash& server) const;
  void record_start(const KeyHash& server, const RecordedStart& start);

 private:
  struct Hasher {
    std::size_t operator()(const KeyHash& key) const { return key.low ^ key.high; }
  };
  void read_history();
  void add_part(std::size_t part);
  void fail(const char* what) const;

  Descriptor descriptor_;
  std::string path_;
  bool history_ = false;
  std::uint64_t written_ = 0;  // including earlier runs
  struct Seen {
    KeyHash server;
    RecordedStart start;
    std::uint64_t written;
  };
  std::vector<Seen> seen_;  // in all runs
  std::string buffer_;
  std::vector<SpillFile> parts_;
  std::unordered_map<KeyHash, Copied, Hasher> loaded_;
};

}  // namespace mcds::moving
