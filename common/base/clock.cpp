#include "common/base/clock.hpp"

#include <ctime>

namespace mcds {

namespace {

Duration read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

WallTime SystemClock::wall() const {
  return WallTime(std::chrono::duration_cast<std::chrono::microseconds>(read(CLOCK_REALTIME)));
}

SteadyTime SystemClock::steady() const {
  return SteadyTime(read(CLOCK_BOOTTIME));
}

void SystemClock::sleep_for(Duration duration) {
  if (duration <= Duration::zero()) return;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  timespec left{whole.count(), (duration - whole).count()};
  while (nanosleep(&left, &left) != 0) {
  }
}

}  // namespace mcds
