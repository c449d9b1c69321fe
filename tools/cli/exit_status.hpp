// One table of exit codes for every command.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/errors.hpp"

namespace mcds {

// Those of an ErrorCode have its number.
enum class ExitStatus : int {
  ok = 0,
  no = 1,       // miss, not a member, not held by you, over the limit
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
  const char* word;  // of {"error":{"code":…}}; empty: no error leads to it
  const char* meaning;
};
std::span<const ExitCode> all_exit_codes();

inline ExitStatus status_of(ErrorCode code) {
  return static_cast<ExitStatus>(code);
}
const char* name_of(ErrorCode code);

// The worse of two lines of a batch: ok < no < problem < try_again < bad_data < refused <
// access_denied < unknown_outcome < unavailable.
ExitStatus worse(ExitStatus a, ExitStatus b);

// What -E asks for where another holds what is wanted, else 75. Throws InvalidInput.
ExitStatus busy_exit(const std::optional<std::uint64_t>& asked);

}  // namespace mcds
