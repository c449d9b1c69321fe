// One server's copy of a lock: what takes, renews and frees it. Copies are driven side by side, each by its
// run's context (replicas.hpp). lock.hpp describes the layout and the guarantees.
#pragma once

#include <optional>
#include <string>

#include "common/primitives/context.hpp"
#include "common/structures/lock/value.hpp"

namespace mcds {

std::string new_lock_token(Random& random);

// When a fence that began with this number ends: a week behind the moment that the number is, so that the
// present time, with which the next begins, is above all that were drawn.
Exptime fence_end(std::uint64_t microseconds);

struct CopyToTake {
  std::size_t server;
  std::string key;
  AddTokens tokens;
  std::string value;      // begins with the next token
  std::string fence_key;  // to be drawn behind the add, if it is there; empty: not
  Exptime exptime = Exptime::never();
  // What is gone when it is read; not where the server's vote was read behind the add.
  bool adds_again = true;
};

// What has become of a copy.
struct HeldCopy {
  // The later one of two copies is that of the lock. Done: taken, renewed or removed.
  enum class Result { contended, gone, not_ours, failed, done, other_number };
  std::size_t server = 0;
  Result result = Result::failed;
  // Done: the stamp, if the server returned it, and when that was sent, from which our time counts.
  std::optional<CasUnique> cas = {};
  SteadyTime counts_from{};
  std::optional<LockValue> value = {};  // what was read last: the former or present holder
  Reply failure = {};                   // failed, or the fence could not be drawn
  // Of one that was to be taken: the fencing token, if it was drawn behind the add.
  std::optional<std::uint64_t> fence = {};
  bool in_doubt = false;  // an add may have been applied unnoticed, or may still be
  bool vanished = false;  // failed: nothing was there when an add in doubt was read back

  bool is_lost() const { return result == Result::gone || result == Result::not_ours; }
  // For answers; `yes` if it did not fail.
  CopyOutcome outcome(const Context& context, bool yes) const;
};

// The add, and the fence's increment in the same trip. A lost reply is read back: our token means
// ours, one that was spent is exchanged for it by cas.
HeldCopy take_copy(const Context& context, const CopyToTake& plan);

struct CopyToChange {
  std::size_t server;
  std::string key;
  std::optional<std::string> token;           // nullopt: whatever is there
  std::optional<CasUnique> cas = {};          // of it on this connection, if known; it saves the read
  std::optional<Exptime> renewed_until = {};  // nullopt: it is removed
  std::optional<std::string> value = {};      // to be stored; nullopt: what is there
  std::size_t copies = 1;                     // of the lock
};

// What has our token, by its cas unique: stored with a new exptime, or removed.
HeldCopy change_copy(const Context& context, CopyToChange plan);

}  // namespace mcds
