// The loop 'gets, change, cas', repeated while rivals are faster, with a jittered back-off.
//
// Nothing that may have been applied is repeated blindly: after a lost reply the value is read again and
// passed to `decide`. Two writes of one update are never both applied: the later one carries a cas unique
// that the earlier would have changed, or is an add that the earlier would have prevented.
#pragma once

#include "common/cluster/cluster.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// The present value of the key.
struct Observed {
  bool found = false;
  std::string value;
  std::uint32_t flags = 0;
  CasUnique cas;  // valid for this round only; for comparing with an earlier round's
  std::optional<std::chrono::seconds> ttl;  // if the protocol reports it; -1: never expires
  std::size_t server = 0;
  bool uncertain = false;  // an earlier write of this update got no reply: it may have been applied
};

struct Write {
  std::string value = {};
  Exptime exptime = Exptime::never();  // a cas replaces it
  std::uint32_t flags = 0;
  bool removes = false;  // what was found, by removal_of(): nothing else counts
};

// Called once a round. A Write replaces what was observed, or creates what was missing; nullopt ends the
// update without writing; an exception (UnknownOutcome, if `uncertain` and the value does not show it) ends
// it too.
using Decide = std::function<std::optional<Write>(const Observed& observed)>;

// The pauses between attempts.
struct BackOff {
  // Doubled with each attempt; slept is a random part of it.
  Duration first_pause = std::chrono::microseconds(200);
  Duration longest_pause = std::chrono::milliseconds(50);
};

struct CasUpdateResult {
  bool written = false;  // false: `decide` ended it
  std::size_t server = 0;
};

// Throws NotApplied where a server gave no unique with an item, which could not be told from a later one.
void expect_cas(const Cluster& cluster, std::size_t server, CasUnique cas);

// What stores `write` in the place of what was read of `key`: of an item by its cas unique, of none by an
// add. Throws NotApplied if the server has no cas.
Request write_over(const Context& context, const std::string& key, bool found, CasUnique cas,
                   const Write& write, std::size_t server);

// Removes what was read with this cas unique, or, from a server that gives none, whatever is there.
Request removal_of(std::string key, CasUnique seen);

// Tells writes that are rejected because rivals were faster from those that a server does not store.
class Rejections {
 public:
  void add(const Reply& reply, bool found, CasUnique cas) { last_ = Rejected{reply.outcome, found, cas}; }
  // Before the next write. Throws NotApplied if many in a row were rejected though the item was as before.
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

// Throws NotApplied, also when a server rejects each write though the item stays as it was; UnknownOutcome
// when a write got no reply and the servers did not answer again;
// Contention after the last attempt.
CasUpdateResult cas_update(const Context& context, const std::string& key, const Decide& decide,
                           int attempts = 200);

// As `decide`, for updates that leave no mark of their own in the value: an uncertain round continues
// only if the item is still the very one of the round before, else throws UnknownOutcome.
Decide unless_applied(std::function<std::optional<Write>(const Observed& observed)> decide, std::string what);

// Waits before attempt `attempt` (0: not at all): a random part of first_pause * 2^attempt, at most
// longest_pause.
void back_off(const Context& context, int attempt, const BackOff& pauses = {});

// Storing an item whatever is there, so that a server that refuses it keeps the older value. memcached's
// `set` removes that first when there is no memory for the new one (-M, or a slab class without pages).

// What an item takes beside its key and value, at most.
constexpr std::size_t item_overhead = 80;

// `first`: add or replace, whichever will do for most; those for which it does not have the other next. Items
// that others store and remove each time in between are refused. One trip, or two; one more for each rival.
std::vector<Reply> store(Cluster& cluster, std::span<const Request> items, Op first);

}  // namespace mcds
