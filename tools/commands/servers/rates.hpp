// What happened at a server between two looks at its statistics.
#pragma once

#include <array>

#include "tools/commands/commands.hpp"

namespace mcds {

// The figures of one look; unset: the server does not report it.
struct Sample {
  static constexpr std::size_t figures = 14;  // those of the table in rates.cpp

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
  struct Figure {
    std::optional<std::uint64_t> now, more;  // more: than at the first look
    std::optional<double> per_s;
  };
  bool restarted_ = false;
  std::array<Figure, Sample::figures> figures_{};
};

}  // namespace mcds
