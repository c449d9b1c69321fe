#include "tools/cli/exit_status.hpp"

#include <algorithm>
#include <array>

namespace mcds {

namespace {

constexpr std::array codes{
    ExitCode{ExitStatus::ok, "", "done, yes, found, acquired"},
    ExitCode{ExitStatus::no, "", "the answer is no"},
    ExitCode{ExitStatus::problem, "", "a problem was found"},
    ExitCode{ExitStatus::usage, "usage", "usage"},
    ExitCode{ExitStatus::bad_data, "bad_data", "bad input or bad stored data"},
    ExitCode{ExitStatus::cannot_read, "cannot_read", "a local file cannot be read"},
    ExitCode{ExitStatus::unavailable, "unavailable", "no usable server, or no majority"},
    ExitCode{ExitStatus::internal, "internal", "a bug in mcds"},
    ExitCode{ExitStatus::system, "system", "operating system error"},
    ExitCode{ExitStatus::cannot_write, "cannot_write", "a local file cannot be written"},
    ExitCode{ExitStatus::output_failed, "output_failed", "writing to standard output failed"},
    ExitCode{ExitStatus::try_again, "try_again", "try again"},
    ExitCode{ExitStatus::refused, "refused", "the server refused or sent an invalid reply"},
    ExitCode{ExitStatus::access_denied, "access_denied",
             "the server requires a login or rejects it, or its certificate cannot be verified"},
    ExitCode{ExitStatus::configuration, "configuration", "configuration"},
    ExitCode{ExitStatus::lock_lost, "lock_lost", "the lock was lost while the command ran"},
    ExitCode{ExitStatus::unknown_outcome, "unknown_outcome", "outcome unknown"},
    ExitCode{ExitStatus::max_run, "", "--max-run was exceeded"},
    ExitCode{ExitStatus::not_executable, "", "the child command cannot be executed"},
    ExitCode{ExitStatus::not_found, "", "the child command was not found"},
};

}  // namespace

std::span<const ExitCode> all_exit_codes() {
  return codes;
}

const char* name_of(ErrorCode code) {
  return std::ranges::find(codes, status_of(code), &ExitCode::status)->word;  // every error has a line
}

ExitStatus busy_exit(const std::optional<std::uint64_t>& asked) {
  if (asked.value_or(0) > 255) throw InvalidInput("-E: give an exit code from 0 to 255");
  return asked ? static_cast<ExitStatus>(*asked) : ExitStatus::try_again;
}

ExitStatus worse(ExitStatus a, ExitStatus b) {
  constexpr std::array order{
      ExitStatus::ok,         ExitStatus::no,      ExitStatus::problem,       ExitStatus::try_again,
      ExitStatus::bad_data,   ExitStatus::refused, ExitStatus::access_denied, ExitStatus::unknown_outcome,
      ExitStatus::unavailable};
  const auto rank = [&](ExitStatus status) { return std::ranges::find(order, status); };
  return rank(a) < rank(b) ? b : a;
}

}  // namespace mcds
