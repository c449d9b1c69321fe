// Where the copies of a key are, what that means for the client that placed it, and removing those it will
// never look at. Works on any application's keys and stores nothing.
//
// Probing asks every server once, all in parallel, and changes nothing. Removing is a compare-and-delete by
// the cas unique the probe saw: a copy that was written since is never removed.
#pragma once

#include <map>

#include "common/cluster/cluster.hpp"
#include "common/placement/guess.hpp"

namespace mcds {

// What one server said of one key.
struct KeyCopy {
  enum class State { found, missing, unanswered };
  State state = State::unanswered;
  std::size_t server = 0;
  std::uint64_t size_bytes = 0;  // of the value
  std::uint32_t flags = 0;
  CasUnique cas = {};
  ItemAge age = {};
  std::string md5 = {};  // of the value, hex
  std::optional<std::chrono::microseconds> round_trip = {};
  std::string error = {};  // unanswered: why
  bool reached = true;     // unanswered: the server was there all the same, and refused

  bool found() const { return state == State::found; }
};

// One per server, in the pool's order.
using KeyCopies = std::vector<KeyCopy>;

enum class Verdict {
  ok,           // every server that should hold it does, and no other
  missing,      // no server has it
  incomplete,   // one holder has it, another does not
  misplaced,    // others have it, no holder does: its client misses
  duplicate,    // a holder has it, others hold the same value
  divergent,    // two copies differ
  unreachable,  // a server did not answer, and the answers of the others show no problem
};
const char* name_of(Verdict verdict);

// `owners`: where the client keeps the key. `compares`: copies that are not the same bytes are divergent.
Verdict verdict_of(const KeyCopies& copies, const Owners& owners, bool compares = true);

// One round trip for all. The values are in memory together: call it with few enough keys that they fit.
std::vector<KeyCopies> probe_keys(Cluster& cluster, std::span<const std::string> keys);

// Whether two of them are not the same bytes and flags.
bool copies_differ(const KeyCopies& copies);

// The servers whose copy the client never looks at and that can go without deciding between two values:
// `equal` have the value and flags that every holder has. Where no holder has a copy these may be the only
// ones, and stay; with `even_last` they are `equal` if every holder answered that it has none, and all are
// the same.
struct Strays {
  std::vector<std::size_t> equal, different;
};
Strays strays_of(const KeyCopies& copies, const Owners& owners, bool even_last);

// Evidence for a profile, from many keys, before anything is removed because of it.
class PruneEvidence {
 public:
  void add(const std::string& key, const KeyCopies& copies, const Owners& owners);
  // Why nothing should be removed; empty if there is no reason.
  enum class Doubt { none, unexplained, replicated };
  // Where most keys of each server have equally many copies, as many are meant: `even_replicas` says that
  // they are not. A server that was away leaves copies of its own keys only.
  Doubt doubt(bool even_replicas) const;
  std::size_t keys() const { return keys_; }            // found somewhere
  std::size_t explained() const { return explained_; }  // on a server where the client looks
  std::size_t usual_copies() const;                     // the number most keys have
  std::size_t keys_with_usual_copies() const { return by_copies_.at(usual_copies()); }
  // Some of the copies elsewhere, one by one.
  const std::vector<Sighting>& strays() const { return strays_; }

 private:
  struct OfServer {
    std::size_t keys = 0, with_strays = 0;
  };
  std::size_t keys_ = 0, explained_ = 0;
  std::map<std::size_t, std::size_t> by_copies_;
  std::map<std::size_t, OfServer> by_server_;  // of those where the client looks first
  std::vector<Sighting> strays_;
};

enum class Removal {
  removed,
  gone,     // it was not there any more
  changed,  // it was written since the probe: left alone
  held,     // not asked for: what locks and structures in several copies rely on
  differs,  // not asked for: from what is where the client looks
  refused,  // the server refused, or could not be asked
  unknown,  // sent, no reply: it may be gone
};
const char* name_of(Removal removal);

struct RemovedCopy {
  std::size_t server;
  Removal removal;
  std::string error;  // refused, unknown: why
};

// One round trip; three more if a copy that is to go may be one item with one that stays (are_same()). On
// the cluster that probed: a cas unique is of its connection.
std::vector<RemovedCopy> remove_copies(Cluster& cluster, const std::string& key, const KeyCopies& copies,
                                       std::span<const std::size_t> servers);

// `copies` as they are after that.
KeyCopies after_removal(KeyCopies copies, std::span<const RemovedCopy> removed);

// Whether two copies are one item: a server may be listed under two names, or also be behind a proxy. To
// remove the one would then remove the other.

struct TwoPlaces {
  std::string key;  // on `server` of the first cluster
  std::size_t server;
  std::string other_key;  // on `other_server` of the second
  std::size_t other_server;
  std::function<bool(const Reply& now)> as_seen;  // whether the first is what the caller has seen
};

struct Sameness {
  // written: the first is not what was seen any more.
  enum class Answer { different, same, written, unknown } answer = Answer::unknown;
  CasUnique cas = {};  // different: of the first, for remove_if
};

// Worth asking about: the first of them may be the second. Two servers' cas uniques are seldom equal by
// chance. Those of servers without cas say nothing.
inline bool may_be_same(CasUnique one, CasUnique other) {
  return one.value != 0 && one == other;
}

// Appends nothing to the first, which gives it a new cas unique, and the second as well if it is the same
// item. Values and ttls stay as they are.
std::vector<Sameness> are_same(Cluster& cluster, Cluster& other, std::span<const TwoPlaces> places);

// What to say of one that is not removed for it.
inline const char* why_kept(Sameness::Answer answer) {
  return answer == Sameness::Answer::same
             ? "it is the same item as the one that would stay: one server is listed under two names, or is "
               "also behind a proxy"
             : "it may be the same item as the one that would stay, and the servers did not tell";
}

}  // namespace mcds
