// The value of a lock's key: its holder, for programs and for people. lock.hpp has the layout.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/structures/lock/lock.hpp"

namespace mcds {

// `<token> <holder as JSON>`, as stored.
struct LockValue {
  std::string token;
  std::string holder;  // a JSON object; empty when another program left none

  // Total: any value under a lock's key holds the lock.
  static LockValue parse(std::string_view stored);
};

// Throws InvalidInput for a note that is too long.
std::string holder_json(const LockHolder& holder, WallTime now, Duration ttl);
// Of how many slots the lock is, as its holder says; nullopt if another program holds it.
std::optional<std::size_t> slots_of(std::string_view holder);
// The number of copies, other than `ours`, in which one of these locks is kept, as its holder says; nullopt:
// none of them, or none that says so. A holder before 0.3 that is met on several servers did not say it.
std::optional<std::size_t> other_number(std::span<const LockValue> found, std::size_t ours);
Failure other_copies(std::size_t copies, const std::string& server);
// The ttl that it contains.
std::optional<Duration> ttl_of(const LockValue& stored);
// A stored value with this ttl among the holder's fields; one without such fields as it is.
std::string with_ttl(const std::string& value, Duration ttl);
// A stored value with `finished_at` among the holder's fields, whatever these are.
std::string finished(const std::string& value, WallTime now);

}  // namespace mcds
