// Move: copies the items of a pool to where another placement stores them: other servers, another client, or
// both. Its contract is at the end of this file.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/listings.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

struct MoveOptions {
  std::optional<std::uint64_t> rate = {};  // maximum items per second
  KeySelection selection = {};             // of keys; the namespace is the context's
  std::string journal = {};                // empty: no journal
  bool dry_run = false;
  bool again = false;
  // Accepts servers without cas, where a write between reading and writing is lost.
  bool without_cas = false;
};

// The items that move from one old server to one new server.
struct MovedPair {
  std::uint64_t keys = 0, size_bytes = 0;  // to be moved; bytes of the old server's memory
  std::uint64_t copied = 0;                // stored by this run
  std::uint64_t already = 0;               // existed with the same bytes, or copied by an earlier run
  std::uint64_t updated = 0;               // copied by an earlier run, changed on the old server since
  std::uint64_t merged = 0;                // merged journals and logs that had changed in both places
  std::uint64_t gone = 0;                  // expired or removed since they were listed
  std::uint64_t locks = 0;                 // not to be moved
  std::uint64_t left = 0;                  // reported by name
};

struct MovedServer {
  std::uint64_t keys = 0;  // listed, with the namespace and prefix
  std::uint64_t stays = 0;
  std::uint64_t moves = 0;
  std::uint64_t arrived = 0;    // the new client reads this server
  std::uint64_t misplaced = 0;  // neither client reads this server
  std::uint64_t locks = 0;
};

// Events on a new server while items were copied.
struct ServerEvents {
  std::uint64_t evicted = 0;  // items, copied or others
  bool restarted = false;     // all its items are lost
  bool flushed = false;
};

struct KeptItem {
  std::string key;
  std::size_t from = 0, to = 0;
  const char* reason = "";  // one word, such as `differs` or `refused`
  std::string message;      // a sentence
};

struct MoveReport {
  std::vector<MovedServer> servers;                                // by old and new server
  std::map<std::pair<std::size_t, std::size_t>, MovedPair> pairs;  // old, new
  std::vector<LiveKeysOfServer> dumps;                             // of the old pool
  std::vector<std::optional<ServerEvents>> restarts;               // of the new pool; unset: not reported
  std::vector<std::uint64_t> lost;  // of the new pool: copied by earlier runs and lost since
  std::uint64_t done = 0;           // of the items to be moved
  Duration copying{};               // without the time of listing
};

class Move {
 public:
  // `from.cluster` and `to` have the two placements. `from.copies` applies to structures that state no copy
  // count. `statistics` reads the new servers' statistics over separate connections, because some proxies
  // close a connection that requests them; nullptr: `to`.
  Move(const Context& from, Cluster& to, MoveOptions options, Cluster* statistics = nullptr);
  ~Move();
  Move(const Move&) = delete;
  Move& operator=(const Move&) = delete;

  // Returns true if the journal has items of an earlier run.
  bool continues() const;
  // Lists the old servers' keys by `read`, and returns how many must move. Throws NotApplied if one of the
  // servers involved has no cas, because a later write could not be distinguished from the copy.
  using ReadKeys = std::function<std::vector<LiveKeysOfServer>(const TakeLiveKey& take)>;
  std::uint64_t list(const ReadKeys& read);
  struct Watch {
    std::function<void(const KeptItem&)> left;
    std::function<void(std::uint64_t done)> progress;  // called after each batch
  };
  const MoveReport& copy(const Watch& watch);
  const MoveReport& report() const;
  // Returns a sample of the listed keys with their servers, to check the old placement.
  const std::vector<KeyLocation>& sample() const;

 private:
  struct Parts;
  class Copier;
  std::unique_ptr<Parts> parts_;
};

