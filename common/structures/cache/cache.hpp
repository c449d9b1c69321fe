// Cache stores the output of a command until it is too old, and lets one caller in the whole cluster rebuild
// it. Use it for output that is expensive to compute and may be a little old. Its contract is below.
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
  Duration ttl;                        // how long the output is fresh
  Duration stale;                      // how long it is then usable while it is rebuilt
  Duration rebuild_ttl;                // a rebuilder that does not renew its lock for this long has crashed
  Duration wait{0};                    // how long to wait for another caller's rebuild
  bool refresh = false;                // rebuild even if it is fresh, and replay nothing
  std::vector<std::string> tags = {};  // the tags on which the output depends
  LockHolder holder = {};
};

// A rebuild's lock with a shorter ttl could not be renewed in time.
constexpr Duration min_rebuild_ttl = std::chrono::seconds(4);
// The time that a lock's key or an entry is kept beyond its ttl, for the server's tick and a stall during it.
constexpr Duration cache_slack = std::chrono::seconds(2);
// The maximum time between two reads of a waiting caller.
constexpr Duration max_cache_nap = std::chrono::seconds(1);
// The maximum size of the output, both streams together, that an entry can hold.
constexpr std::size_t max_cached_size = max_value_size - cache_record_overhead;
// The maximum number of tags of one entry.
constexpr std::size_t max_cache_tags = 32;

// Returns true if the failure is a server's, so that continuing without it may succeed.
bool is_servers_failure(ErrorCode code);

// The right to rebuild an entry. It ends with end(), or when its lock expires.
class CacheRebuild {
 public:
  // Returns the lock and its lease, if the server granted it. Renew the lease in place while the command
  // runs.
  Lock& lock() { return lock_; }
  std::optional<Lease>& lease() { return lease_; }
  // Returns the ttl for renewals: the rebuild ttl minus the key's slack and one poll of a waiting caller.
  Duration lease_ttl() const;
  // Extends the entry that will be replaced, so that it stays as long as the lock; never shortens it. Call
  // this after each renewal, and as often without the lock. Ignores failures: if the entry disappears, the
  // rebuild is not stored.
  void keep();

  enum class Stored { stored, superseded, too_large };
  // Stores the record after filling in its build and times. superseded: other callers have invalidated or
  // rebuilt the entry meanwhile, and it was left alone. Throws NotApplied, UnknownOutcome, Contention.
  Stored store(CacheRecord record);
  // Releases the lock. After a failed command it stays for a second or two, so that the command is not
  // restarted continuously. Throws like Lock::release.
  void end(bool succeeded);

 private:
  friend class Cache;

  CacheRebuild(Context context, std::string key, std::string lock_key, CacheTerms terms);
  // Returns false if another caller has the lock. With `unlocked`, continues without it if its server fails.
  bool take_lock(std::string& rival, bool unlocked);
  // Returns nullopt if the entry or a placeholder is ours to replace, or the entry if it is fresh after all.
  std::optional<CacheRecord> claim();
  bool ends_soon(const std::optional<CacheRecord>& record) const;
  // Releases the lock when nothing was rebuilt. Ignores failures.
  void release_added();

  Context context_;
  std::string key_;
  CacheTerms terms_;
  Lock lock_;
  std::optional<Lease> lease_;
  std::string replaces_;  // build of the claimed value, or digest of a damaged one; empty: none
  CasUnique seen_;        // of our placeholder, if the reply had it
  CacheTags tags_;
  std::vector<CacheTag> tagged_;  // with their numbers before the command
  WallTime begun_at_{};
  WallTime keep_until_{};  // expiry of the replaced entry
};

class Cache {
 public:
  // Throws InvalidInput for names that no key can contain.
  Cache(const Context& context, std::string_view name);

