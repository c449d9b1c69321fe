// So many items a second: against the time of the beginning, so that what a wait took too long is made up
// for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/bounds.hpp"
#include "common/base/clock.hpp"

namespace mcds {

class Pace {
 public:
  // `rate`: items a second; unset: no limit.
  Pace(std::optional<std::uint64_t> rate, SteadyTime start) : rate_(rate), due_(start) {}

  // Of a batch, so that some fifty are sent in a second: at most batch_items.
  std::size_t largest_batch() const {
    return rate_ ? std::clamp<std::size_t>(*rate_ / 50, 1, batch_items) : batch_items;
  }

  // How long to wait before so many more. After a stall at most a second's worth is made up for: a burst is
  // what a rate is to prevent.
  Duration take(std::size_t count, SteadyTime now) {
    if (!rate_) return {};
    constexpr Duration most_behind = std::chrono::seconds(1);
    if (due_ < now - most_behind) due_ = now - most_behind;
    const Duration wait = due_ - now;
    due_ += std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(static_cast<double>(count) / static_cast<double>(*rate_)));
    return wait;
  }

  void wait_for(std::size_t count, Clock& clock) {
    const Duration wait = take(count, clock.steady());
    if (wait > Duration::zero()) clock.sleep_for(wait);
  }

 private:
  std::optional<std::uint64_t> rate_;
  SteadyTime due_;
};

}  // namespace mcds
