// Computes rates at a server from two readings of its statistics.
#pragma once

#include <array>

#include "tools/commands/commands.hpp"

namespace mcds {

// The values of one reading. A value is unset if the server does not report it.
struct Sample {
  static constexpr std::size_t metrics = 14;  // rows of the table in rates.cpp

  SteadyTime at{};
  std::optional<ServerStart> start;
  std::array<std::optional<std::uint64_t>, metrics> values{};

  // Parses the texts of `stats` and `stats items`.
  static Sample of(SteadyTime at, std::string_view stats, std::string_view items);
};

class Rates {
 public:
  Rates() = default;
  // Computes the rates between two readings. A server that was restarted in between has no rates, and neither
  // has one of which a count of `stats` fell, as by `stats reset`: the others may have started again, too.
  Rates(const Sample& before, const Sample& now);

  bool restarted() const { return restarted_; }
  // Adds another server's rates: each value of a pool is the sum over the servers that report it.
  void add(const Rates& other);
  // Adds the fields of `servers --every`. Unknown values are left out.
  void describe(JsonObject& line) const;

 private:
  struct Metric {
    std::optional<std::uint64_t> now, more;  // more: the increase since the first reading
    std::optional<double> per_s;
    std::uint64_t of = 0;  // the increase that `more` is a share of
  };
  bool restarted_ = false;
  std::array<Metric, Sample::metrics> metrics_{};
};

}  // namespace mcds
