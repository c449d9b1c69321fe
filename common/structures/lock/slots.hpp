// LockSlots is a lock that at most N holders share: N ordinary locks, of which a caller takes any one. Use it
// for work that the machines can do N times at once. Its contract is at the end of this file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/structures/lock/lock.hpp"

namespace mcds {

constexpr std::size_t max_lock_slots = 256;

// Returns the slot that `token` names.
std::size_t slot_of(std::string_view token);
std::string slot_suffix(std::size_t slot);
// Returns the error for two numbers of slots under one name.
Failure other_slots(std::size_t asked, std::size_t held, const std::string& server);

class LockSlots {
 public:
  // Throws InvalidInput for an unusable name or number of slots.
  LockSlots(Context context, std::string_view name, std::size_t slots, Duration max_ttl = default_max_ttl);

  struct Answer {
    Lock::Answer lock;     // busy: that of the slot tried last
    std::size_t slot = 0;  // of `lock`
  };
  // Acquires any of the slots, like Lock::acquire. Throws Failure(bad_data) if a holder states another
  // number.
  Answer acquire(Lock::AcquireOptions acquire_options);

  std::size_t size() const { return locks_.size(); }
  Lock& at(std::size_t slot) { return locks_.at(slot); }
  // Returns all slots in one trip, each with the name of the lock.
  std::vector<Lock::Shown> show() const;

 private:
  std::vector<std::size_t> order() const;
  Lock::Answer try_all(const Lock::AcquireOptions& acquire_options, bool first);
  void withdraw_others();

  Context context_;
  std::string name_;
  std::vector<Lock> locks_;
  std::vector<PendingAdds> tokens_;  // per slot, for the current acquisition
  std::size_t answered_ = 0;         // the slot of the last answer
};

}  // namespace mcds

// Key layout
//   lock:<name>              slot 0, as in lock.hpp
//   lock:<name>:slot:<k>     slot k, from 1 to N - 1; its fence is lock:<name>:slot:<k>:fence
//     lock:jobs:slot:2 = b7c1e0f2a94d4f6e.2 {"host":"web3",…,"slots":3}
//   The token of slot k ends in ".k", so a token states which slot to renew and to release.
//
// Invariants
//   - Each slot is a lock with all guarantees of lock.hpp, so there are never more than N holders while all
//     callers give the same N.
//   - A caller that meets a holder with another N is refused. If callers with different N do not meet, there
//     are at most as many holders as the largest N.
//   - Fencing tokens grow in each slot. They are not ordered between slots.
//
// Round trips
//   acquire: 1 to read all slots, then those of a lock for every slot tried. Free slots are tried from a
//   random one on; if a slot is taken meanwhile or its server does not answer, the next is tried.
//
// When things fail
//   An add without reply: the next attempt begins with its slot, so that the caller recognizes its own token.
//   If another slot is taken first, the uncertain one is released.
//   A server does not answer: its slots cannot be taken, but the others can. If none can be taken, the
//   server's failure is thrown, because its slots may be free.
//   A server lost slots: there may be as many more holders as slots were lost; see lock.hpp.
//
// Source: counting semaphores (Dijkstra 1965), as one lock per permit.
