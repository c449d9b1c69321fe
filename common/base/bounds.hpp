// The latest of all times: what is stored, sent or typed beyond it is no time. Arithmetic on what passes stays within 64
// bits, in microseconds and in nanoseconds alike where only differences are taken.
#pragma once

#include <cstdint>

namespace mcds {

constexpr std::int64_t latest_second = 253402300799;  // of the year 9999
// Of a time to live or since an access, in seconds: 100 years.
constexpr std::int64_t longest_life_s = std::int64_t{100} * 366 * 86400;

}  // namespace mcds
