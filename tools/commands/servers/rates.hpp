// What happened at a server between two looks at its statistics.
#pragma once

#include <array>

#include "tools/commands/commands.hpp"

namespace mcds {

// The figures of one look; unset: the server does not report it.
struct Sample {
  // The second half counts up from the server's start, the first is as it is now.
  enum Figure : std::uint8_t {
    items,
    used_bytes,
    limit_bytes,
    connections,
    max_connections,
    gets,
    hits,
    sets,
    evictions,
    expired_unfetched,
    received_bytes,
    sent_bytes,
    listen_disabled,
    out_of_memory,
    figures
  };
  static constexpr Figure first_count = gets;

  SteadyTime at{};
  std::uint64_t process = 0;  // its pid, and 0 if it does not say
  std::uint64_t uptime_s = 0;
  std::array<std::optional<std::uint64_t>, figures> values{};

  // Of the texts of `stats` and `stats items`.
  static Sample of(SteadyTime at, std::string_view stats, std::string_view items);
};

class Rates {
 public:
  Rates() = default;
  // A server that was restarted between the two has no rates.
  Rates(const Sample& before, const Sample& now);

  bool restarted() const { return restarted_; }
  // Of a whole pool: the sums of those that report a figure.
  void add(const Rates& other);
  // The fields of `servers --every`; what is not known is left out.
  void describe(JsonObject& line) const;

 private:
  bool restarted_ = false;
  std::array<std::optional<std::uint64_t>, Sample::first_count> now_{};
  std::array<std::optional<double>, Sample::figures> per_s_{};        // of what counts up
  std::array<std::optional<std::uint64_t>, Sample::figures> more_{};  // the same in all
};

}  // namespace mcds
