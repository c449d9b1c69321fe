// The output of a command, stored until it is too old, and rebuilt by one caller in the whole cluster. For
// what is dear to compute and may be a little old. Its contract stands at the end of this file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/replicas.hpp"
#include "common/structures/cache/record.hpp"
#include "common/structures/cache/tags.hpp"
#include "common/structures/lock/lock.hpp"

namespace mcds {

struct CacheTerms {
  Duration ttl;                        // how long it is fresh
  Duration stale;                      // and then usable while it is rebuilt
  Duration rebuild_ttl;                // a rebuilder that has not renewed its lock for this long is dead
  Duration wait{0};                    // for another's rebuild
  bool refresh = false;                // rebuild though it is fresh, and replay nothing
  std::vector<std::string> tags = {};  // what it depends on
  LockHolder holder = {};
};

// Below, a rebuild's lock could not be renewed in time.
constexpr Duration shortest_rebuild_ttl = std::chrono::seconds(4);
// A waiting caller looks at least this often.
constexpr Duration longest_cache_nap = std::chrono::seconds(1);
// The largest output, both streams together, that an entry can hold.
constexpr std::size_t max_cached_size = max_value_size - cache_record_overhead;
// Of one entry.
constexpr std::size_t most_cache_tags = 32;

// The right to rebuild an entry. Ends with end(), or by itself.
class CacheRebuild {
 public:
  // The lock, if a server granted it: to be renewed while the command runs, and the renewed lease put back.
  Lock& lock() { return locks_[locked_]; }
  std::optional<Lease>& lease() { return lease_; }
  // The ttl to renew it with: shorter than the rebuild ttl by what the key lives longer, and by one poll of a
  // waiting caller.
  Duration lease_ttl() const;
  // The entry to be replaced stays as long as the lock. Call it after each renewal. Failures are not
  // reported: if it goes, the rebuild is not stored.
  void keep();

  enum class Stored { stored, superseded, too_large };
  // Its build and times are filled in. superseded: invalidated or rebuilt by others meanwhile, and left so.
  // Throws NotApplied, UnknownOutcome, Contention.
  Stored store(CacheRecord record);
  // With several copies, after store: which of them have it.
  const std::vector<CopyOutcome>& copies() const { return outcomes_; }
  // Releases the lock; after a failed command it stays a second or two, so that the command is not restarted
  // continuously.
  // Throws like Lock::release.
  void end(bool succeeded);

 private:
  friend class Cache;
  // What was found in one copy while the lock was ours.
  struct Claim {
    std::optional<CacheRecord> record = {};
    std::string identity = {};  // its build, or the digest of a damaged value; empty: nothing may be stored
    bool ends_soon = false;
  };

  CacheRebuild(Context context, std::string key, std::string lock_key, CacheTerms terms);
  // False: another caller has the lock. `unlocked`: continue without it if its servers fail.
  bool take_lock(std::string& rival, bool unlocked);
  std::optional<bool> take_lock_at(std::size_t copy, std::string& rival);
  // nullopt: the entry, or a placeholder, is ours to replace; otherwise it is fresh after all.
  std::optional<CacheRecord> claim();
  Claim claim_copy(const Context& context, std::vector<Reply>& tags) const;
  bool ends_soon(const std::optional<CacheRecord>& record) const;
  bool store_copy(std::size_t copy, const std::string& replaces, const std::string& build,
                  const Write& write) const;
  // Nothing was rebuilt. Failures are not reported.
  void give_back();

  Context context_;
  std::string key_;
  std::string lock_key_;
  CacheTerms terms_;
  Replicas copies_;
  std::vector<Lock> locks_;  // one per server
  std::size_t locked_ = 0;   // which of them is used
  std::optional<Lease> lease_;
  EachResult<std::string> replaces_{{}};  // each copy's identity
  CacheTags tags_;
  std::vector<CacheTag> tagged_;  // with the numbers before the command
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
      busy,     // another caller rebuilds and the wait is over; record: the stale value, if there is one
    } kind;
    std::optional<CacheRecord> record = {};
    std::optional<CacheRebuild> rebuild = {};
    std::string holder = {};               // busy: JSON of the rebuilding caller, if readable
    std::vector<CopyOutcome> copies = {};  // as last read, fresh or busy
  };
  // Throws NotApplied and the like when the entry's server fails, CorruptData, InvalidInput for terms that
  // cannot be stored. Once it has seen that another caller rebuilds, it waits until failures end.
  Answer ask(const CacheTerms& terms);

  struct Shown {
    std::optional<CacheRecord> record;           // not for placeholders
    std::vector<std::string> expired_tags = {};  // of the record's tags those that make it stale
    std::optional<std::chrono::seconds> ttl;     // until the entry expires, if the server reports it
    bool rebuilding = false;
    std::string holder;  // JSON of who rebuilds
    std::vector<CopyOutcome> copies;
  };
  // Throws CorruptData for a value that is damaged or not ours, and NotApplied if no copy has a record and
  // some copy gave no answer.
  Shown show();
  struct Invalidation {
    bool found = false;  // there was something
    std::vector<CopyOutcome> copies = {};
    // A copy was not reached and may restore old output, and the others could store no record of the removal.
    std::optional<Failure> failure = {};
  };
  // No longer fresh from now on: output that is being rebuilt from older data will not be stored. The stale
  // value stays. Both throw when no copy was reached, and CorruptData for what is not ours, which stays.
  Invalidation expire() { return invalidate(&Cache::expire_copy, "expired"); }
  // The same without the stale value.
  Invalidation remove() { return invalidate(&Cache::remove_copy, "removed"); }

  std::size_t server() const { return context_.cluster.placement().server_of(key_); }
  // The entry's and the lock's.
  std::vector<std::string> keys() const { return {key_, lock_key_}; }

 private:
  std::pair<EachResult<std::optional<CacheRecord>>, std::vector<CacheTag>> read_with(
      const CacheTags& tags) const;
  bool look(const CacheTerms& terms, Answer& busy);
  std::optional<Answer> try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked);
  EachResult<std::optional<CacheRecord>> found_in(std::span<const std::vector<Reply>> replies,
                                                  bool or_fails = false) const;
  void show_lock(std::span<const std::vector<Reply>> seen, Shown& shown) const;
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
  Replicas copies_;
};

}  // namespace mcds