  struct Answer {
    enum class Kind {
      fresh,    // `record` is valid
      rebuild,  // `rebuild` is valid: run the command, store(), end()
      busy,     // another caller rebuilds and the wait is over; `record`: stale value, if any
    } kind;
    std::optional<CacheRecord> record = {};
    std::optional<CacheRebuild> rebuild = {};
    std::string holder = {};  // busy: JSON of the caller that rebuilds, if readable
  };
  // Returns the entry or the right to rebuild it. Throws NotApplied and the like if the entry's server fails,
  // CorruptData, and InvalidInput for terms that cannot be stored. Once another caller is known to rebuild,
  // also waits while servers fail.
  Answer ask(const CacheTerms& terms);
  // Returns true if ask() has found another caller rebuilding.
  bool has_waited() const { return has_waited_; }

  struct Shown {
    std::optional<CacheRecord> record;           // not for placeholders
    std::vector<std::string> expired_tags = {};  // those of the record's tags that make it stale
    std::optional<std::chrono::seconds> ttl;     // until the entry expires, if the server reports it
    bool rebuilding = false;
    std::string holder;  // JSON of the caller that rebuilds
  };
  // Returns the state of the entry. Throws CorruptData for a value that is damaged or not ours.
  Shown show();
  // Makes the entry stale at once: output that is being rebuilt from older data will not be stored, but the
  // stale value stays. Returns false if there was nothing. expire() and remove() throw CorruptData for
  // another program's value, which stays.
  bool expire();
  // Does the same and removes the stale value too.
  bool remove();

  std::size_t server() const { return context_.cluster.placement().server_of(key_); }
  // Returns the keys of the entry and of its lock.
  std::vector<std::string> keys() const { return {key_, lock_key_}; }

 private:
  bool look(const CacheTerms& terms, Answer& busy);
  std::optional<CacheRecord> record_in(const Reply& reply) const;
  std::optional<Answer> try_rebuild(const CacheTerms& terms, std::string& rival, bool unlocked);

  Context context_;
  std::string key_;
  std::string lock_key_;
  bool has_waited_ = false;
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
//     `expire` (another build, never fresh again), a `remove`, or a newer build by a caller that took over
//     the lock.
//   - An entry with tags is fresh only while its tags have the numbers that they had before its command was
//     started, and if it has every tag that the caller names.
//   - A caller waits no longer than it asked to, plus the round trips in flight.
//   - The server drops an entry 2 s after it may last be used, by its own clock, because the exptime is
//     relative. A long rebuild extends the entry that it is going to replace.
//
// Round trips
//   hit 1. Rebuild 3 before the command (read, lock, claim) and 3 after it (read, cas, release the lock; 4 on
//   another connection), 2 if it replaces only its own placeholder, whose cas token it has;
//   2 more if a claimed value is about to expire, and for each renewal. Busy 3, 2 per further poll, 1 at the
//   end. expire and remove 2; show 1. Tags that the caller names cost none; an entry's other tags, and all of
//   them in show, 1; creating tags 1 (tags.hpp).
//
// When things fail
//   rebuilder crashes: a waiting caller rebuilds at the latest one rebuild ttl after the last renewal.
//   lost reply: the placeholder is read in the trip that adds it; every attempt has another build, so no
//   client uses one that is added late. A store is read again: our build means stored. So is `expire`, whose
//   attempts have different builds, and `remove`, which removes late only what was read before it.
//   a server hangs, then continues: it executes old requests late. A placeholder is harmless; a lock that no
//   client uses blocks rebuilds for at most a rebuild ttl.
//   the lock's server fails: the rebuild continues without a lock, still guarded by cas.
//   the entry's server fails: throws; the caller runs its command as if there were no cache.
//   eviction, restart: a miss. A rebuild whose placeholder or old value is gone is not stored.
//   skew: an entry is fresh too long or too short by the difference between its builder's and its reader's
//   clocks, at most until the server drops it.
//   foreign data under the key: CorruptData. A damaged record of ours counts as a miss and is replaced.
//
// Source: memcached's `add` as a lock against the dogpile effect; stale-while-revalidate (RFC 5861).
