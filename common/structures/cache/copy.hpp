// What the parts of the cache share: one server's copy of an entry, and which of several copies counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/several/replicas.hpp"
#include "common/structures/cache/record.hpp"

namespace mcds {

// How much longer than its rights say a lock's key lives, and an entry: the server's tick, and a stall over
// it.
constexpr Duration cache_slack = std::chrono::seconds(2);

// With several copies everything of an entry but placeholders stays on its server for so long at least, fresh
// or not: it is newer than what another copy may have missed. An only copy has missed nothing.
constexpr Duration shortest_word = std::chrono::hours(1);
inline Duration least_stay(const Replicas& copies) {
  return of_several(copies.size(), shortest_word);
}

WallTime plus(WallTime time, Duration duration);

// What identifies a value when it is read again.
std::string cache_identity_of(std::string_view value);

// The record in a value; nullopt if it is a damaged one of ours. Throws CorruptData if it is another
// program's.
std::optional<CacheRecord> cache_record_of(const Context& context, const std::string& key,
                                           std::string_view value, std::size_t server);

// Whether another way may succeed: a rebuild without the lock, or another copy's server.
bool is_servers_failure(ErrorCode code);

// What the copies hold; nullopt for those that have nothing, or nothing readable.
using CacheCopies = EachResult<std::optional<CacheRecord>>;
// The copy that counts, or nullptr; placeholders do not count.
CacheRecord* newest_of(CacheCopies& copies);

// Throws if too few copies answered for anything to be known (several/quorum.hpp).
CacheCopies expect_answer(CacheCopies copies);
// Whether so many copies have this record that its store is done: another is not to be taken for fresh.
bool is_done(const CacheCopies& copies, const CacheRecord& record);

// For answers; `yes`: each copy's.
std::vector<CopyOutcome> cache_outcomes(const Context& context, const std::string& key,
                                        const EachResult<bool>& yes);
// The same, whether each copy has a record.
std::vector<CopyOutcome> found_outcomes(const Context& context, const std::string& key,
                                        const CacheCopies& found);

}  // namespace mcds
