// Options and helpers that the sources of `mcds lock` share.
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

// Returns the parameters for acquiring the lock. Throws InvalidInput.
Lock::AcquireOptions acquire_options_of(const LockOptions& options, Duration ttl, bool fence);
Lock lock_of(Session& session, const LockOptions& options, std::size_t slot);
// Returns the number of slots that --slots gives, on a clock that signals interrupt.
LockSlots slots_of(Session& session, const LockOptions& options, Clock& clock);
// Adds "slot" and "slots" if --slots was given.
void add_slot(JsonObject& object, const LockOptions& options, std::size_t slot);
// Releases the lock of an interrupted command. If that fails, throws UnknownOutcome with the token.
void give_up(Lock& lock, const Lease& lease);
// Reports the holder on standard error. Returns 75 or the status that -E gives.
ExitStatus report_busy(Session& session, const LockOptions& options, const Lock::Answer& answer);

ExitStatus run_locked(Session& session, const LockOptions& options);

}  // namespace mcds
