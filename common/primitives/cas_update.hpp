// Repeats the loop gets, change, cas with a jittered back-off until no concurrent writer interferes.
//
// No write that may have been applied is repeated blindly: after a lost reply the value is read again and
// passed to `decide`. Two writes of one update are never both applied: the later one carries a cas token that
// the earlier would have changed, or is an add that the earlier would have prevented.
#pragma once

#include "common/cluster/cluster.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// The current value of the key.
struct Observed {
  bool found = false;
  std::string value;
  std::uint32_t flags = 0;
  CasUnique cas;  // valid in this round only; may be compared with an earlier round's
  std::optional<std::chrono::seconds> ttl;  // if the protocol reports it; -1: never expires
  std::size_t server = 0;
  bool uncertain = false;  // an earlier write of this update got no reply and may have been applied
};

struct Write {
  std::string value = {};
  Exptime exptime = Exptime::never();  // a cas replaces the item's exptime by this
  std::uint32_t flags = 0;
  bool removes = false;  // delete what was read, by removal_of(); the other fields are ignored
};

// Is called once a round. A Write replaces the value that was observed, or creates a missing one; nullopt
// ends the update without a write. An exception also ends it: throw UnknownOutcome if `uncertain` is set and
// the value does not show the outcome.
using Decide = std::function<std::optional<Write>(const Observed& observed)>;

// The pauses between attempts.
struct BackOff {
  // The upper limit of the first pause, doubled with each attempt. The time slept is random.
  Duration first_pause = std::chrono::microseconds(200);
  Duration max_pause = std::chrono::milliseconds(50);
};

struct CasUpdateResult {
  bool written = false;  // false: `decide` ended the update
  std::size_t server = 0;
};

// Throws NotApplied if the server returned an item without a cas token: a later item would look the same.
void expect_cas(const Cluster& cluster, std::size_t server, CasUnique cas);

// Returns the request that stores `write` in place of what was read of `key`: a cas of an existing item, an
// add of a missing one. Throws NotApplied if the server has no cas.
Request write_over(const Context& context, const std::string& key, bool found, CasUnique cas,
                   const Write& write, std::size_t server);

// Returns the request that deletes the item with this cas token, or any item if the server gives no tokens.
Request removal_of(std::string key, CasUnique seen);

// Distinguishes writes that lost to a concurrent writer from writes that a server does not store.
class Rejections {
 public:
  void add(const Reply& reply, bool found, CasUnique cas) { last_ = Rejected{reply.outcome, found, cas}; }
  // Call this before the next write. Throws NotApplied after many rejections in a row of an unchanged item.
  void expect_rival(const Context& context, std::size_t server, bool found, CasUnique cas);

 private:
  struct Rejected {
    Outcome outcome;
    bool found;
    CasUnique cas;
  };
  std::optional<Rejected> last_;
  int baseless_ = 0;
};

// Runs the loop. Throws NotApplied, also if a server keeps rejecting writes although the item does not
// change; UnknownOutcome if a write got no reply and the servers did not answer again; Contention after the
// last attempt.
CasUpdateResult cas_update(const Context& context, const std::string& key, const Decide& decide,
                           int attempts = 200);

// Wraps `decide` for updates that leave no mark in the value. An uncertain round continues only if the item
// is unchanged since the round before, else it throws UnknownOutcome.
Decide unless_applied(std::function<std::optional<Write>(const Observed& observed)> decide, std::string what);

// Waits before attempt `attempt` (0: not at all) for a random part of min(first_pause * 2^attempt,
// max_pause).
void back_off(const Context& context, int attempt, const BackOff& pauses = {});

// store() takes the place of memcached's `set`, which deletes the old value even if there is no memory for
// the new one (-M, or a slab class without pages). A server that refuses store() keeps the old value.

// The maximum size of an item beyond its key and value, in bytes.
constexpr std::size_t item_overhead = 80;

// Stores each item, whether or not the key exists. `first` is add or replace, whichever is likely to succeed;
// the items for which it fails are sent with the other next. Takes one or two round trips, and one more for
// each conflicting write. An item that other clients keep storing and removing is refused.
std::vector<Reply> store(Cluster& cluster, std::span<const Request> items, Op first);

}  // namespace mcds
