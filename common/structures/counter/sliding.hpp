// The uses of a limit by sliding window: one value, changed by cas, and the rule that allows.
//
//   S1 <time>:<uses> <time>:<uses> … *<checksum>      times in UNIX milliseconds, rising
//   S1 1795234133945:1 1795234134027:2 *0b2f1c9e
// A use lies between the moment when it was asked for and the moment when the answer came. It is stored at
// the latest time that it can have: the asking plus `slack`, and an answer that comes later than that does
// not count. So of two uses whose stored times are a period apart, the uses themselves are: no window of the
// period's length holds more than `max`.
// A clock that is behind the newest time stored counts as being there. Where the server reports remaining
// ttls, its clock says how long ago the value was stored: a client's clock is trusted only within some
// seconds of that.
// Above 1000 uses times are rounded up to a thousandth of the period, so that the value stays small.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.hpp"

namespace mcds {

struct SlidingLimit {
  std::uint64_t max = 1;
  std::chrono::milliseconds period{1};

  // A twentieth of the period, at least 2 ms and at most a second.
  std::chrono::milliseconds slack() const;
  // For which the value is stored, counted from the newest use in it.
  std::chrono::milliseconds kept() const { return period + std::chrono::seconds(2); }
};

class SlidingUses {
 public:
  SlidingUses() = default;
  // nullopt: another program's value, or damaged.
  static std::optional<SlidingUses> parse(std::string_view text);
  std::string text() const;

  struct Answer {
    bool allowed = false;
    std::uint64_t used = 0;                 // in the window, without this one
    std::chrono::milliseconds stored_at{};  // UNIX time, if allowed
    std::chrono::milliseconds retry_after{};
  };
  // `now`, corrected by the server's clock: `ttl` is what is left of kept().
  WallTime corrected(const SlidingLimit& limit, WallTime now, std::optional<std::chrono::seconds> ttl) const;
  // Asked at `now`. Counts `cost` uses if they are allowed; forgets what has left the window.
  Answer ask(const SlidingLimit& limit, WallTime now, std::uint64_t cost);
  // Takes back what ask() counted.
  void withdraw(std::chrono::milliseconds stored_at, std::uint64_t cost);
  // Until when it is to be kept, by the clock that was asked.
  std::chrono::milliseconds newest() const;

 private:
  std::map<std::int64_t, std::uint64_t> uses_;  // time → how many
};

}  // namespace mcds
