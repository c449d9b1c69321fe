// A value, or the failure there is instead: for what is told, counted or tried elsewhere, and not thrown.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/base/errors.hpp"

namespace mcds {

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

// What `work` returns, or its failure. Anything else that is thrown leaves.
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
