// Clients that give the number of copies that the last refusal named, as people do who read the message.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"

namespace mcds::test {

// The number that it names, if it is such a refusal.
inline std::optional<std::size_t> told_copies(const Failure& failure) {
  constexpr std::string_view told = "is kept in ";
  const std::string_view words = failure.what();
  const std::size_t at = words.find(told);
  if (failure.code() != ErrorCode::bad_data || at == std::string_view::npos) return std::nullopt;
  return static_cast<std::size_t>(words[at + told.size()] - '0');
}

// Runs `act` until it is not refused any more; `context` has the number. What it fails with otherwise is
// thrown.
inline void follow_refusals(Context& context, const std::function<void()>& act, int most = 20) {
  for (int attempt = 0;; ++attempt) {
    try {
      return act();
    } catch (const Failure& failure) {
      const auto told = told_copies(failure);
      if (!told || attempt == most) throw;
      context.copies = *told;
    }
  }
}

}  // namespace mcds::test
