// Returns a counter's answers one at a time, and throws the failure that a batch would store in an answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/structures/counter/counter.hpp"

namespace mcds::test {

inline std::optional<std::uint64_t> value_of(const CounterAnswer& answer) {
  if (answer.failure) raise(*answer.failure);
  return answer.done ? std::optional(answer.value) : std::nullopt;
}

inline CounterAnswer reading_of(const Context& context, const std::string& name) {
  return Counter(context).get(std::vector<std::string>{name}).front();
}

inline LimitResult limited(Counter counter, const std::string& name, std::uint64_t max, Duration period,
                           std::uint64_t cost = 1) {
  const LimitUse use{name, cost};
  const LimitRule rule{.max = max, .period = period};
  counter.check_limit(use, rule);
  LimitResult result = counter.limit(std::span(&use, 1), rule).front();
  if (result.failure) raise(*result.failure);
  return result;
}

}  // namespace mcds::test
