// LockValue is the value of a lock's key: its token and its holder, for programs and for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/structures/lock/lock.hpp"

namespace mcds {

// The value as stored: `<token> <holder as JSON>`.
struct LockValue {
  std::string token;
  std::string holder;  // a JSON object; empty if another program left none

  // Never fails, because any value under a lock's key holds the lock.
  static LockValue parse(std::string_view stored);
};

// Returns the holder as JSON. Throws InvalidInput if the note is too long.
std::string holder_json(const LockHolder& holder, WallTime now, Duration ttl);
// Returns the lock's number of slots from the holder, or nullopt if another program holds it.
std::optional<std::size_t> slots_of(std::string_view holder);
// Returns the number of copies, other than `ours`, that a holder of one of these locks states, or nullopt. A
// holder without the field has a single copy, unless its token was found on several servers: before 0.3 no
// holder stated the number.
std::optional<std::size_t> other_number(std::span<const LockValue> found, std::size_t ours);
Failure other_copies(std::size_t copies, const std::string& server);
// Returns the ttl in the holder's fields.
std::optional<Duration> ttl_of(const LockValue& stored);
// Returns `value` with this ttl in the holder's fields, or unchanged if it has no such fields.
std::string with_ttl(const std::string& value, Duration ttl);
// Returns `value` with `finished_at` added to the holder's fields, whatever these are.
std::string finished(const std::string& value, WallTime now);

}  // namespace mcds
