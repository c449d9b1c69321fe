// Makes clients retry with the copy count that the last refusal named, as people do who read the message.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"

namespace mcds::test {

// Returns the copy count that the failure names, if it is such a refusal.
inline std::optional<std::size_t> told_copies(const Failure& failure) {
  constexpr std::string_view reported = "; use --copies ";
  const std::string_view words = failure.what();
  const std::size_t at = words.find(reported);
  if (failure.code() != ErrorCode::bad_data || at == std::string_view::npos) return std::nullopt;
  return static_cast<std::size_t>(words[at + reported.size()] - '0');
}

// Runs `act` until it is not refused any more. `context` then has the copy count. Rethrows any other failure.
inline void follow_refusals(Context& context, const std::function<void()>& act, int most = 20) {
  for (int attempt = 0;; ++attempt) {
    try {
      return act();
    } catch (const Failure& failure) {
      const auto reported = told_copies(failure);
      if (!reported || attempt == most) throw;
      context.copies = *reported;
    }
  }
}

}  // namespace mcds::test
