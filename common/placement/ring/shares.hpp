// How the keys divide over a pool's servers: exactly, by the arcs of the circle they are placed on, or by
// counting keys where the client has no circle (or its hash reaches only a part of it).
#pragma once

#include <map>
#include <utility>

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

// What a change of the pool or of the client moves: keys that the two place on different servers.

struct Moved {
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t size) {
    ++keys;
    bytes += size;
  }
};

// Servers are the same if their addresses are: a key moves when its value would have to be written again,
// even if the new server goes by the old one's name. By position, for copies of one pool, they are the same
// if their places in the two lists are.
class RingDiff {
 public:
  RingDiff(const Placement& before, const Placement& after, bool by_position = false);

  // A key and its size (0: unknown). `found`: the server (an index into the old pool) it was found on; where
  // that is not its place before the change, no client finds it there, and it is astray, neither kept nor
  // moved.
  void add(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found = std::nullopt);

  struct Pair {
    std::string from, to;
    Moved moved;
  };
  // Most keys first.
  std::vector<Pair> pairs() const;

  const Moved& all() const { return all_; }  // without those astray
  const Moved& moved() const { return moved_; }
  const Moved& astray() const { return astray_; }
  // Of all keys; 0 when there are none.
  double moved_share() const;
  // The smallest share that any placement could move to give every server what it should get by its weight,
  // from a pool where every server had that: the growth of the shares that grow.
  double ideal_share() const;

 private:
  bool is_same(std::size_t before, std::size_t after) const;
  // A key of several copies moves when one has to be written where none was.
  void add_copies(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found);

  const Placement& before_;
  const Placement& after_;
  std::vector<std::string> addresses_before_, addresses_after_;
  const bool by_position_;
  std::map<std::pair<std::size_t, std::size_t>, Moved> pairs_;
  Moved all_, moved_, astray_;
};

}  // namespace mcds
