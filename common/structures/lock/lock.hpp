// A lock with a time to live. It prevents duplicate work; where it must guarantee exclusion, the resource
// has to check the fencing token. Use it for a job that one process at a time is to do. Its contract stands
// at the end of this file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/replication/copies.hpp"

namespace mcds {

struct HeldCopy;  // copy.hpp

// The future holder, for people.
struct LockHolder {
  std::string host, user, note;
  std::uint64_t pid = 0;
  std::size_t slots = 1;   // of the lock; see slots.hpp
  std::size_t copies = 1;  // in which it is kept
};

// The same in the value of a lock's key, a JSON object; empty when another program left none.
std::string lock_holder_in(std::string_view stored);

// Tokens of one acquire. An add whose reply was lost may be applied at any time, even after the lock was won,
// lost and another's, so it is never repeated with its token. A token that is read was therefore stored since
// its add without a break, and a client that renews by it has held the lock all the time.
struct AddTokens {
  std::string next;                // of the next add
  std::vector<std::string> spent;  // of adds that may have been applied, or may yet be; the latest last
  bool vanished = false;    // an add without a reply left nothing: another add, with a new token, may succeed
  std::string suffix = {};  // of every token: the slot, where the lock has several

  // What `next` may stand for is not known any more.
  void spend(Random& random);
  bool is_ours(std::string_view token) const {
    return token == next || std::ranges::find(spent, token) != spent.end();
  }
  // For messages: a lock that turns up later is released with one of these.
  std::string text() const;
};

struct Lease {
  // One server's copy and its stamp on the value last stored there, if known on this connection.
  struct Copy {
    std::size_t server = 0;
    std::optional<CasUnique> cas;
  };
  std::string token;
  std::string value;                   // as stored
  SteadyTime deadline;                 // the holder's rights end here
  WallTime expires_at;                 // the same moment, for people
  std::optional<std::uint64_t> fence;  // if asked for
  std::vector<Copy> copies;
};

// For locks with copies: all who use one must agree on it.
constexpr Duration default_longest_ttl = std::chrono::minutes(10);

// Lets every server of the pool vote at once. Call it only for servers that this program has started itself,
// which have held no lock before. Throws NotApplied, UnknownOutcome.
void let_new_servers_vote(const Context& context, Duration longest_ttl);

constexpr Duration usual_lock_ttl = std::chrono::seconds(60);

class Lock {
 public:
  // Throws InvalidInput for names that no key can contain, or whose key could be another lock's fence.
  Lock(Context context, std::string_view name, Duration longest_ttl = default_longest_ttl);
  // A lock under a whole key of another structure, without a fence: `cache:<key>:rebuild`.
  static Lock at_key(Context context, std::string key) {
    return Lock(std::move(context), std::move(key), {}, default_longest_ttl);
  }

  // One slot of a lock, as slots.hpp describes: slot 0 is the lock itself.
  static Lock of_slot(Context context, std::string_view name, std::size_t slot, Duration longest_ttl);

  // Throws InvalidInput if a copy must not be held for that long.
  void check_ttl(Duration ttl) const;

  struct Wish {
    Duration ttl;
    LockHolder holder;
    bool fence = false;
    Duration wait{0};  // Duration::max(): for ever
  };
  struct Answer {
    std::optional<Lease> lease;  // acquired
    std::string holder;          // busy: JSON of the holder; empty if unreadable
    std::size_t server = 0;
    std::vector<CopyOutcome> copies = {};
    bool split = false;  // busy, but no client has a majority
  };
  // If the clock ends a wait by an exception, whatever it left behind is removed first; if that cannot be
  // known, UnknownOutcome names the tokens.
  // Polls with jitter until `wish.wait` is over. While waiting, it also waits for a failing server.
  // Throws UnknownOutcome, NotApplied (also if the server was so slow that the lease would be over).
  Answer acquire(const Wish& wish);

  // The same in steps, for a caller that tries several locks in turn: what one acquisition knows between its
  // attempts, each of which ends within some round trips. Whoever gives up withdraws what may have been
  // added.
  AddTokens new_tokens() const;
  Answer try_now(const Wish& wish, AddTokens& tokens, bool first);
  void withdraw(const AddTokens& tokens);

