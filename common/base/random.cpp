#include "common/base/random.hpp"

#include <sys/random.h>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds {

std::string Random::token() {
  return hex64(bits());
}

std::uint64_t SystemRandom::bits() {
  std::uint64_t value = 0;
  while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) throw Failure(ErrorCode::system, "the kernel provides no random numbers");
  }
  return value;
}

std::uint64_t SeededRandom::bits() {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace mcds