// Key layout
//   cache:<key> = a record (record.hpp)               exptime: ttl + stale + 2 s
//     cache:report = K1 0123456789abcdef 1795234130017 1795234133945 1795234193945 1795234793945 0 6 0
//     *f070e8eb\nhello\n
//     cache:report = P1 0123456789abcdef *90ab12cd\n  a placeholder: being built, and there is no older value
//   cache:<key>:rebuild = a lock (lock.hpp)           held by the caller that rebuilds
//   Keys that end in ":rebuild" are refused: their entry could be another key's lock.
//   cachetag:<tag> = a number                         see tags.hpp
//
// Invariants
//   - One rebuild at a time, while the lock's server answers and loses nothing: the holder of the lock reads
//     the entry again before it runs anything.
//   - A rebuild replaces only the value that it read before it ran, compared by build and then by cas; if
//     there was none, the placeholder that it added itself. Every change made meanwhile therefore stands: an
//     `expire` (another build, never fresh again), a `remove`, or a newer build of a caller that took over
//     the lock.
//   - An entry with tags is fresh only while its tags have the numbers that they had before its command was
//     started, and if it has every tag that the caller names.
//   - A caller waits no longer than it asked to, plus the trips it is on.
//   - The server drops an entry 2 s after it may last be used, by its own clock, because the exptime is
//     relative. A long rebuild extends the entry that it is going to replace.
//
// With several copies
//   Each copy is an entry of its own: read, claimed, stored, expired and removed as a single one is, all in
//   parallel. The invariants therefore hold for each copy. The command starts after all claims, so its output
//   is newer than any invalidation that one of its claims saw.
//   When a store or an invalidation is done, and what counts as known: several/quorum.hpp. A record that too
//   few copies have is not fresh. With 3 copies and more an invalidation first reads them: who reaches too
//   few changes nothing.
//   - The copy that began last counts, expired or not: with two copies, a hit while one lives.
//   - A removal leaves a record of itself. If an invalidation does not reach a copy, the others keep a record
//     of it for as long as their entry would have lived, and at least an hour. Whoever reaches one of them
//     does not take older output for fresh. Who reaches only the copy that was missed reads its output; the
//     answer names that copy. A copy that was unreachable for longer, or returns after the others have
//     forgotten, restores old output until it is stale.
//   - Whatever may have replaced such a record stays on its server for an hour at least, although it is stale
//     before: older output, still fresh, may return with the copy that was missed.
//   - A copy that was lost or missed a store is filled by the next rebuild, not by readers: a hit writes
//     nothing. Until that rebuild, at most a ttl away, the loss of the other copy costs one extra rebuild.
//   There is one lock, on the first server of its key that answers, because a majority of two would fail when
//   one is down. Its taker looks at the later servers in the same trip, since another caller may have taken
//   the lock there. The loss of a server therefore admits one more rebuilder, not a herd. Clients that reach
//   different servers, or ask at the moment one returns, may rebuild at the same time: in each copy the first
//   to store wins, by cas, and readers use the one that began last. No value is wrong.
//
// Round trips (also with several copies; 1 more if the lock's first server does not answer)
//   hit 1. Rebuild 3 before the command (look, lock, claim) and 3 after it (read, cas, release the lock; 4 on
//   another connection); 1 more if a claimed value is about to expire. Busy 3, 2 per further poll, 1 at the
//   end. expire and remove 2, 1 more with 3 copies and more; show 1. Tags that the caller names cost none;
//   tags that an entry has beyond them, and all of them in show, 1; a tag that is created 1 (tags.hpp).
//
// When things fail
//   the rebuilder dies: a waiting caller rebuilds at the latest one rebuild ttl after the last renewal.
//   lost reply: of the placeholder's add: read in the same trip; every attempt has another build, so a late
//     one belongs to no one. Of a store: read again, our build means stored. Of `expire`: the same; another
//     attempt is another build. Of `remove`: read again; a late removal takes only what was read before it.
//   a server hangs, then continues: it executes late what it was asked. A placeholder harms no one; a lock
//     that no one waits for blocks rebuilds for at most a rebuild ttl.
//   the lock's servers fail: the rebuild continues without a lock, still guarded by cas.
//   the entry's servers fail: thrown; the caller runs its command as if there were no cache.
//   some of the entry's servers fail: the others are used. A copy that was cut off and returns may hold older
//     or invalidated output; it counts only once the others are lost, and no longer than it would have been
//     fresh.
//   eviction, restart: a miss. A rebuild whose placeholder or old value is gone is not stored.
//   skew: with several copies, a build that began before an invalidation, by a clock that is ahead, and is
//     stored after it in the copy that the invalidation missed, counts as newer than the record of it.
//   skew: an entry is fresh too long or too short by the difference between the clocks of its builder and its
//     reader, at most until the server drops it.
//   another program's data under the key: CorruptData. A damaged record of ours counts as a miss and is
//     replaced.
//
// Source: memcached's `add` as a lock against the dogpile effect; stale-while-revalidate (RFC 5861).
