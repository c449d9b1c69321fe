// The ways in which an operation can fail. An outcome that memcached itself answers (hit, miss, stored …) is
// a value and never one of these; see common/cluster/request.hpp. Caught once, in tools/main.cpp.
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

// What the user sees, each with its exit code; tools/cli/exit_status.cpp has its word.
enum class ErrorCode {
  usage = 64,          // the command line is wrong
  bad_data = 65,       // bad input or bad stored data
  cannot_read = 66,    // a local file
  unavailable = 69,    // no usable server, or no majority; nothing was applied
  internal = 70,       // a bug of ours
  system = 71,         // fork, memory, sockets
  cannot_write = 73,   // a local file
  output_failed = 74,  // standard output
  try_again = 75,      // busy, contention, wait timed out
  refused = 76,        // the server refused or sent an invalid reply
  access_denied = 77,  // the server requires a login or rejects it, or its certificate cannot be verified
  configuration = 78,
  lock_lost = 79,
  unknown_outcome = 80,  // it was sent, no reply came; it may have been applied
};

// Whether the servers may do later what they did not do now.
inline bool may_pass(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::refused || code == ErrorCode::try_again ||
         code == ErrorCode::unknown_outcome;
}

// The base of everything thrown on purpose. `what()` is one line that says what to do next.
class Failure : public std::runtime_error {
 public:
  Failure(ErrorCode code, const std::string& message, std::string server = {})
      : std::runtime_error(message), code_(code), server_(std::move(server)) {}
  ErrorCode code() const { return code_; }
  // The address of the server concerned, or empty.
  const std::string& server() const { return server_; }

 private:
  ErrorCode code_;
  std::string server_;
};

// The request had no effect: it was never sent (unavailable, access_denied) or the server refused it
// (refused, access_denied).
class NotApplied : public Failure {
 public:
  using Failure::Failure;
};

// The request went out and no valid reply came: it may have been applied, now or later.
class UnknownOutcome : public Failure {
 public:
  explicit UnknownOutcome(const std::string& message, std::string server = {})
      : Failure(ErrorCode::unknown_outcome, message, std::move(server)) {}
};

// Stored bytes that are not ours to decode: another program's value, another version, truncation.
class CorruptData : public Failure {
 public:
  explicit CorruptData(const std::string& message, std::string server = {})
      : Failure(ErrorCode::bad_data, message, std::move(server)) {}
};

// Refused before anything was sent: names, numbers, durations out of range.
class InvalidInput : public Failure {
 public:
  explicit InvalidInput(const std::string& message) : Failure(ErrorCode::usage, message) {}
};

// What the system refused, and why it says it did.
inline Failure refused_by_system(ErrorCode code, const std::string& what, int error = errno) {
  return {code, what + ": " + std::strerror(error)};
}

// What a file or the environment says cannot be used.
inline Failure bad_configuration(const std::string& why) {
  return {ErrorCode::configuration, why};
}

// Bounded attempts against rivals were used up; nothing of ours was applied.
class Contention : public Failure {
 public:
  explicit Contention(const std::string& message, std::string server = {})
      : Failure(ErrorCode::try_again, message, std::move(server)) {}
};

// Checks in every build a rule on which protocol code relies: if it does not hold, the command ends with 70,
// a bug of ours, before anything is done that rests on it. Elsewhere assert() is enough.
inline void rely_on(bool holds, const char* rule) {
  if (!holds) [[unlikely]]
    throw std::logic_error(std::string("this was relied upon and is not so: ") + rule);
}

// A value, or the failure there is instead: for what is told, counted or tried elsewhere, and not thrown.

// Throws a failure that was kept. What was kept has lost its class, but not its code, which says which one it
// was.
[[noreturn]] void raise(const Failure& failure);

template <typename T>
class [[nodiscard]] Result {
 public:
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  Result() requires std::is_void_v<T> : value_(Value()) {}
  Result(Value value) : value_(std::move(value)) {}
  Result(Failure failure) : failure_(std::move(failure)) {}

  const std::optional<Failure>& failure() const { return failure_; }
  // Throws the failure.
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

// Returns what `work` returns, or its failure. Anything else that is thrown passes through.
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