// OldPlaces: removes the items that are left on their old servers once all clients use the new placement. An
// item is removed if the new place has the same value or more. A value that differs may be newer and stays,
// unless `options.journal` shows that it was not written since it was copied.
class OldPlaces {
 public:
  // `from_statistics` and `to_statistics` have separate connections for the servers' statistics, as for Move.
  // Throws Failure(cannot_read, bad_data) for the journal.
  OldPlaces(const Context& from, Cluster& to, const MoveOptions& options, Cluster* from_statistics = nullptr,
            Cluster* to_statistics = nullptr);
  ~OldPlaces();
  OldPlaces(const OldPlaces&) = delete;
  OldPlaces& operator=(const OldPlaces&) = delete;

  struct Report {
    std::uint64_t keys = 0;        // listed, with the namespace and prefix
    std::uint64_t misplaced = 0;   // neither client reads this server
    std::uint64_t locks = 0;       // left to expire
    std::uint64_t on_old = 0;      // only the old client reads this server
    std::uint64_t removed = 0;     // or would be
    std::uint64_t only_there = 0;  // missing on the new server
    std::uint64_t differs = 0;     // from the value on the new server; it may be newer
    std::uint64_t changed = 0;     // written each time before they could be removed
    std::uint64_t failed = 0;
    std::vector<LiveKeysOfServer> dumps;  // of the old pool, then of the new pool's other servers
  };
  // Lists the keys of `pool`, which has the old and the new servers.
  using ReadKeys = std::function<std::vector<LiveKeysOfServer>(const Pool& pool, const TakeLiveKey& take)>;
  const Report& list(const ReadKeys& read);
  const Pool& pool() const;
  // Removes by compare-and-delete. With `even_last`, also removes and reports items that the new place lacks.
  const Report& remove(bool even_last, const Move::Watch& watch);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mcds

// Key layout
//   No keys of its own. A structure moves as a whole: segments, further parts and elements first, then the
//   journals, chunks and shards that name them, then manifests and directories (map.hpp decides by name).
//   Locks, their fences and claims never move: a lock held in two places would have two holders.
//   The journal of a move is a local file: move_journal.hpp.
// Invariants
//   Items are stored by add, so nothing is overwritten or removed that this move did not store. With `again`
//   an item is replaced by cas if the new server still has the copy that the journal records, with its bytes
//   and its cas token, so writes of the new pool's clients stay. Of a copy by a run that was killed before it
//   read the token, the bytes decide.
//   Value, flags and remaining ttl are kept. Each item counts as copied once it was read back from its new
//   server; every other item that should have moved is reported by name and reason.
//   If both places have changed, journals, event logs and indexes are merged line by line. For other items
//   the new value stays, and this is reported.
//   A root is stored only after all segments that it names.
//   The journal has each item's digest before the item is stored, so that a run interrupted at any point
//   leaves no copy that the next run mistakes for another client's write.
// Round trips
//   Two for each batch of up to 512 items, one to read and one to store and read back; batches overlap. One
//   more if keys have spaces or control characters or their ttl changed, on a new connection and to a proxy;
//   and more for a journal with segments or one to be merged.
//   Memory: a few batches; the listed keys are on disk.
// When things fail
//   crash          run it again with the same journal: settled items are skipped, the rest is done. Without a
//                  journal everything is tried again, and existing items with the same bytes stay.
//   new server restarted or flushed   reported; the next run copies the lost items again. With `again` they
//                  are reported only, because clients of the new list may have changed or removed them.
//   new server evicts   reported; at the end of the run its items are read again, in one trip for each batch,
//                  and the journal records the missing ones, which are lost as by a restart. A run that is
//                  killed before records none.
//   old server restarted   its cas tokens are meaningless, so its items are read again.
//   lost reply     the value that is read back decides.
//   server down    its items are reported as left; the others continue.
//   deleted on the old servers meanwhile   the copy stays: memcached cannot tell removed from evicted.
//   deleted on the new servers meanwhile   items that did not change on the old servers are not copied again.
//   a counter incremented on both sides    the new value stays, and this is reported.
// Source
//   Own.
