// Lock is a lock with a time to live, for a job that one process at a time should do. It prevents duplicate
// work; for guaranteed exclusion, the resource has to check the fencing token. Its contract is below.
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

struct LockCopy;  // copy.hpp

// The future holder, as people will read it.
struct LockHolder {
  std::string host, user, note;
  std::uint64_t pid = 0;
  std::size_t slots = 1;   // of the lock (slots.hpp)
  std::size_t copies = 1;  // of the lock
};

// Returns the holder in the value of a lock's key: a JSON object, or empty if another program left none.
std::string lock_holder_in(std::string_view stored);

// The tokens of one acquire. An add whose reply was lost may be applied at any time, even after the lock was
// won, lost and taken by another client, so its token is never added again. A token that is read has been
// stored without interruption since its add: a client that renews by it has held the lock all the time.
struct PendingAdds {
  std::string next;                // for the next add
  std::vector<std::string> spent;  // retired: their adds may have been applied, or may yet be; latest last
  bool vanished = false;           // a lost add left nothing, so an add with a new token may succeed
  std::string suffix = {};         // the end of every token: the slot, if the lock has several

  // Retires `next`, because the outcome of its add is unknown.
  void spend(Random& random);
  bool is_ours(std::string_view token) const {
    return token == next || std::ranges::find(spent, token) != spent.end();
  }
  // Returns the latest tokens for messages: a lock that appears later is released with one of them.
  std::string text() const;
};

struct Lease {
  // One server's copy, with the cas token of the value last stored there, if known on this connection.
  struct Copy {
    std::size_t server = 0;
    std::optional<CasUnique> cas;
  };
  std::string token;
  std::string value;                   // as stored
  SteadyTime deadline;                 // the holder's rights end here
  WallTime expires_at;                 // the same time, for people
  std::optional<std::uint64_t> fence;  // if requested
  std::vector<Copy> copies;
};

// The default maximum ttl of a lock with copies. All its users must agree on the maximum.
constexpr Duration default_max_ttl = std::chrono::minutes(10);

// Lets every server of the pool vote at once. Call this only for servers that this program has started
// itself, because they must never have held a lock. Throws NotApplied, UnknownOutcome.
void let_new_servers_vote(const Context& context, Duration max_ttl);

constexpr Duration usual_lock_ttl = std::chrono::seconds(60);

class Lock {
 public:
  // Throws InvalidInput for names that no key can contain, or whose key could be another lock's fence.
  Lock(Context context, std::string_view name, Duration max_ttl = default_max_ttl);
  // Returns a lock without a fence whose key belongs to another structure, such as `cache:<key>:rebuild`.
  static Lock at_key(Context context, std::string key) {
    return Lock(std::move(context), std::move(key), {}, default_max_ttl);
  }

  // Returns one slot of a lock (slots.hpp); slot 0 is the lock itself.
  static Lock of_slot(Context context, std::string_view name, std::size_t slot, Duration max_ttl);

  // Throws InvalidInput if a copy must not be held for that long.
  void check_ttl(Duration ttl) const;

  struct AcquireOptions {
    Duration ttl;
    LockHolder holder;
    bool fence = false;
    Duration wait{0};  // Duration::max(): without limit
  };
  struct Answer {
    std::optional<Lease> lease;  // acquired
    std::string holder;          // busy: the holder as JSON; empty if unreadable
    std::size_t server = 0;
    std::vector<CopyOutcome> copies = {};
    bool split = false;  // busy, but no client has a majority
  };
  // Polls with jitter until `acquire_options.wait` is over, also while a server fails. Throws UnknownOutcome,
  // and NotApplied, also if the server was so slow that the lease would be over. If the clock interrupts the
  // wait, removes what the attempts left behind, or throws UnknownOutcome with the tokens.
  Answer acquire(const AcquireOptions& acquire_options);

  // The three functions below are the steps of acquire(), for a caller that tries several locks in turn. The
  // tokens carry over between attempts, each of which takes some round trips. A caller that gives up calls
  // withdraw() to remove what its adds may have left.
  PendingAdds new_tokens() const;
  Answer try_now(const AcquireOptions& acquire_options, PendingAdds& tokens, bool first);
  void withdraw(const PendingAdds& tokens);

