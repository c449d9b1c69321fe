// A clock whose time advances only on request.
#pragma once

#include "common/base/clock.hpp"

namespace mcds {

// The true time, shared by fake clocks and in-memory servers: the time that a perfect clock shows.
class VirtualTime {
 public:
  Duration elapsed() const { return elapsed_; }
  void advance(Duration duration) { elapsed_ += duration; }
  void advance_to(Duration elapsed) {
    if (elapsed > elapsed_) elapsed_ = elapsed;
  }
  WallTime wall() const {
    return WallTime(std::chrono::microseconds(1'795'234'133'945'000)) +
           std::chrono::duration_cast<std::chrono::microseconds>(elapsed_);
  }
  SteadyTime steady() const { return SteadyTime(std::chrono::hours(1000) + elapsed_); }

 private:
  Duration elapsed_{0};
};

// A clock for tests without interleaving. Sleeping returns at once and advances the time of all clients.
class FakeClock final : public Clock {
 public:
  WallTime wall() const override { return time_.wall() + skew_; }
  SteadyTime steady() const override { return time_.steady(); }
  void sleep_for(Duration duration) override {
    if (duration > Duration::zero()) time_.advance(duration);
  }

  void advance(Duration duration) { time_.advance(duration); }
  // Sets how far wall() is ahead of the true time.
  void set_skew(std::chrono::microseconds skew) { skew_ = skew; }
  const VirtualTime& time() const { return time_; }

 private:
  VirtualTime time_;
  std::chrono::microseconds skew_{0};
};

}  // namespace mcds
