// How the keys divide over a pool's servers: exactly, by the arcs of the circle they are placed on, or by
// counting keys where the client has no circle (or its hash reaches only a part of it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.hpp"
#include "common/placement/placement.hpp"

namespace mcds {

// The hashes first…last, both included: all on one server.
struct Arc {
  std::uint64_t first, last;
  std::uint32_t server;
};

// In ascending order, neighbours on different servers, together the whole circle.
std::vector<Arc> arcs_of(const Continuum& ring);
// Of the whole circle: in (0, 1].
double length_of(const Arc& arc, const Continuum& ring);

// Keys that stand for those an application would have: PREFIXkey:<16 hex digits>. The same ones in every run.
class SampleKeys {
 public:
  explicit SampleKeys(std::string_view prefix) : prefix_(std::string(prefix) + "key:") {}
  std::string next() { return prefix_ + random_.token(); }

 private:
  std::string prefix_;
  SeededRandom random_{1};
};

// So many that a counted share is off by no more than half a percent of all keys.
constexpr std::size_t sample_size = 100'000;

// All of the following: one entry per server of the pool, the sum 1.
std::vector<double> arc_shares(const Placement& placement, const Continuum& ring);
std::vector<double> counted_shares(const Placement& placement, std::string_view key_prefix);
// What the weights ask for.
std::vector<double> fair_shares(const Placement& placement);

struct RingShares {
  bool exact;  // arcs, not counted keys
  std::vector<double> shares;
  std::vector<double> fair;
  std::vector<std::size_t> points;  // on the circle; empty without a circle
};

RingShares ring_shares(const Placement& placement, std::string_view key_prefix);

}  // namespace mcds
