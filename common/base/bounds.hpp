// Limits for what is accepted from others, and held in memory.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace mcds
