// Durations, sizes and times as people write them (cli.md's forms), and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/clock.hpp"

namespace mcds {

// `250ms 30s 5m 1h30m 7d`; a bare number is seconds (fractions allowed: `0.5`). Never negative.
// Throws InvalidInput, naming `what` (an option or argument), for anything else or more than 100 years.
Duration parse_duration(std::string_view text, std::string_view what);

// `64k 1M 2G` (powers of 1024) or a plain number of bytes. Throws InvalidInput.
std::uint64_t parse_size(std::string_view text, std::string_view what);

// RFC 3339 with zone; `2026-11-27`, `2026-11-27 23:00` in local time; a Unix time in seconds, `@UNIX` or a
// bare number from 10^8 to 10^11; or a duration meaning 'that long before now'. Throws InvalidInput.
WallTime parse_time(std::string_view text, WallTime now, std::string_view what);

// Returns the Unix time in whole seconds, rounded down.
inline std::int64_t whole_seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

// RFC 3339 in UTC with milliseconds: 2026-11-21T04:08:53.945Z.
std::string format_time(WallTime time);

// The shortest of the forms parse_duration reads: `1m30s`, `250ms`.
std::string format_duration(Duration duration);

// A part of the whole as `30%` or `0.3`, from 0 to 1. Throws InvalidInput.
double parse_share(std::string_view text, std::string_view what);

// With this many digits after the point: `33.71`.
std::string format_fixed(double value, int decimals);
// `33.71%`.
std::string format_percent(double share);

// Whole seconds, rounded up: what memcached can be asked for.
std::int64_t ceil_seconds(Duration duration);

}  // namespace mcds