  enum class Renewal { renewed, not_owner, not_held };
  // Not renewed: the lock is lost. Throws if the server did not answer: the lease is then as before, try
  // again.
  Renewal renew(Lease& lease, Duration ttl);
  // By token only, for another process that was given it; the renewed lease, or why not.
  struct RenewalByToken {
    Renewal renewal;
    Lease lease;
    Duration ttl;
  };
  // Without a ttl: the one last used, which is in the holder's fields; usual_lock_ttl if they do not contain
  // it.
  RenewalByToken renew(std::string_view token, std::optional<Duration> ttl);

  // Leaves the key to expire `hold` from now (never earlier), as no longer in use: `finished_at`
  // joins the holder's fields. Throws like renew.
  Renewal leave(const Lease& lease, Duration hold);

  struct Freed {
    enum class Result { released, not_owner, not_held } result;
    std::string holder;  // JSON of the former (released) or present (not_owner) holder, if read
    std::vector<CopyOutcome> copies = {};
  };
  Freed release(const Lease& lease) { return release_copies(lease.token, lease.copies); }
  Freed release(std::string_view token) { return release_copies(std::string(token), unstamped()); }
  // Regardless of its holder.
  Freed force_release() { return release_copies(std::nullopt, unstamped()); }

  // Removes what remains of a lock that nobody holds: its fences, those of its slots too. The next fence
  // begins with the present time, above all earlier ones. A fence that is drawn at this moment stays.
  enum class Forgotten { forgotten, held, nothing };
  static Forgotten forget(const Context& context, std::string_view name);

  struct Shown {
    std::string name;
    bool held = false;
    std::string holder;                       // JSON, or empty
    std::optional<std::chrono::seconds> ttl;  // of the holder, if the server reports it
    std::size_t server = 0;
    std::optional<Failure> failure;
    std::vector<CopyOutcome> copies = {};
  };
  // Many locks in one trip.
  static std::vector<Shown> show(const Context& context, std::span<const std::string> names);
  // Without their names.
  static std::vector<Shown> show(const Context& context, std::span<const Lock> locks);

  const std::string& key() const { return key_; }
  // The server of the lock, and of its fence.
  std::size_t server() const { return context_.cluster.placement().server_of(key_); }

 private:
  friend class LockSlots;
  Lock(Context context, std::string key, std::string fence_key, Duration longest_ttl);
  // Until an attempt has a lease or `wait` is over. While waiting, failures that may pass are waited for too.
  // `first` is true for the first attempt only.
  static Answer poll(const Context& context, Duration wait, const std::function<Answer(bool first)>& attempt);
  Answer try_servers(const Wish& wish, AddTokens& tokens, bool first);
  Answer check_slots(const Wish& wish, Answer answer) const;
  struct Ballot;
  Ballot vote(const Wish& wish, const Lease& lease, const AddTokens& tokens, bool first);
  void complete(Lease& lease, const Wish& wish, const Ballot& ballot);
  void draw_fences(Ballot& ballot) const;
  Answer not_elected(const Ballot& ballot, const Lease& lease, AddTokens& tokens);
  void fail(const Ballot& ballot, const std::string& of_several, const std::string& doubtful = {}) const;
  UnknownOutcome perhaps_taken(const std::string& message, const std::string& token) const;
  std::optional<std::uint64_t> common_fence(const Ballot& ballot);
  std::string value_for(const Wish& wish, const std::string& token) const;
  Exptime exptime_of(Duration ttl) const;
  std::size_t majority() const { return context_.copies / 2 + 1; }
  // Of each server, beside the lock: whether it votes. That of an only copy is a majority by itself: it is
  // asked for no vote, and what it forgets is gone.
  std::size_t votes_asked() const { return of_several<std::size_t>(context_.copies, 1); }
  SteadyTime deadline_of(SteadyTime counts_from, Duration ttl) const;
  void retake(Lease& lease, std::span<const std::size_t> skipped, Duration ttl);
  Shown shown(std::span<const Reply> replies) const;
  // Of the copies, the owner first.
  std::vector<std::size_t> servers() const { return copy_servers(context_, key_); }
  Renewal renew_copies(Lease& lease, const std::optional<std::string>& value, Duration ttl);
  Freed release_copies(const std::optional<std::string>& token, std::span<const Lease::Copy> copies);
  std::vector<Lease::Copy> unstamped() const;
  Renewal not_renewed(std::span<const HeldCopy> renewals) const;
  std::size_t give_back(const Lease& lease, AddTokens& tokens);
  struct Stored;
  Stored stored_under(std::string_view token) const;
  std::string address() const { return context_.cluster.address_of(server()); }