  enum class Renewal { renewed, not_owner, not_held };
  // Renews the lease. not_owner and not_held mean that the lock is lost. Throws if the server did not answer;
  // the lease is then unchanged and can be renewed again.
  Renewal renew(Lease& lease, Duration ttl);
  // The result of a renewal by token, for another process that was given the token.
  struct RenewalByToken {
    Renewal renewal;
    Lease lease;
    Duration ttl;
  };
  // Renews by token. Without a ttl, uses the one in the holder's fields, or usual_lock_ttl if there is none.
  RenewalByToken renew(std::string_view token, std::optional<Duration> ttl);

  // Lets the key expire `hold` from now, never earlier, as no longer in use: adds `finished_at` to the
  // holder's fields. Throws like renew.
  Renewal leave(const Lease& lease, Duration hold);

  struct Freed {
    enum class Result { released, not_owner, not_held } result;
    std::string holder;  // JSON of the former (released) or present (not_owner) holder, if read
    std::vector<CopyOutcome> copies = {};
  };
  Freed release(const Lease& lease) { return release_copies(lease.token, lease.copies); }
  Freed release(std::string_view token) { return release_copies(std::string(token), without_cas()); }
  // Releases the lock for any holder.
  Freed force_release() { return release_copies(std::nullopt, without_cas()); }

  // Removes the fences of a lock that nobody holds, and those of its slots. The next fence begins with the
  // current time, above all earlier ones. A fence that is drawn concurrently stays.
  enum class Forgotten { forgotten, held, nothing };
  static Forgotten forget(const Context& context, std::string_view name);

  struct Shown {
    std::string name;
    bool held = false;
    std::string holder;                       // JSON, or empty
    std::optional<std::chrono::seconds> ttl;  // the holder's, if the server reports it
    std::size_t server = 0;
    std::optional<Failure> failure;
    std::vector<CopyOutcome> copies = {};
  };
  // Returns the state of many locks in one trip.
  static std::vector<Shown> show(const Context& context, std::span<const std::string> names);
  // Returns the same without names.
  static std::vector<Shown> show(const Context& context, std::span<const Lock> locks);

  const std::string& key() const { return key_; }
  // Returns the server of the lock and of its fence.
  std::size_t server() const { return context_.cluster.placement().server_of(key_); }

 private:
  friend class LockSlots;
  Lock(Context context, std::string key, std::string fence_key, Duration max_ttl);
  // Calls `attempt` until it returns a lease or `wait` is over. Meanwhile, retries after failures that may
  // pass. `first` is true for the first attempt only.
  static Answer poll(const Context& context, Duration wait, const std::function<Answer(bool first)>& attempt);
  Answer try_servers(const AcquireOptions& acquire_options, PendingAdds& tokens, bool first);
  Answer check_slots(const AcquireOptions& acquire_options, Answer answer) const;
  struct Vote;
  Vote vote(const AcquireOptions& acquire_options, const Lease& lease, const PendingAdds& tokens, bool first);
  void complete(Lease& lease, const AcquireOptions& acquire_options, const Vote& vote_round);
  void draw_fences(Vote& vote_round) const;
  Answer not_elected(const Vote& vote_round, const Lease& lease, PendingAdds& tokens);
  void fail(const Vote& vote_round, const std::string& value_if_replicated,
            const std::string& uncertain = {}) const;
  UnknownOutcome perhaps_taken(const std::string& message, const std::string& token) const;
  std::optional<std::uint64_t> common_fence(const Vote& vote_round);
  std::string value_for(const AcquireOptions& acquire_options, const std::string& token) const;
  Exptime exptime_of(Duration ttl) const;
  std::size_t majority() const { return context_.copies / 2 + 1; }
  // Returns how many votes are requested per server. A single copy is a majority on its own: no vote is
  // needed, and a lock that its server forgets is gone.
  std::size_t votes_asked() const { return value_if_replicated<std::size_t>(context_.copies, 1); }
  SteadyTime deadline_of(SteadyTime counts_from, Duration ttl) const;
  void retake(Lease& lease, std::span<const std::size_t> skipped, Duration ttl);
  Shown shown(std::span<const Reply> replies) const;
  // Returns the servers of the copies, the owner first.
  std::vector<std::size_t> servers() const { return copy_servers(context_, key_); }
  Renewal renew_copies(Lease& lease, const std::optional<std::string>& value, Duration ttl);
  Freed release_copies(const std::optional<std::string>& token, std::span<const Lease::Copy> copies);
  std::vector<Lease::Copy> without_cas() const;
  Renewal not_renewed(std::span<const LockCopy> renewals) const;
  std::size_t release_added(const Lease& lease, PendingAdds& tokens);
  struct Stored;
  Stored stored_under(std::string_view token) const;
  std::string address() const { return context_.cluster.address_of(server()); }

