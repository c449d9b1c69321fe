// Sources of random numbers. They are injected, so that a simulation can repeat a run from its seed.
#pragma once

#include <cstdint>
#include <string>

namespace mcds {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t bits() = 0;
  // Returns a number in [0, bound); bound > 0. The bias is below bound / 2^64, negligible here.
  std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
  // Returns a number in [0, 1), uniformly distributed.
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // Returns 16 lower-case hex digits, for lock tokens and operation ids.
  std::string token();
};

// The kernel's generator, because tokens must differ between machines and forks.
class SystemRandom final : public Random {
 public:
  std::uint64_t bits() override;
};

// splitmix64 (Steele, Lea, Flood 2014), for tests and simulations only.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() override;

 private:
  std::uint64_t state_;
};

}  // namespace mcds
