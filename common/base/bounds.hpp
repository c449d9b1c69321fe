// Limits for what is accepted from others, and held in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/clock.hpp"

namespace mcds {

// The latest valid time: anything stored, sent or typed beyond it is refused. Arithmetic on what passes stays
// within 64 bits, in microseconds and in nanoseconds alike where only differences are taken.
constexpr std::int64_t latest_second = 253402300799;  // of the year 9999
// Of a time to live or since an access, in seconds: 100 years.
constexpr std::int64_t longest_life_s = std::int64_t{100} * 366 * 86400;

// How much of the servers' answers is held at a time: of one value, and of all answers to one batch.
constexpr std::size_t largest_value = std::size_t{64} << 20;
constexpr std::size_t largest_answers = std::size_t{128} << 20;
// Of a batch over many keys, that is sent at once: its requests and their bytes.
constexpr std::size_t batch_items = 512;
constexpr std::size_t batch_bytes = std::size_t{1} << 20;

// So many items a second: against the time of the beginning, so that what a wait took too long is made up
// for.
class Pace {
 public:
  // `rate`: items a second; unset: no limit.
  Pace(std::optional<std::uint64_t> rate, SteadyTime start) : rate_(rate), due_(start) {}

  // Returns the size of a batch with which some fifty are sent in a second: at most batch_items.
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
