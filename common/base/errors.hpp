// Failure and its subclasses: the ways in which an operation can fail. tools/main.cpp catches those that end
// a command. Outcomes that memcached reports (hit, miss, …) are values; see common/cluster/request.hpp.
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace mcds {

// The class of an error, with its exit code; tools/cli/exit_status.cpp has the words.
enum class ErrorCode {
  usage = 64,          // the command line is wrong
  bad_data = 65,       // bad input or bad stored data
  cannot_read = 66,    // a local file
  unavailable = 69,    // no usable server or no majority; nothing was applied
  internal = 70,       // a bug of this program
  system = 71,         // fork, memory, sockets
  cannot_write = 73,   // a local file
  output_failed = 74,  // standard output
  try_again = 75,      // busy, contention, wait timed out
  refused = 76,        // the server refused or sent an invalid reply
  access_denied = 77,  // a login is required or was rejected, or the certificate cannot be verified
  configuration = 78,
  lock_lost = 79,
  unknown_outcome = 80,  // sent without a reply; it may have been applied
};

// Returns true if the error may be temporary, so that servers may succeed later.
inline bool may_pass(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::refused || code == ErrorCode::try_again ||
         code == ErrorCode::unknown_outcome;
}

// Base class of everything that is thrown on purpose. what() is one line that says what to do next.
class Failure : public std::runtime_error {
 public:
  Failure(ErrorCode code, const std::string& message, std::string server = {})
      : std::runtime_error(message), code_(code), server_(std::move(server)) {}
  ErrorCode code() const { return code_; }
  // Returns the address of the server concerned, or an empty string.
  const std::string& server() const { return server_; }

 private:
  ErrorCode code_;
  std::string server_;
};

// The request had no effect: not sent (unavailable, access_denied) or refused (refused, access_denied).
class NotApplied : public Failure {
 public:
  using Failure::Failure;
};

// A failure that always has the same code.
template <ErrorCode fixed>
class FailureOf : public Failure {
 public:
  explicit FailureOf(const std::string& message, std::string server = {})
      : Failure(fixed, message, std::move(server)) {}
};
// The request was sent without a valid reply: it may have been applied, now or later.
using UnknownOutcome = FailureOf<ErrorCode::unknown_outcome>;
// Stored bytes that cannot be decoded: another program's value, another version, or truncated.
using CorruptData = FailureOf<ErrorCode::bad_data>;
// Refused before anything was sent: names, numbers or durations out of range.
using InvalidInput = FailureOf<ErrorCode::usage>;
// The retries after conflicts with concurrent writers were used up; nothing of ours was applied.
using Contention = FailureOf<ErrorCode::try_again>;

// Returns a failure of the operating system, with the text of `error`.
inline Failure refused_by_system(ErrorCode code, const std::string& what, int error = errno) {
  return {code, what + ": " + std::strerror(error)};
}

// Returns a failure for an unusable file or environment variable.
inline Failure bad_configuration(const std::string& why) {
  return {ErrorCode::configuration, why};
}

// Checks, in every build, a rule on which protocol code depends. If it does not hold, the command exits with
// 70, a bug, before it does anything that depends on the rule. Elsewhere assert() is enough.
inline void require(bool holds, const char* rule) {
  if (!holds) [[unlikely]]
    throw std::logic_error(rule);
}

// Result: a value or the failure instead, for code that reports, counts or retries failures.

// Throws a stored failure as the exception class that its code stands for.
[[noreturn]] void raise(const Failure& failure);

template <typename T>
class [[nodiscard]] Result {
 public:
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  Result() requires std::is_void_v<T> : value_(Value()) {}
  Result(Value value) : value_(std::move(value)) {}
  Result(Failure failure) : failure_(std::move(failure)) {}

  const std::optional<Failure>& failure() const { return failure_; }
  // Returns the value, or throws the failure.
  Value& value() {
    if (failure_) raise(*failure_);
    return *value_;
  }
  const Value& value() const {
    if (failure_) raise(*failure_);
    return *value_;
  }

 private:
  std::optional<Value> value_;
  std::optional<Failure> failure_;
};

// Returns the result of `work`, or its Failure. Other exceptions pass through.
template <typename Work>
auto attempt(const Work& work) -> Result<std::invoke_result_t<const Work&>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<const Work&>>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const Failure& failure) {
    return Failure(failure);
  }
}

}  // namespace mcds
