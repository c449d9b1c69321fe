// The file of --journal: what was copied, so that a run that was ended goes on where it was, and a second one
// knows what is still as it was copied.
//
// 64 bytes of text that name the move, then records of 40 bytes in the machine's byte order:
//   copied     the key's 128-bit hash, a 64-bit digest of value and flags, the old server's cas unique, when
//              it expires; written before the item is
//   settled    these copied ones, the first and how many, are done; others may or may not have been stored
//   life       of a server when a run begins, by the hash of its address: when it was started, how often it
//              was flushed, its pid
// The last record of a key counts; what the new server may hold is any since the last settled one. A half
// record at the end is cut off.
#pragma once

#include <unordered_map>

#include "common/base/clock.hpp"
#include "common/base/process.hpp"
#include "common/cluster/keys/probe.hpp"
#include "common/operations/spool.hpp"

namespace mcds::moving {

struct KeyHash {
  std::uint64_t low = 0, high = 0;
  bool operator==(const KeyHash&) const = default;
};
// `copy`: several copies of a key may move, each to a server of its own.
KeyHash hash_of(std::string_view key, std::uint8_t copy = 0);
std::uint64_t digest_of(std::string_view value, std::uint32_t flags);

// From its start to its end.
struct Life {
  std::uint64_t started = 0;  // UNIX seconds by its own clock
  std::uint64_t flushes = 0;
  std::uint32_t pid = 0;
};

struct Copied {
  std::uint64_t digest = 0;
  std::uint64_t cas = 0;        // 0: unknown
  std::uint32_t expires_s = 0;  // 0: never
  bool settled = false;
  // Of runs that were ended since it was settled: any of them may be what is there.
  std::vector<std::uint64_t> earlier = {};
  std::uint64_t index = 0;  // the number that written() was before it

  // Whether what has this digest was stored by a move, as far as is known.
  bool may_be(std::uint64_t found) const {
    return found == digest || std::ranges::find(earlier, found) != earlier.end();
  }
};

class Ledger {
 public:
  // Nothing is remembered.
  Ledger() = default;
  // Throws Failure(try_again) when another run has it open, with a clock for two seconds; (bad_data) when it
  // is of another move or no such file, (cannot_write).
  Ledger(const std::string& path, std::string_view move, Clock* clock = nullptr);

  // What earlier runs left is looked up by parts, one of which is in memory at a time.
  std::size_t parts() const { return std::max<std::size_t>(parts_.size(), 1); }
  std::size_t part_of(const KeyHash& key) const { return parts_.empty() ? 0 : key.low % parts_.size(); }
  void load(std::size_t part);
  void load_all();
  const Copied* find(const KeyHash& key) const;
  // Whether there was a run before this.
  bool has_history() const { return history_; }

  // A batch's keys before they are stored; and once they are, by the number that written() was before them.
  std::uint64_t written() const { return written_; }
  void add(const KeyHash& key, const Copied& copied);
  void write();
  void settle(std::uint64_t first, std::uint64_t count);

  // Of a server that now lives this life: the number that written() was when it was first seen in it, and not
  // flushed since.
  std::uint64_t alive_since(const KeyHash& server, const Life& now) const;
  bool knows(const KeyHash& server) const;
  void add_life(const KeyHash& server, const Life& life);

 private:
  struct Hasher {
    std::size_t operator()(const KeyHash& key) const { return key.low ^ key.high; }
  };
  void read_history();
  void add_part(std::size_t part);
  void add_settled(std::uint64_t first, std::uint64_t count);
  bool is_settled(std::uint64_t index) const;
  void fail(const char* what) const;

  Descriptor descriptor_;
  std::string path_;
  bool history_ = false;
  std::uint64_t written_ = 0;                                     // by this run and those before
  std::vector<std::pair<std::uint64_t, std::uint64_t>> settled_;  // by those before: from, to
  struct Seen {
    KeyHash server;
    Life life;
    std::uint64_t written;
  };
  std::vector<Seen> seen_;  // in all runs
  std::string buffer_;
  std::vector<Spool> parts_;
  std::unordered_map<KeyHash, Copied, Hasher> loaded_;
};

}  // namespace mcds::moving

// The file of where --divergent drop --journal: the copies that go, written down before the first of them
// does, so that a run that was ended goes on where it was.

namespace mcds {

namespace moving {
class Ledger;
}

class DropJournal {
 public:
  // Throws as moving::Ledger does.
  DropJournal(const std::string& path, const Placement& placement, const std::string& key_prefix,
              Clock& clock);
  ~DropJournal();

  // Returns whether the journal has this copy, and it was not written since.
  // add() stores the copies on these servers before they are removed.
  bool has(const std::string& key, const KeyCopy& copy) const;
  void add(const std::string& key, const KeyCopies& copies, std::span<const std::size_t> servers);

 private:
  std::unique_ptr<moving::Ledger> ledger_;
};

}  // namespace mcds
