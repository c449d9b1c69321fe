// SlidingUses holds the uses of a limit with a sliding window: one value, changed by cas, and the rule that
// allows uses.
//
//   S1 <time>:<uses> <time>:<uses> … *<checksum>      times in UNIX milliseconds, rising
//   S1 1795234133945:1 1795234134027:2 *0b2f1c9e
// A use happens between the request and the answer. It is stored at the latest time that it can have: the
// time of the request plus `slack`; an answer that comes later does not count. So if the stored times of two
// uses are a period apart, so are the uses, and no window of the period's length holds more than `max`.
// A clock that is behind the newest stored time counts as being there. If the server reports remaining ttls,
// they show how long ago the value was stored, and a client's clock is trusted only within some seconds of
// that.
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

  // Returns a twentieth of the period, at least 2 ms and at most a second.
  std::chrono::milliseconds slack() const;
  // Returns how long the value is stored, counted from its newest use.
  std::chrono::milliseconds kept() const { return period + std::chrono::seconds(2); }
};

class SlidingUses {
 public:
  SlidingUses() = default;
  // Returns nullopt for another program's value or a damaged one.
  static std::optional<SlidingUses> parse(std::string_view text);
  std::string text() const;

  struct Answer {
    bool allowed = false;
    std::uint64_t used = 0;                 // in the window, without this use
    std::chrono::milliseconds stored_at{};  // UNIX time, if allowed
    std::chrono::milliseconds retry_after{};
  };
  // Returns `now`, corrected by the server's clock; `ttl` is the remaining part of kept().
  WallTime corrected(const SlidingLimit& limit, WallTime now, std::optional<std::chrono::seconds> ttl) const;
  // Counts `cost` uses at `now` if they are allowed. Drops uses that have left the window.
  Answer ask(const SlidingLimit& limit, WallTime now, std::uint64_t cost);
  // Removes the uses that ask() counted.
  void withdraw(std::chrono::milliseconds stored_at, std::uint64_t cost);
  // Returns the time of the newest use, by the clock that was used for it.
  std::chrono::milliseconds newest() const;

 private:
  std::map<std::int64_t, std::uint64_t> uses_;  // by time
};

}  // namespace mcds
