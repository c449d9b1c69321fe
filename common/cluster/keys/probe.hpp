// Finds the copies of a key on all servers, judges them for the client that placed the key, and removes
// copies that this client never reads. It works for keys of any application and stores nothing.
//
// Probing queries each server once, all in parallel, and changes nothing. Removal compares the cas token of
// the probe, so a copy that was written since is never removed.
#pragma once

#include <map>

#include "common/cluster/cluster.hpp"
#include "common/placement/guess.hpp"

namespace mcds {

// The state of one key on one server.
struct KeyCopy {
  enum class State { found, missing, unanswered };
  State state = State::unanswered;
  std::size_t server = 0;
  std::uint64_t size_bytes = 0;  // of the value
  std::uint32_t flags = 0;
  CasUnique cas = {};
  ItemAge age = {};
  std::string md5 = {};  // of the value, in hex
  std::optional<std::chrono::microseconds> round_trip = {};
  std::string error = {};                   // why it did not answer
  ErrorCode code = ErrorCode::unavailable;  // of this error

  bool found() const { return state == State::found; }
};

// One KeyCopy for each server, in the pool's order.
using KeyCopies = std::vector<KeyCopy>;

enum class Verdict {
  ok,           // every server that should hold the key does, and no other
  missing,      // no server has the key
  incomplete,   // one holder has the key, another does not
  misplaced,    // other servers have the key, no holder does: its client misses
  duplicate,    // a holder has the key, other servers hold the same value
  divergent,    // two copies have different values
  unreachable,  // a server did not answer, and the other answers show no problem
};
const char* name_of(Verdict verdict);

// Judges the copies of one key. `owners` are the servers where the client stores it. With `compares`, copies
// that differ in value or flags are divergent.
Verdict verdict_of(const KeyCopies& copies, const Owners& owners, bool compares = true);

// Reads the copies of all keys in one round trip, all values in memory: limit the number of keys.
std::vector<KeyCopies> probe_keys(Cluster& cluster, std::span<const std::string> keys);

// Returns true if two copies differ in value or flags.
bool copies_differ(const KeyCopies& copies);

// Servers with a copy that the client never reads. The copies of `equal` have the value and flags of every
// holder, so removing them does not choose between values. If no holder has a copy, these may be the only
// ones, and both lists stay empty. With `even_last` they are `equal` in that case too, if every holder
// answered that it has none and all copies are the same.
struct NotOnOwner {
  std::vector<std::size_t> equal, different;
};
NotOnOwner find_not_on_owner(const KeyCopies& copies, const Owners& owners, bool even_last);

// Collects evidence, from many keys, that a profile is right before copies are removed because of it.
class PruneEvidence {
 public:
  void add(const std::string& key, const KeyCopies& copies, const Owners& owners);
  // Returns why nothing should be removed: PruneRefusal::none if there is no reason.
  enum class PruneRefusal { none, unexplained, replicated };
  // If most keys of each server have the same number of copies, replication is likely intended;
  // `even_replicas` states that it is not. A server that was away leaves copies of its own keys only.
  PruneRefusal refusal(bool even_replicas) const;
  std::size_t keys() const { return keys_; }            // found on any server
  std::size_t explained() const { return explained_; }  // found on a server where the client reads
  std::size_t usual_copies() const;                     // the most frequent number of copies of a key
  std::size_t keys_with_usual_copies() const { return by_copies_.at(usual_copies()); }
  // Returns some of the copies on other servers, one KeyLocation each.
  const std::vector<KeyLocation>& not_on_owner() const { return not_on_owner_; }

 private:
  struct PerServer {
    std::size_t keys = 0, with_not_on_owner = 0;
  };
  std::size_t keys_ = 0, explained_ = 0;
  std::map<std::size_t, std::size_t> by_copies_;
  std::map<std::size_t, PerServer> by_server_;  // by the server where the client reads first
  std::vector<KeyLocation> not_on_owner_;
};

enum class Removal {
  removed,
  gone,     // it had vanished already
  changed,  // it was written since the probe, so it was kept
  held,     // not attempted: locks and structures with several copies depend on it
  differs,  // not attempted: its value differs from the copies where the client reads
  refused,  // the server refused, or could not be reached
  unknown,  // sent without a reply: it may have been removed
};
const char* name_of(Removal removal);

struct RemovedCopy {
  std::size_t server;
  Removal removal;
  std::string error;  // refused, unknown: the reason
};

// Removes the copies on `servers` in two round trips: the first reads the copies that stay again. If one of
// these is gone, nothing is removed, unless `even_last`: the others may be the last. It takes three more
// round trips if a copy may be the same item as one that stays (are_same()). `cluster` must be the one that
// probed: cas tokens belong to its connections.
std::vector<RemovedCopy> remove_copies(Cluster& cluster, const std::string& key, const KeyCopies& copies,
                                       std::span<const std::size_t> servers, bool even_last = false);

// Returns `copies` as they are after that removal.
KeyCopies after_removal(KeyCopies copies, std::span<const RemovedCopy> removed);

// The following detects two copies that are one item, because a server is listed under two names or is also
// behind a proxy. Removing one copy would then remove the other too.

struct SourceAndTarget {
  std::string key;  // on `server` of the first cluster
  std::size_t server;
  std::string other_key;  // on `other_server` of the second cluster
  std::size_t other_server;
  std::function<bool(const Reply& now)> as_seen;  // returns true if the first item is unchanged
};

struct Sameness {
  // written: the first item has changed since the caller read it.
  enum class Answer { different, same, written, unknown } answer = Answer::unknown;
  CasUnique cas = {};  // if different: the first item's token, for remove_if
};

// Returns true if the two items may be the same, so that are_same() is worth its trips. The item to remove
// must be read first: a write in between gives the other a new token, and the first token removes nothing.
// Cas tokens of two servers are rarely equal by chance. Servers without cas give no evidence.
inline bool may_be_same(CasUnique one, CasUnique other) {
  return one.value != 0 && one == other;
}

// Compares pairs of items. It appends no bytes to the first item of each pair, which gives it a new cas
// token; if the second shows the same token, both are the same item. Values and ttls do not change.
std::vector<Sameness> are_same(Cluster& cluster, Cluster& other, std::span<const SourceAndTarget> places);

// Returns the message for a copy that was kept for this reason.
inline const char* why_kept(Sameness::Answer answer) {
  return answer == Sameness::Answer::same
             ? "the copy is the same item as the one that would stay: one server is listed under two names, "
               "or also reached through a proxy"
             : "the copy may be the same item as the one that would stay; the servers do not show whether it "
               "is";
}

}  // namespace mcds
