// One table of exit codes for every command.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/errors.hpp"

namespace mcds {

// The exit codes of the program. The code for an ErrorCode has its number.
enum class ExitStatus : int {
  ok = 0,
  no = 1,       // a miss, not a member, not held by the caller, over the limit
  problem = 2,  // where --probe, ring diff --max-moved, ring check, servers, check
  usage = 64,
  bad_data = 65,
  cannot_read = 66,
  unavailable = 69,
  internal = 70,
  system = 71,
  cannot_write = 73,
  output_failed = 74,
  try_again = 75,
  refused = 76,
  access_denied = 77,
  configuration = 78,
  lock_lost = 79,
  unknown_outcome = 80,
  max_run = 124,
  not_executable = 126,
  not_found = 127,  // 128 + N: the child was ended by signal N
};

struct ExitCode {
  ExitStatus status;
  const char* word;  // the "code" of {"error":{"code":…}}; empty if no error leads to it
  const char* meaning;
};
std::span<const ExitCode> all_exit_codes();

inline ExitStatus status_of(ErrorCode code) {
  return static_cast<ExitStatus>(code);
}
const char* name_of(ErrorCode code);

// Returns the worse status of two lines of a batch: ok < no < problem < try_again < bad_data < refused <
// access_denied < unknown_outcome < unavailable.
ExitStatus worse(ExitStatus a, ExitStatus b);

// Returns the status for something that another client holds: that of -E, or 75. Throws InvalidInput.
ExitStatus busy_exit(const std::optional<std::uint64_t>& asked);

}  // namespace mcds
