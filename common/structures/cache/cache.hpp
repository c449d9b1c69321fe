// What a command printed, kept until it is too old, and rebuilt by one caller in the whole cluster.
//
// Key layout
//   cache:<key> = a record (cache_record.hpp)         exptime: ttl + stale + 2 s
//     cache:report = K1 0123456789abcdef 1795234130017 1795234133945 1795234193945 1795234793945 0 6 0 *f070e8eb\nhello\n
//     cache:report = P1 0123456789abcdef *90ab12cd\n  being built, and there is no older value
//   cache:<key>:rebuild = a lock (lock.hpp)           held by who rebuilds
//   Keys that end in ":rebuild" are refused: their entry could be another key's lock.
//
// Invariants
//   - One rebuild at a time, while the lock's server answers and loses nothing: who has the lock reads the
//     entry again before it runs anything.
//   - A rebuild is stored only over the very value it read before it ran, by build and then by cas; for a
//     missing one that is a placeholder it added itself. So whatever changed the entry meanwhile stands: an
//     `expire` (another build, never fresh again), a `remove`, a newer build of who took the lock over.
//   - Nobody waits longer than it wants to, plus the trips it is on.
//   - The server drops an entry 2 s after it may last be used, by its own clock: the exptime is relative. A
//     rebuild that lasts keeps the entry it is going to replace.
//
// With several copies
//   Each server's copy is an entry of its own: read, claimed, stored, expired and removed as the only one is, all
//   side by side. What makes the invariants hold for one copy makes them hold for each; and the command starts
//   after all claims, so what it prints is newer than any invalidation that one of its claims saw.
//   - Of the copies the one that began last counts, expired by hand or not: a hit as long as one lives.
//   - Where an invalidation does not reach a copy, the others keep word of it, for as long as the entry they had and an
//     hour at least: where both that and older output are seen, the word counts. A copy that was away for longer, or comes
//     back when the others have forgotten, brings old output back, until that is stale by itself.
//   - A copy that was lost or missed a store is filled by the next rebuild, not by readers: between a reader's look
//     and its add there may be a removal of both, which the add would undo; a missing copy looks the same before
//     and after. To be safe, every removal would have to leave a tombstone. Until that rebuild, at most a ttl
//     away, the loss of the other copy costs one rebuild more, which is all that a cache has to lose.
//   The lock is one, on the first of its own key's servers that answers: a majority of two would stand still when
//   one is gone. Who takes it looks at the later ones in the same trip: somebody may have had to take it there,
//   and goes on. So the loss of a server lets in one further rebuilder, not a herd. Clients that reach different
//   servers, and some who ask at the very moment one comes back, rebuild at the same time: the first to store
//   wins in each copy, by cas, and the one that began last in the reading; no value is wrong.
//
// Round trips
//   The same with several copies; a lock's server that does not answer costs 1 more.
//   hit 1. Rebuild 3 before the command (look, lock, claim) and 3 after it (read, cas, give the lock back; 4
//   on another connection); a claimed value about to end costs 1 more. Busy 3, 2 per further poll,
//   1 at last. expire 2, remove 1, show 1.
//
// When things fail
//   the rebuilder dies: within the rebuild ttl after its last renewal, who waits rebuilds.
//   lost reply, of the placeholder's add: read in the same trip, and every attempt has a build of its own, so
//     that one which is executed late is nobody's; of a store: read again, our build means stored; of
//     `expire`: the same, a further attempt is another build; of `remove`: repeated. A removal that comes
//     late takes a newer value with it, which is then built again.
//   a server hangs, then goes on: it does late what it was asked. A placeholder is nobody's; a lock that nobody
//     waits for holds rebuilds up until it ends, at most for a rebuild ttl.
//   the lock's servers fail: the rebuild goes on without a lock, guarded by cas all the same.
//   the entry's servers fail: thrown. The caller runs its command as if there were no cache.
//   some of the entry's servers fail: the others are used. One that was cut off, lost nothing and comes back may
//     hold what is older, or what was invalidated meanwhile: it counts only once the others are lost, and no longer than
//     it would have been fresh by itself.
//   eviction, restart: a miss. A rebuild whose placeholder or old value is gone is not stored.
//   skew: an entry is fresh too long or too short by the difference of the clocks of who made it and who
//     reads it, at most until the server drops it.
//   foreign data under the key: CorruptData. A damaged record of ours is taken for a miss and replaced.
//
// Source: memcached's `add` as a lock against the dogpile effect; stale-while-revalidate (RFC 5861).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/cas_update.hpp"
#include "common/primitives/copies.hpp"
#include "common/structures/cache/record.hpp"
#include "common/structures/lock/lock.hpp"

namespace mcds {

struct CacheTerms {
  Duration ttl;          // fresh for so long
  Duration stale;        // and then usable while it is rebuilt
  Duration rebuild_ttl;  // a rebuilder that was not heard of for so long is dead
  Duration wait{0};      // for another's rebuild
  bool refresh = false;  // rebuild though it is fresh, and replay nothing
  LockHolder holder = {};
};

// Below, a rebuild's lock could not be renewed in time.
constexpr Duration shortest_rebuild_ttl = std::chrono::seconds(4);
// Who waits looks at least so often.
constexpr Duration longest_cache_nap = std::chrono::seconds(1);
// The largest output, both streams together, that an entry can hold.
constexpr std::size_t max_cached_size = max_value_size - cache_record_overhead;

// The right to rebuild an entry. Ends with end(), or by itself.
class CacheRebuild {
 public:
  // The lock, if a server granted it: to be renewed while the command runs, and the renewed lease put back.
  Lock& lock() { return locks_[locked_]; }
  std::optional<Lease>& lease() { return lease_; }
  // To renew it with: shorter than the rebuild ttl by what the key lives longer, and by a poll of who waits.
  Duration lease_ttl() const;
  // What is to be replaced stays as long as the lock. Call it after each renewal. Failures are not told: if it
  // goes, the rebuild is not stored.
  void keep();

