// Clock: the source of time, which is injected. Nothing else in common/ reads a clock or sleeps.
#pragma once

#include <chrono>

namespace mcds {

using Duration = std::chrono::nanoseconds;
using WallTime =
    std::chrono::sys_time<std::chrono::microseconds>;  // shared with other machines; may be wrong
using SteadyTime =
    std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;  // for leases and deadlines

// Thrown by a sleep during which a signal asked the process to end.
struct Interrupted {
  int signal;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall() const = 0;
  // Also advances while the machine sleeps (CLOCK_BOOTTIME), so that no lease outlives a suspend.
  virtual SteadyTime steady() const = 0;
  // May throw Interrupted.
  virtual void sleep_for(Duration duration) = 0;
};

class SystemClock final : public Clock {
 public:
  WallTime wall() const override;
  SteadyTime steady() const override;
  void sleep_for(Duration duration) override;
};

}  // namespace mcds
