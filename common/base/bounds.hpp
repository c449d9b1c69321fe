// Limits on input from others and on its size in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/clock.hpp"

namespace mcds {

// The latest valid time: later times are refused when stored, sent or typed. Arithmetic on valid times fits
// into 64 bits, in microseconds, and for differences also in nanoseconds.
constexpr std::int64_t latest_second = 253402300799;  // end of the year 9999
// The maximum of a ttl or of the time since an access: 100 years.
constexpr std::int64_t max_ttl_s = std::int64_t{100} * 366 * 86400;

// The limits of replies in memory: for one value, and for all replies to one batch.
constexpr std::size_t max_item_value_size = std::size_t{64} << 20;
constexpr std::size_t max_answers_size = std::size_t{128} << 20;
// The limits of a batch over many keys that is sent at once: its requests and their bytes.
constexpr std::size_t batch_items = 512;
constexpr std::size_t batch_bytes = std::size_t{1} << 20;

// A rate limit of items per second. It counts from the start, so that a late wait is made up for.
class RateLimiter {
 public:
  // `rate` is in items per second; unset: no limit.
  RateLimiter(std::optional<std::uint64_t> rate, SteadyTime start) : rate_(rate), due_(start) {}

  // Returns the batch size for about fifty batches per second: at most batch_items.
  std::size_t largest_batch() const {
    return rate_ ? std::clamp<std::size_t>(*rate_ / 50, 1, batch_items) : batch_items;
  }

  // Returns how long to wait before `count` more items. After a stall at most one second is made up for,
  // since a rate limit must prevent bursts.
  Duration take(std::size_t count, SteadyTime now) {
    if (!rate_) return {};
    constexpr Duration max_behind = std::chrono::seconds(1);
    if (due_ < now - max_behind) due_ = now - max_behind;
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
