// Continuum: the consistent-hash circle: points of servers, sorted by value, and clients' search rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mcds {

struct Point {
  std::uint64_t value;
  std::uint32_t server;  // an index into the pool
};

// The rule for the point that a hash belongs to.
enum class Search {
  at_or_after,   // the first point >= hash, or the first of all
  after,         // the first point > hash, or the first of all
  at_or_before,  // the last point <= hash, or the last of all
  second_after,  // the point after that of `after`
  enyim,         // same as at_or_after, but a hash below the first point belongs to the last
};

// The point that stays if several have the same value.
enum class Ties { first_server, last_added };

class Continuum {
 public:
  // `points` are in the order in which the client adds them, at least one. `bits` is the width of their
  // values and of the hashes.
  Continuum(std::vector<Point> points, Search search, Ties ties, unsigned bits);

  // Returns a position in points().
  std::size_t find(std::uint64_t hash) const;
  std::uint32_t server_of(std::uint64_t hash) const { return points_[find(hash)].server; }
  const std::vector<Point>& points() const { return points_; }
  unsigned bits() const { return bits_; }

 private:
  std::size_t first_at_or_after(std::uint64_t value) const;

  std::vector<Point> points_;
  // For each value of a hash's top bits, the first position that can belong to it: searches start there.
  std::vector<std::uint32_t> starts_;
  unsigned shift_ = 0;
  unsigned bits_;
  Search search_;
};

}  // namespace mcds
