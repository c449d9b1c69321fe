// What a command printed, kept until it is too old, and rebuilt by one caller in the whole cluster.
//
// Key layout
//   cache:<key> = a record (cache_record.hpp)         exptime: ttl + stale + 2 s
//     cache:report = K1 0123456789abcdef 1795234133945 1795234193945 1795234793945 0 6 0 *5f1d9a01\nhello\n
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
// Round trips
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
//   the lock's server fails: the rebuild goes on without a lock, guarded by cas all the same.
//   the entry's server fails: thrown. The caller runs its command as if there were no cache.
//   eviction, restart: a miss. A rebuild whose placeholder or old value is gone is not stored.
//   skew: an entry is fresh too long or too short by the difference of the clocks of who made it and who
//     reads it, at most until the server drops it.
//   foreign data under the key: CorruptData. A damaged record of ours is taken for a miss and replaced.
//
// Source: memcached's `add` as a lock against the dogpile effect; stale-while-revalidate (RFC 5861).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/context.hpp"
#include "common/structures/cache_record.hpp"
#include "common/structures/lock.hpp"

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
// The largest output, both streams together, that an entry can hold.
constexpr std::size_t max_cached_size = max_value_size - cache_record_overhead;

// The right to rebuild an entry. Ends with end(), or by itself.
class CacheRebuild {
 public:
  // The lock, if its server granted it: to be renewed while the command runs, and the renewed lease put back.
  Lock& lock() { return lock_; }
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
  // Gives the lock back; after a failed command it stays a second or two, so that what fails is not hammered.
  // Throws like Lock::release.
  void end(bool succeeded);

 private:
  friend class Cache;
  CacheRebuild(Context context, std::string key, CacheTerms terms);
  // False: another has the lock. `unlocked`: go on without it if its server fails.
  bool take_lock(std::string& rival, bool unlocked);
  // nullopt: the entry, or a placeholder, is ours to replace; else it is fresh after all.
  std::optional<CacheRecord> claim();
  bool ends_soon(const std::optional<CacheRecord>& record) const;

  Context context_;
  std::string key_;
  CacheTerms terms_;
  Lock lock_;
  std::optional<Lease> lease_;
  std::string replaces_;   // the build, or the digest of a damaged value; empty: nothing may be stored
  WallTime keep_until_{};  // of what is replaced
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
    std::string holder = {};  // busy: JSON of who rebuilds, if readable
  };
  // Throws NotApplied and the like when the entry's server fails, CorruptData, InvalidInput for terms that
  // cannot be kept. Once it has seen that another rebuilds, failures are waited out.
  Answer ask(const CacheTerms& terms);

  struct Shown {
    std::optional<CacheRecord> record;        // not for placeholders
    std::optional<std::chrono::seconds> ttl;  // until the entry goes away, if the server tells
    bool rebuilding = false;
    std::string holder;  // JSON of who rebuilds
  };
  // Throws CorruptData for what is none of ours, or damaged.
  Shown show();
  // Not fresh any more, from now on: what is being rebuilt from older data will not be stored. The stale
  // value stays. False: there was nothing.
  bool expire();
  // The same without the stale value.
  bool remove();

  std::size_t server() const { return context_.cluster.placement().server_of(key_); }
  // The entry's and the lock's.
  std::vector<std::string> keys() const { return {key_, lock_key_}; }

 private:
  bool look(const CacheTerms& terms, Answer& busy);
  std::optional<Answer> try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked);

  Context context_;
  std::string key_;
  std::string lock_key_;
};

}  // namespace mcds
