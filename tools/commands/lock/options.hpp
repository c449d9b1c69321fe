// What the two sources of `mcds lock` share.
#pragma once

#include "common/structures/lock/slots.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct LockOptions {
  std::string name;
  std::vector<std::string> names;
  std::optional<Duration> ttl;
  std::optional<std::string> wait;
  std::optional<std::uint64_t> busy_status, slots, slot;
  std::string note;
  bool fence = false;
  std::optional<std::string> token;
  bool force = false;

  std::string on_lost = "term";
  std::string if_down = "fail";
  std::optional<Duration> grace, max_run, min_hold, once_per;
  std::optional<std::string> report;
  std::vector<std::string> command;
};

// What is asked of the lock; throws InvalidInput.
Lock::Wish wish_of(const LockOptions& options, Duration ttl, bool fence);
Lock lock_of(Session& session, const LockOptions& options, std::size_t slot);
// As many as --slots says, on a clock that signals interrupt.
LockSlots slots_of(Session& session, const LockOptions& options, Clock& clock);
// "slot" and "slots", where --slots was given.
void add_slot(JsonObject& object, const LockOptions& options, std::size_t slot);
// Until the command's deadline.
Duration time_left(Session& session);
// The lock must not stay taken: the command is interrupted. Throws UnknownOutcome, which names the token,
// when that fails.
void give_up(Lock& lock, const Lease& lease);
// 75, or what -E says, with the holder on standard error.
ExitStatus tell_busy(Session& session, const LockOptions& options, const Lock::Answer& answer);

ExitStatus run_locked(Session& session, const LockOptions& options);

}  // namespace mcds