  enum class Stored { stored, superseded, too_large };
  // Its build and times are filled in. superseded: invalidated or rebuilt by others meanwhile, and left so.
  // Throws NotApplied, UnknownOutcome, Contention.
  Stored store(CacheRecord record);
  // With several copies, after store: which of them have it.
  const std::vector<CopyOutcome>& copies() const { return outcomes_; }
  // Gives the lock back; after a failed command it stays a second or two, so that what fails is not hammered.
  // Throws like Lock::release.
  void end(bool succeeded);

 private:
  friend class Cache;
  // What was found in one copy when the lock was ours.
  struct Claim {
    std::optional<CacheRecord> record = {};
    std::string identity = {};  // its build, or the digest of a damaged value; empty: nothing may be stored
    bool ends_soon = false;
  };

  CacheRebuild(Context context, std::string key, std::string lock_key, CacheTerms terms);
  // False: another has the lock. `unlocked`: go on without it if its servers fail.
  bool take_lock(std::string& rival, bool unlocked);
  std::optional<bool> take_lock_at(std::size_t copy, std::string& rival);
  // nullopt: the entry, or a placeholder, is ours to replace; else it is fresh after all.
  std::optional<CacheRecord> claim();
  Claim claim_copy(const Context& context) const;
  bool ends_soon(const std::optional<CacheRecord>& record) const;
  bool store_copy(std::size_t copy, const std::string& build, const Write& write) const;
  // Nothing was rebuilt. Failures are not told.
  void give_back();

  Context context_;
  std::string key_;
  std::string lock_key_;
  CacheTerms terms_;
  Copies copies_;
  std::vector<Lock> locks_;  // one per server
  std::size_t locked_ = 0;   // which of them is used
  std::optional<Lease> lease_;
  std::vector<std::string> replaces_;              // each copy's identity
  std::vector<std::optional<Failure>> unclaimed_;  // why a copy's is not known
  WallTime begun_at_{};
  WallTime keep_until_{};  // of what is replaced
  std::vector<CopyOutcome> outcomes_;
};

class Cache {
 public:
  // Throws InvalidInput for names no key can hold.
  Cache(Context context, std::string_view name);

  struct Answer {
    enum class Kind {
      fresh,    // record
      rebuild,  // ours: run the command, store, end
      busy,     // another rebuilds and the wait is over; record: the stale value, if there is one
    } kind;
    std::optional<CacheRecord> record = {};
    std::optional<CacheRebuild> rebuild = {};
    std::string holder = {};               // busy: JSON of who rebuilds, if readable
    std::vector<CopyOutcome> copies = {};  // as last read, fresh or busy
  };
  // Throws NotApplied and the like when the entry's server fails, CorruptData, InvalidInput for terms that
  // cannot be kept. Once it has seen that another rebuilds, failures are waited out.
  Answer ask(const CacheTerms& terms);

  struct Shown {
    std::optional<CacheRecord> record;        // not for placeholders
    std::optional<std::chrono::seconds> ttl;  // until the entry goes away, if the server tells
    bool rebuilding = false;
    std::string holder;  // JSON of who rebuilds
    std::vector<CopyOutcome> copies;
  };
  // Throws CorruptData for what is none of ours, or damaged, and NotApplied when nobody has a record and some
  // copy gave no answer.
  Shown show();
  struct Invalidation {
    bool found = false;  // there was something
    std::vector<CopyOutcome> copies = {};
    std::optional<Failure> failure =
        {};  // some copy was not reached, and might bring back what others have not: these could keep no word of it
  };
  // Not fresh any more, from now on: what is being rebuilt from older data will not be stored. The stale
  // value stays. Both throw when no copy was reached.
  Invalidation expire();
  // The same without the stale value.
  Invalidation remove();

  std::size_t server() const { return context_.cluster.placement().server_of(key_); }
  // The entry's and the lock's.
  std::vector<std::string> keys() const { return {key_, lock_key_}; }

 private:
  bool look(const CacheTerms& terms, Answer& busy);
  std::optional<Answer> try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked);
  struct Seen;
  Seen show_copy(const Context& context) const;
  void show_lock(std::span<const Seen> seen, Shown& shown) const;
  struct Invalidated;
  Invalidation invalidate(Invalidated (Cache::*act)(const Context&) const, const char* done);
  struct Invalidated {
    bool found = false;
    WallTime until{};  // when what was there is stale
    WallTime after{};  // when it began
  };
  Invalidated expire_copy(const Context& context) const;
  Invalidated remove_copy(const Context& context) const;
  void leave_word(const Context& context, const Invalidated& newest) const;

  Context context_;
  std::string key_;
  std::string lock_key_;
  Copies copies_;
};

}  // namespace mcds