  Context context_;
  std::string key_;
  std::string fence_key_;
  std::string token_suffix_;
  Duration max_ttl_;
};

}  // namespace mcds

// Key layout (mcds-layout(7) has the details)
//   lock:<name> = <token> <holder as JSON>      exptime: ttl + 2 s. A lock with copies has "copies":<N> in
//                                               the holder.
//   lock:<name>:fence = decimal digits          exptime: a week after the microsecond with which it began. It
//                                               is on the server of its lock, so one trip draws it after the
//                                               add.
//   The first of the token's 16 hex digits is a letter, so incr cannot treat the value as a number. Any other
//   value under the key holds the lock too. Names that end in ":fence" are refused: `lock:` + name could be
//   the fence of another lock. slots.hpp describes locks that several may hold.
//
// Invariants
//   - While the server neither restarts nor evicts, at most one lease is before its deadline at any time. The
//     holder counts its ttl from before the add, and the server keeps the key 2 s longer (an exptime of n
//     lives n-2 … n if the server stalled during its tick).
//   - Only a value with our token is renewed or removed, by its cas token. Each add has its own token,
//     because an add without reply may be applied at any time.
//   - Fencing tokens of successive holders strictly grow. Each is drawn after its add and is valid only if it
//     arrives before the deadline. A fence that is lost or expired restarts at the current time in
//     microseconds, above every earlier value. Exceptions: clocks further apart than the fence was old; a
//     delayed request that creates it after its sender's lease is over or lost.
//
// With several copies
//   The same keys are on N servers, and a lock is held if a majority holds it. A server votes only if it has
//   been up for longer than the longest ttl in use, so a server that restarted and forgot a lock cannot help
//   a second holder (ballot.cpp, also about fences). The holder counts one percent less than its ttl, because
//   clocks run at different rates. Without a majority, every copy that was taken is released. A renewal takes
//   lost copies again.
//   For the longest ttl after a server's start, the other two of three have to do; after a second start in
//   that time no lock can be taken.
//   A client that meets another number of copies on any copy is refused. A client that cannot reach the
//   copies that both numbers share may hold the lock at the same time. The fences of one number need not be
//   above those of another, because raising each to the current time would cost every acquisition a trip.
//   Before the number is changed, `forget` removes them, so that the next fence begins with the current time.
//   A single copy takes the same path without a vote: there is no longest ttl, and the holder counts its
//   whole ttl.
//
// Round trips
//   acquire 1 / 10 (+ 2 per further poll), 1 more with a fence that does not exist yet; busy, or refused by a
//   full server, 2; renew and release 1 if the cas token is known on this connection, else 2; show 1 for any
//   number of names. The attempts in copy.cpp bound the worst cases.
//
// When things fail
//   holder crashes: the key expires ttl + 2 s after its last renewal.
//   lost reply: the key is read. Our token means that the lock is ours; a missing key leads to another add
//     with another token. If the outcome stays unknown (with copies, in a majority of them), UnknownOutcome
//     names the token: the add may still be applied, and then nobody owns the lock until it expires.
//   EXISTS: may be spurious (slab mover, new connection), so it never means "lost": the key is read again,
//     the token is compared, and the request is repeated.
//   eviction, restart, flush_all: the lock is gone and another client may take it; the next renewal detects
//     it. Fences still grow.
//   skew: only the rate of the clock matters (steady clock, which counts suspended time), except for ttls
//     above 30 days, whose exptime is absolute, and for the start of a lost fence.
//   holder stalls beyond its deadline after acquire() returned: only the fencing token helps.
//
// Source: Redlock's discussion of fencing (Kleppmann 2016); memcached's `add` idiom.
