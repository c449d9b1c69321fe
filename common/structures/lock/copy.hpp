// take_copy() and change_copy() take, renew and free one server's copy of a lock. They run concurrently for
// all copies, each in its run's context (replicas.hpp). lock.hpp describes the guarantees.
#pragma once

#include <optional>
#include <string>

#include "common/primitives/context.hpp"
#include "common/structures/lock/value.hpp"

namespace mcds {

std::string new_lock_token(Random& random);

// Returns the expiry of a fence that begins with this number: a week after the time that the number stands
// for. The next fence then begins with the current time, which is above every number drawn before.
Exptime fence_end(std::uint64_t microseconds);

struct LockCopyRequest {
  std::size_t server;
  std::string key;
  PendingAdds tokens;
  std::string value;      // begins with the next token
  std::string fence_key;  // incremented after the add, if it exists; empty: no fence is drawn
  Exptime exptime = Exptime::never();
  // Add again if the key has disappeared when it is read. False if the server's vote was read after the add.
  bool adds_again = true;
};

// The result for one copy.
struct LockCopy {
  // Results in order of precedence: the last one among the copies is the lock's. done: taken, renewed or
  // removed.
  enum class Result { contended, gone, not_ours, failed, done, other_number };
  std::size_t server = 0;
  Result result = Result::failed;
  // Valid if done: the cas token, if the server returned it, and when the request was sent: the ttl's start.
  std::optional<CasUnique> cas = {};
  SteadyTime counts_from{};
  std::optional<LockValue> value = {};  // the value read last: of the former or present holder
  Reply failure = {};                   // why it failed, or why the fence could not be drawn
  // The fencing token, if it was drawn after the add.
  std::optional<std::uint64_t> fence = {};
  bool pending = false;   // an add may have been applied unnoticed, or may still be
  bool vanished = false;  // failed: an add with an unknown outcome was looked up and had not been executed

  bool is_lost() const { return result == Result::gone || result == Result::not_ours; }
  // Returns the outcome for answers, with `yes` if the copy did not fail.
  CopyOutcome outcome(const Context& context, bool yes) const;
};

// Adds the lock and increments the fence in the same trip. After a lost or refused add the key is read: our
// latest token means that the lock is ours, and a value that is not ours holds the lock. A retired token of
// ours is replaced by the latest by cas, unless an add of the latest may still be executed.
LockCopy take_copy(const Context& context, const LockCopyRequest& plan);

struct LockCopyUpdate {
  std::size_t server;
  std::string key;
  std::optional<std::string> token;           // nullopt: any holder
  std::optional<CasUnique> cas = {};          // on this connection, if known; saves the read
  std::optional<Exptime> renewed_until = {};  // nullopt: remove the copy
  std::optional<std::string> value = {};      // value to store; nullopt: keep the stored one
  std::size_t copies = 1;                     // of the lock
};

// Renews or removes the copy that has our token, by its cas token.
LockCopy change_copy(const Context& context, LockCopyUpdate plan);

}  // namespace mcds
