// Copies what a pool holds to where another placement keeps it: other servers, another client, or both. Its
// contract stands at the end of this file.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "common/operations/listings.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

struct MoveOptions {
  std::optional<std::uint64_t> rate = {};  // items a second at most
  KeySelection selection = {};             // of keys; the namespace is the context's
  std::string journal = {};                // empty: none
  bool dry_run = false;
  bool again = false;
  // Servers without cas are accepted: there a write between reading and writing is lost.
  bool without_cas = false;
};

// Of one old server and one new.
struct MovedPair {
  std::uint64_t keys = 0, size_bytes = 0;  // to be moved; bytes of the old server's memory
  std::uint64_t copied = 0;                // stored now
  std::uint64_t already = 0;               // there before, with the same bytes, or by an earlier run
  std::uint64_t updated = 0;               // copied before, and changed since on the old server
  std::uint64_t united = 0;                // journals and logs that had changed in both places
  std::uint64_t gone = 0;                  // expired or removed since they were listed
  std::uint64_t locks = 0;                 // not to be moved
  std::uint64_t left = 0;                  // told by name
};

struct MovedServer {
  std::uint64_t keys = 0;  // listed, of the namespace and prefix
  std::uint64_t stays = 0;
  std::uint64_t moves = 0;
  std::uint64_t arrived = 0;  // where the new client looks
  std::uint64_t astray = 0;   // where neither does
  std::uint64_t locks = 0;
};

// Of a new server, while items were copied.
struct ServerIncidents {
  std::uint64_t evicted = 0;  // items, copied ones or others
  bool restarted = false;     // with nothing of what it had
  bool flushed = false;
};

struct LeftItem {
  std::string key;
  std::size_t from = 0, to = 0;
  const char* reason = "";  // a word: `differs`, `refused`, …
  std::string message;      // a sentence
};

struct MoveReport {
  std::vector<MovedServer> servers;                                // of the old pool
  std::map<std::pair<std::size_t, std::size_t>, MovedPair> pairs;  // old, new
  std::vector<LiveKeysOfServer> dumps;                             // of the old pool
  std::vector<std::optional<ServerIncidents>> incidents;           // of the new pool; unset: it does not tell
  std::vector<std::uint64_t>
      lost;                // of the new pool: copied by earlier runs, before it was restarted or flushed
  std::uint64_t done = 0;  // of those to be moved
  Duration copying{};      // without the time of listing
};

class Move {
 public:
  // `from.cluster` and `to` have the placements. `from.copies`: of what is kept in no number of its own.
  // `statistics`: the new servers by other connections, because there are proxies that close them when asked
  // for any; unset: `to`.
  Move(const Context& from, Cluster& to, MoveOptions options, Cluster* statistics = nullptr);
  ~Move();
  Move(const Move&) = delete;
  Move& operator=(const Move&) = delete;

  // Whether the journal has items of an earlier run.
  bool continues() const;
  // Lists the old servers' keys; `take` is given a function that reads them. Returns how many are to be
  // moved. Throws NotApplied for a server without cas between which and another items would move, because
  // what is written there since could not be told from its copy.
  using ReadKeys = std::function<std::vector<LiveKeysOfServer>(const TakeLiveKey& take)>;
  std::uint64_t list(const ReadKeys& read);
  struct Watch {
    std::function<void(const LeftItem&)> left;
    std::function<void(std::uint64_t done)> progress;  // after each batch
  };
  const MoveReport& copy(const Watch& watch);
  const MoveReport& report() const;
  // Returns a sample of the listed keys with their servers, by which the old placement is judged.
  const std::vector<Sighting>& sample() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// What is left on old places once all clients have moved: removed where the new place holds the same, or more
// than it; what differs may be newer, and stays, unless `options.journal` says that it was not written since
// it was copied.
class OldPlaces {
 public:
  // Throws Failure(cannot_read, bad_data) for the journal.
  OldPlaces(const Context& from, Cluster& to, const MoveOptions& options);
  ~OldPlaces();
  OldPlaces(const OldPlaces&) = delete;
  OldPlaces& operator=(const OldPlaces&) = delete;

  struct Report {
    std::uint64_t keys = 0;        // listed, of the namespace and prefix
    std::uint64_t astray = 0;      // where neither client looks
    std::uint64_t locks = 0;       // left to end by themselves
    std::uint64_t on_old = 0;      // where only the old client looks
    std::uint64_t removed = 0;     // or would be
    std::uint64_t only_there = 0;  // the new place has none
    std::uint64_t differs = 0;     // from what the new place has; it may be newer
    std::uint64_t changed = 0;     // written while it was to be removed, or gone
    std::uint64_t failed = 0;
    std::vector<LiveKeysOfServer> dumps;  // of the old pool, then of the new pool's other servers
  };
  // Of old and new servers: `pool` is both.
  using ReadKeys = std::function<std::vector<LiveKeysOfServer>(const Pool& pool, const TakeLiveKey& take)>;
  const Report& list(const ReadKeys& read);
  const Pool& pool() const;
  // Compare-and-delete. `even_last`: also where the new place has none; it says so.
  const Report& remove(bool even_last, const Move::Watch& watch);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mcds

// Key layout
//   None of its own. What belongs to a structure of ours goes as a whole: segments, further parts and
//   elements first, then the journals, chunks and shards that name them, then manifests and directories
//   (map.hpp says by their names which is which). Locks, their fences and claims never go: a lock that is
//   held in two places is held twice.
//   The journal of a move is a local file: ledger.hpp.
// Invariants
//   Nothing is overwritten and nothing removed that this move did not store: items are stored by add. With
//   `again` an item is replaced where the new server still holds what the journal says was copied, by gets
//   and cas, so what the new pool's clients wrote stays.
//   Value, flags and what is left of the ttl are kept. Each item is read back from its new server before it
//   counts.
//   What is told as copied was stored and read back; everything else that should have gone is told by name
//   and reason.
//   Where both places have changed, journals, event logs and indexes are united line by line; of other items
//   the new one stays, and that is told.
//   A root is stored only when every segment that it names is there.
//   The journal has each item's digest before the item is stored, so that a run that ends at any point leaves
//   nothing that the next takes for somebody else's.
// Round trips
//   Two for each batch of up to 512 items, one to read and one to store and read back; batches overlap. A
//   journal with segments or one to be united: some by itself. Memory: a few batches; the keys to be moved
//   are on disk.
// When things fail
//   crash          run it again with the same journal: what is settled is passed over, the rest is done.
//                  Without a journal everything is tried again, and what is there already with the same bytes
//                  is left as it is.
//   new server restarted, or flushed   during a run it is told; the next run copies again what it lost. With
//                                      `again` it is told
//                  and not copied again: clients of the new list may have changed or removed it.
//   old server restarted   its cas uniques say nothing any more: its items are read.
//   lost reply     what is read back decides.
//   server down    its items are told as left; the others go on.
//   deleted meanwhile on the old servers: the copy stays (memcached cannot tell removed from evicted).
//   deleted meanwhile on the new ones: what has not changed on the old ones is not copied again.
//   a counter bumped on both sides: the new one stays, and is told.
// Source
//   Own.
