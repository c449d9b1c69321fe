// Calls into libraries that may wait for as long as they like, in bounded time.
#pragma once

#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "common/base/clock.hpp"

namespace mcds {

// What `work` returns, or nullopt if it takes longer. It then goes on by itself, so it owns all that it uses.
// It does not throw.
template <typename Work>
std::optional<std::invoke_result_t<Work>> within(Duration longest, Work work) {
  std::promise<std::invoke_result_t<Work>> promise;
  auto result = promise.get_future();
  std::thread([work = std::move(work), promise = std::move(promise)]() mutable {
    promise.set_value(work());
  }).detach();
  if (result.wait_for(longest) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace mcds
