// Durations, sizes and times in their written forms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/clock.hpp"

namespace mcds {

// Parses `250ms 30s 5m 1h30m 7d`; a bare number is in seconds, with fractions (`0.5`). Throws InvalidInput,
// which names `what` (an option or argument), for anything else, negative values, and more than 100 years.
Duration parse_duration(std::string_view text, std::string_view what);

// Parses `64k 1M 2G` (powers of 1024) or a number of bytes. Throws InvalidInput.
std::uint64_t parse_size(std::string_view text, std::string_view what);

// Parses RFC 3339 with a zone; `2026-11-27` or `2026-11-27 23:00` in local time; a UNIX time in seconds,
// `@UNIX` or a bare number from 10^8 to 10^11; or a duration before now. Throws InvalidInput.
WallTime parse_time(std::string_view text, WallTime now, std::string_view what);

// Returns the UNIX time in whole seconds, rounded down.
inline std::int64_t whole_seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

// Returns RFC 3339 in UTC with milliseconds: 2026-11-21T04:08:53.945Z.
std::string format_time(WallTime time);

// Returns the shortest form that parse_duration reads: `1m30s`, `250ms`.
std::string format_duration(Duration duration);

// Parses a share such as `30%` or `0.3`, from 0 to 1. Throws InvalidInput.
double parse_share(std::string_view text, std::string_view what);

// Returns the value with this many decimals, such as `33.71`.
std::string format_fixed(double value, int decimals);
// Returns a share such as `33.71%`.
std::string format_percent(double share);

// Returns the duration in seconds, rounded up, because memcached accepts only whole seconds.
std::int64_t ceil_seconds(Duration duration);

}  // namespace mcds
