// Computes how keys divide over a pool's servers: exactly, by the arcs of the circle, or by counting sample
// keys if the client has no circle or its hash reaches only a part of it.
#pragma once

#include <map>
#include <utility>

#include "common/base/random.hpp"
#include "common/placement/placement.hpp"

namespace mcds {

// The hashes from first to last, both included; all belong to one server.
struct Arc {
  std::uint64_t first, last;
  std::uint32_t server;
};

// Returns the arcs of the whole circle, ascending. Neighbours belong to different servers.
std::vector<Arc> arcs_of(const Continuum& ring);
// Returns the share of the whole circle, in (0, 1].
double length_of(const Arc& arc, const Continuum& ring);

// Generates keys that stand for those of an application: PREFIXkey:<16 hex digits>, the same in every run.
class SampleKeys {
 public:
  explicit SampleKeys(std::string_view prefix) : prefix_(std::string(prefix) + "key:") {}
  std::string next() { return prefix_ + random_.token(); }

 private:
  std::string prefix_;
  SeededRandom random_{1};
};

// The number of keys for which a counted share is off by at most half a percent of all keys.
constexpr std::size_t sample_size = 100'000;

// Return one entry for each server of the pool, with the sum 1.
std::vector<double> arc_shares(const Placement& placement, const Continuum& ring);
std::vector<double> counted_shares(const Placement& placement, std::string_view key_prefix);
// Returns the shares that the weights request.
std::vector<double> fair_shares(const Placement& placement);

struct RingShares {
  bool exact;  // by arcs rather than counted keys
  std::vector<double> shares;
  std::vector<double> fair;
  std::vector<std::size_t> points;  // on the circle; empty without a circle
};

RingShares ring_shares(const Placement& placement, std::string_view key_prefix);

// Compares two placements: a key moves if they place it on different servers.

struct Moved {
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t size) {
    ++keys;
    bytes += size;
  }
};

// Compares the placements before and after a change of the pool or the client. Servers are the same if their
// addresses are, even if a new server has an old one's name, because the value of a key must be written
// again. With `by_position`, for copies of one pool, they are the same if their indexes are.
class RingDiff {
 public:
  RingDiff(const Placement& before, const Placement& after, bool by_position = false);

  // Adds a key with its size (0: unknown). `found` is the server it was found on, as an index into the old
  // pool. If that is not its place before the change, no client finds it there: it is misplaced, neither kept
  // nor moved.
  void add(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found = std::nullopt);

  struct Pair {
    std::string from, to;
    Moved moved;
  };
  // Returns the pairs, the one with the most keys first.
  std::vector<Pair> pairs() const;

  const Moved& all() const { return all_; }  // without misplaced keys
  const Moved& moved() const { return moved_; }
  const Moved& misplaced() const { return misplaced_; }
  // Returns the share of all keys, or 0 if there are none.
  double moved_share() const;
  // Returns the smallest share that any placement must move to give every server its share by weight,
  // starting from a pool where every server had its share: the sum of all increases.
  double ideal_share() const;

 private:
  bool is_same(std::size_t before, std::size_t after) const;
  // A key in several copies moves if one must be written to a server that had none.
  void add_copies(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found);

  const Placement& before_;
  const Placement& after_;
  std::vector<std::string> addresses_before_, addresses_after_;
  const bool by_position_;
  std::map<std::pair<std::size_t, std::size_t>, Moved> pairs_;
  Moved all_, moved_, misplaced_;
};

}  // namespace mcds
