// The consistent-hash circle: points sorted by value, each belonging to a server, and the ways clients search
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mcds {

struct Point {
  std::uint64_t value;
  std::uint32_t server;  // an index into the pool
};

// Which point a hash belongs to.
enum class Search {
  at_or_after,   // the first point >= hash, else the first of all
  after,         // the first point > hash, else the first of all
  at_or_before,  // the last point <= hash, else the last of all
  second_after,  // the one behind that of `after`
  enyim,         // as at_or_after, but below the first point it is the last
};

// Of points of equal value: which stays.
enum class Ties { first_server, last_added };

class Continuum {
 public:
  // `points` in the order the client adds them; at least one. `bits`: how wide their values and the hashes
  // are.
  Continuum(std::vector<Point> points, Search search, Ties ties, unsigned bits);

  // A position in points().
  std::size_t find(std::uint64_t hash) const;
  std::uint32_t server_of(std::uint64_t hash) const { return points_[find(hash)].server; }
  const std::vector<Point>& points() const { return points_; }
  unsigned bits() const { return bits_; }
  Search search() const { return search_; }

 private:
  std::size_t first_at_or_after(std::uint64_t value) const;

  std::vector<Point> points_;
  // For each value of a hash's top bits, the first position that can belong to it: lookups start there.
  std::vector<std::uint32_t> starts_;
  unsigned shift_ = 0;
  unsigned bits_;
  Search search_;
};

}  // namespace mcds
