// A lock that at most N may hold at a time: N ordinary locks, of which a caller takes any one. For work of
// which the machines can bear N at a time. Its contract stands at the end of this file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/structures/lock/lock.hpp"

namespace mcds {

constexpr std::size_t most_lock_slots = 256;

// The slot in a token.
std::size_t slot_of(std::string_view token);
std::string slot_suffix(std::size_t slot);
// Two numbers of slots under one name.
Failure other_slots(std::size_t asked, std::size_t held, const std::string& server);

class LockSlots {
 public:
  // Throws InvalidInput for unusable names and numbers of slots.
  LockSlots(Context context, std::string_view name, std::size_t slots,
            Duration longest_ttl = default_longest_ttl);

  struct Answer {
    Lock::Answer lock;     // busy: of the slot tried last
    std::size_t slot = 0;  // of that answer
  };
  // As Lock::acquire, for any of the slots. Throws Failure (bad_data) if a holder has another number of
  // slots.
  Answer acquire(Lock::Wish wish);

  std::size_t size() const { return locks_.size(); }
  Lock& at(std::size_t slot) { return locks_.at(slot); }
  // All slots in one trip; `name` is that of the lock.
  std::vector<Lock::Shown> show() const;

 private:
  std::vector<std::size_t> order() const;
  Lock::Answer try_all(const Lock::Wish& wish, bool first);
  void withdraw_others();

  Context context_;
  std::string name_;
  std::vector<Lock> locks_;
  std::vector<AddTokens> tokens_;  // of each slot, of the acquisition under way
  std::size_t answered_ = 0;       // the slot of the last answer
};

}  // namespace mcds

// Key layout
//   lock:<name>              slot 0, as in lock.hpp
//   lock:<name>:slot:<k>     slot k, from 1 to N - 1; its fence is lock:<name>:slot:<k>:fence
//     lock:jobs:slot:2 = b7c1e0f2a94d4f6e.2 {"host":"web3",…,"slots":3}
//   The token of slot k ends in ".k", so a token alone says which slot to renew and to release.
//
// Invariants
//   - Each slot is a lock with all that lock.hpp promises, so there are never more than N holders while all
//     callers give the same N.
//   - A caller that meets a holder with another N is refused. With both in use at a time that did not meet,
//     there are at most as many holders as the largest N.
//   - Fencing tokens grow in each slot. Over several slots they are not ordered.
//
// Round trips
//   acquire: 1 to look at all slots, then that of a lock for every slot tried; the free ones from a random
//   one on. A slot that is taken meanwhile, or whose server does not answer, is followed by the next.
//
// When things fail
//   An add without a reply: its slot is tried first the next time, so the caller recognizes its own token. If
//   another slot is taken meanwhile, the doubtful one is given back.
//   A server that does not answer: its slots cannot be taken, the others can. If none can be: that failure,
//   because whether all are held is unknown.
//   Slots on servers that lost them: as many more holders as slots were lost; see lock.hpp.
//
// Source: counting semaphores (Dijkstra 1965), as one lock per permit.
