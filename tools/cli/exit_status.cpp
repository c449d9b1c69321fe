#include "tools/cli/exit_status.hpp"

#include <algorithm>
#include <array>

namespace mcds {

ExitStatus status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return ExitStatus::usage;
    case ErrorCode::bad_data:
      return ExitStatus::bad_data;
    case ErrorCode::cannot_read:
      return ExitStatus::cannot_read;
    case ErrorCode::unavailable:
      return ExitStatus::unavailable;
    case ErrorCode::internal:
      return ExitStatus::internal;
    case ErrorCode::system:
      return ExitStatus::system;
    case ErrorCode::cannot_write:
      return ExitStatus::cannot_write;
    case ErrorCode::output_failed:
      return ExitStatus::output_failed;
    case ErrorCode::try_again:
      return ExitStatus::try_again;
    case ErrorCode::refused:
      return ExitStatus::refused;
    case ErrorCode::access_denied:
      return ExitStatus::access_denied;
    case ErrorCode::configuration:
      return ExitStatus::configuration;
    case ErrorCode::lock_lost:
      return ExitStatus::lock_lost;
    case ErrorCode::unknown_outcome:
      return ExitStatus::unknown_outcome;
  }
  return ExitStatus::internal;
}

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::bad_data:
      return "bad_data";
    case ErrorCode::cannot_read:
      return "cannot_read";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::system:
      return "system";
    case ErrorCode::cannot_write:
      return "cannot_write";
    case ErrorCode::output_failed:
      return "output_failed";
    case ErrorCode::try_again:
      return "try_again";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::access_denied:
      return "access_denied";
    case ErrorCode::configuration:
      return "configuration";
    case ErrorCode::lock_lost:
      return "lock_lost";
    case ErrorCode::unknown_outcome:
      return "unknown_outcome";
  }
  return "internal";
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
  const auto rank = [&](ExitStatus status) { return std::find(order.begin(), order.end(), status); };
  return rank(a) < rank(b) ? b : a;
}

}  // namespace mcds