  Context context_;
  std::string key_;
  std::string fence_key_;
  std::string token_suffix_;
  Duration longest_ttl_;
};

}  // namespace mcds

// Key layout
//   lock:<name> = <token> <holder as JSON>        exptime: ttl + 2 s
//     lock:nightly = b7c1e0f2a94d4f6e {"host":"web3","pid":4711,"user":"deploy","acquired_at":"…Z",…}
//   lock:<name>:fence = decimal digits            exptime: a week behind the microsecond that it began with;
//                                                 on the server of lock:<name>
//     lock:nightly:fence = 1795234747290139
//   The token is 16 hex digits, the first of which is a letter, so incr cannot treat the value as a number.
//   Any other value under the key holds the lock too. The fence is on the server of its lock, so it can be
//   drawn in the same trip, after the add, and needs no second server.
//   Names that end in ":fence" are refused: `lock:` + name could be the fence of another lock.
//   slots.hpp describes locks that several may hold.
//   A lock with copies says their number among the holder's fields: "copies":3.
//
// Invariants
//   - While the server neither restarts nor evicts, at most one lease is before its deadline at any time. The
//     holder counts its ttl from before the add, and the server keeps the key 2 s longer (an exptime of n
//     lives n-2 … n if the server stalled during its tick).
//   - Only a value with our token is renewed or removed, by its cas unique. Each add has its own token: an
//     add without a reply may be applied at any time, so the next add uses another one.
//   - Fencing tokens of successive holders strictly grow. Each is drawn after its add and is valid only if it
//     arrives before the deadline, while no one else holds the lock. A fence that is lost, or has ended,
//     restarts at the current time in microseconds, above every earlier value: who begins it reads the clock
//     when the lock is his. Exceptions: clocks further apart than the fence was old; a request that begins it
//     and arrives when its sender's lease is over, or lost.
//
// With several copies
//   The same keys are on N servers, and a lock is held if a majority holds it. A server votes only if it has
//   been up for longer than the longest ttl in use (ballot.cpp), so a server that restarted and forgot a lock
//   cannot help a second holder. The holder counts one percent less than its ttl, because clocks run at
//   different rates. Without a majority, every copy that was taken is released. A renewal takes lost copies
//   again.
//   The fencing token is the largest of the copies' fences, and a majority is raised to it before it is used,
//   so every later majority contains it. Only the fence of a server that votes counts, and if it was not
//   drawn behind the add, only while it votes. A server that restarted and votes again counts as having at
//   least the time from which it votes as its fence, which is above everything it forgot.
//   After a server's start, two of three must do for the longest ttl; with two starts in that time there is
//   no lock.
//   All who use a lock must give the same number of copies: another one that is met on any copy is refused.
//   Whoever cannot reach the copies that another number shares with his own is not refused, and may hold the
//   lock beside its holder. The fences of one number need not be above those of another: to raise each to the
//   present time, which would put them in one order, costs every acquisition a trip. Before the number is
//   changed, `forget` removes them, so that the next begins with the present time.
//   One copy takes the same path. Its server is a majority by itself: it is asked for no vote, so there is no
//   longest ttl, and the holder counts its whole ttl.
//
// Round trips
//   acquire 1 / 10 (+ 2 per further poll), 1 more with a fence that is not there yet; busy 2; renew and
//   release 1 if the cas unique is known on this connection, else 2; show 1 for any number of names. The
//   attempts in copy.cpp bound the worst cases.
//
// When things fail
//   crash of the holder: the key expires ttl + 2 s after its last renewal.
//   lost reply: read back. Our token means ours; nothing means another add with another token. If the outcome
//     stays unknown, UnknownOutcome with the token: the add may still be applied, and then no one owns the
//     lock until it expires. With several copies, if that may be so in a majority of them.
//   exists: may be spurious (slab mover, new connection): read again, compare the token, try again. It never
//     means "lost".
//   eviction, restart, flush_all: the lock is gone and another may take it; the next renewal detects it.
//     Fences still grow.
//   skew: only the rate of the clock matters (steady clock, which counts suspended time), except for ttls
//     above 30 days, whose exptime is absolute, and for the start of a lost fence.
//   holder stalled beyond its deadline after acquire() returned: only the fencing token helps.
//
// Source: Redlock's discussion of fencing (Kleppmann 2016); memcached's `add` idiom.
