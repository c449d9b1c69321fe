// The output of a command, stored until it is too old, and rebuilt by one caller in the whole cluster. For
// what is dear to compute and may be a little old. Its contract stands at the end of this file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/cas_update.hpp"
#include "common/structures/cache/entry.hpp"
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
// How much longer than its rights say a lock's key lives, and an entry: the server's tick, and a stall over
// it.
constexpr Duration cache_slack = std::chrono::seconds(2);
// A waiting caller looks at least this often.
constexpr Duration longest_cache_nap = std::chrono::seconds(1);
// The largest output, both streams together, that an entry can hold.
constexpr std::size_t max_cached_size = max_value_size - cache_record_overhead;
// Of one entry.
constexpr std::size_t most_cache_tags = 32;

// Whether it is a server's, so that another way may succeed.
bool is_servers_failure(ErrorCode code);

// The right to rebuild an entry. Ends with end(), or by itself.
class CacheRebuild {
 public:
  // The lock, if its server granted it: to be renewed while the command runs, and the renewed lease put back.
  Lock& lock() { return lock_; }
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
  // Releases the lock; after a failed command it stays a second or two, so that the command is not restarted
  // continuously.
  // Throws like Lock::release.
  void end(bool succeeded);

 private:
  friend class Cache;

  CacheRebuild(Context context, std::string key, std::string lock_key, CacheTerms terms);
  // False: another caller has the lock. `unlocked`: continue without it if its server fails.
  bool take_lock(std::string& rival, bool unlocked);
  // nullopt: the entry, or a placeholder, is ours to replace; otherwise it is fresh after all.
  std::optional<CacheRecord> claim();
  bool ends_soon(const std::optional<CacheRecord>& record) const;
  // Nothing was rebuilt. Failures are not reported.
  void give_back();

  Context context_;
  std::string key_;
  CacheTerms terms_;
  Lock lock_;
  std::optional<Lease> lease_;
  std::string replaces_;  // the build of what was claimed, or the digest of a damaged value; empty: nothing
  CacheTags tags_;
  std::vector<CacheTag> tagged_;  // with the numbers before the command
  WallTime begun_at_{};
  WallTime keep_until_{};  // of what is replaced
};

class Cache {
 public:
  // Throws InvalidInput for names no key can hold.
  Cache(const Context& context, std::string_view name);

  struct Answer {
    enum class Kind {
      fresh,    // record
      rebuild,  // ours: run the command, store, end
      busy,     // another caller rebuilds and the wait is over; record: the stale value, if there is one
    } kind;
    std::optional<CacheRecord> record = {};
    std::optional<CacheRebuild> rebuild = {};
    std::string holder = {};  // busy: JSON of the rebuilding caller, if readable
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
  };
  // Throws CorruptData for a value that is damaged or not ours.
  Shown show();
  // No longer fresh from now on: output that is being rebuilt from older data will not be stored. The stale
  // value stays. False: there was nothing. Both throw CorruptData for what is not ours, which stays.
  bool expire();
  // The same without the stale value.
  bool remove();

  std::size_t server() const { return context_.cluster.placement().server_of(key_); }
  // The entry's and the lock's.
  std::vector<std::string> keys() const { return {key_, lock_key_}; }

 private:
  bool look(const CacheTerms& terms, Answer& busy);
  std::optional<CacheRecord> record_in(const Reply& reply) const;
  std::optional<Answer> try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked);

  Context context_;
  std::string key_;
  std::string lock_key_;
};

}  // namespace mcds

// Key layout
//   cache:<key> = a record (entry.hpp)                exptime: ttl + stale + 2 s
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
// Round trips
//   hit 1. Rebuild 3 before the command (look, lock, claim) and 3 after it (read, cas, release the lock; 4 on
//   another connection); 1 more if a claimed value is about to expire. Busy 3, 2 per further poll, 1 at the
//   end. expire and remove 2; show 1. Tags that the caller names cost none;
//   tags that an entry has beyond them, and all of them in show, 1; a tag that is created 1 (tags.hpp).
//
// When things fail
//   the rebuilder dies: a waiting caller rebuilds at the latest one rebuild ttl after the last renewal.
//   lost reply: of the placeholder's add: read in the same trip; every attempt has another build, so a late
//     one belongs to no one. Of a store: read again, our build means stored. Of `expire`: the same; another
//     attempt is another build. Of `remove`: read again; a late removal takes only what was read before it.
//   a server hangs, then continues: it executes late what it was asked. A placeholder harms no one; a lock
//     that no one waits for blocks rebuilds for at most a rebuild ttl.
//   the lock's server fails: the rebuild continues without a lock, still guarded by cas.
//   the entry's server fails: thrown; the caller runs its command as if there were no cache.
//   eviction, restart: a miss. A rebuild whose placeholder or old value is gone is not stored.
//   skew: an entry is fresh too long or too short by the difference between the clocks of its builder and its
//     reader, at most until the server drops it.
//   another program's data under the key: CorruptData. A damaged record of ours counts as a miss and is
//     replaced.
//
// Source: memcached's `add` as a lock against the dogpile effect; stale-while-revalidate (RFC 5861).
