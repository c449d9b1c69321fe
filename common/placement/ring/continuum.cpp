#include "common/placement/ring/continuum.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace mcds {

namespace {

void sort_points(std::vector<Point>& points, Ties ties) {
  if (ties == Ties::last_added) std::ranges::reverse(points);
  std::ranges::stable_sort(points, [&](const Point& a, const Point& b) {
    if (a.value != b.value || ties == Ties::last_added) return a.value < b.value;
    return a.server < b.server;
  });
  points.erase(std::ranges::unique(points, {}, &Point::value).begin(), points.end());
}

}  // namespace

Continuum::Continuum(std::vector<Point> points, Search search, Ties ties, unsigned bits)
    : points_(std::move(points)), bits_(bits), search_(search) {
  assert(!points_.empty() && bits >= 32);
  sort_points(points_, ties);
  const auto index_bits = static_cast<unsigned>(std::bit_width(points_.size()));
  shift_ = bits_ - std::min(index_bits, 24U);
  starts_.resize((std::size_t{1} << (bits_ - shift_)) + 1);
  for (std::size_t bucket = 0, at = 0; bucket < starts_.size(); ++bucket) {
    while (at < points_.size() && (points_[at].value >> shift_) < bucket) ++at;
    starts_[bucket] = static_cast<std::uint32_t>(at);
  }
}

std::size_t Continuum::first_at_or_after(std::uint64_t value) const {
  std::size_t at = starts_[value >> shift_];
  while (at < points_.size() && points_[at].value < value) ++at;
  return at;
}

std::size_t Continuum::find(std::uint64_t hash) const {
  const std::size_t size = points_.size();
  const std::size_t at = first_at_or_after(hash);
  const bool exact = at < size && points_[at].value == hash;
  switch (search_) {
    case Search::at_or_after: return at == size ? 0 : at;
    case Search::after: return at + exact >= size ? 0 : at + exact;
    case Search::second_after: return (at + exact + 1) % size;
    case Search::at_or_before:
      if (exact) return at;
      return at == 0 ? size - 1 : at - 1;
    case Search::enyim:
      if (exact) return at;
      if (at == 0) return size - 1;
      return at == size ? 0 : at;
  }
  return 0;
}

}  // namespace mcds
