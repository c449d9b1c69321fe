#include "common/placement/ring/shares.hpp"

#include <algorithm>
#include <cmath>

#include "common/placement/profiles/profile.hpp"
#include "common/placement/ring/continuum.hpp"

namespace mcds {

namespace {

// Counted shares lie this close to the arcs, or the client's hash does not reach the whole circle.
constexpr double largest_deviation = 0.01;

std::uint64_t largest_hash(const Continuum& ring) {
  return ring.bits() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ring.bits()) - 1;
}

// However a client searches, another server can begin only at a point or right behind one.
std::vector<std::uint64_t> possible_borders(const Continuum& ring) {
  std::vector<std::uint64_t> borders{0};
  for (const Point& point : ring.points()) {
    borders.push_back(point.value);
    if (point.value < largest_hash(ring)) borders.push_back(point.value + 1);
  }
  std::ranges::sort(borders);
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

bool deviates(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > largest_deviation) return true;
  }
  return false;
}

std::vector<std::size_t> points_per_server(const Continuum& ring, std::size_t servers) {
  std::vector<std::size_t> counts(servers);
  for (const Point& point : ring.points()) ++counts[point.server];
  return counts;
}

}  // namespace

std::vector<Arc> arcs_of(const Continuum& ring) {
  std::vector<Arc> arcs;
  for (const std::uint64_t border : possible_borders(ring)) {
    const std::uint32_t server = ring.server_of(border);
    if (!arcs.empty() && arcs.back().server == server) continue;
    if (!arcs.empty()) arcs.back().last = border - 1;
    arcs.push_back({border, largest_hash(ring), server});
  }
  return arcs;
}

double length_of(const Arc& arc, const Continuum& ring) {
  return (static_cast<double>(arc.last - arc.first) + 1) / (static_cast<double>(largest_hash(ring)) + 1);
}

std::vector<double> arc_shares(const Placement& placement, const Continuum& ring) {
  std::vector<double> shares(placement.pool().size());
  for (const Arc& arc : arcs_of(ring)) shares[arc.server] += length_of(arc, ring);
  return shares;
}

// A copy for each server that must have the key; where none must, they share one. How many there are.
double add_copies(const Placement& placement, std::string_view key, std::vector<double>& copies) {
  if (!placement.replicates()) {
    copies[placement.server_of(key)] += 1;
    return 1;
  }
  const Owners owners = placement.owners_of(key);
  const auto must = static_cast<double>(std::ranges::count_if(owners.list, &Owner::must));
  for (const Owner& owner : owners.list) {
    if (must == 0) copies[owner.server] += 1 / static_cast<double>(owners.list.size());
    if (owner.must) copies[owner.server] += 1;
  }
  return must == 0 ? 1 : must;
}

std::vector<double> counted_shares(const Placement& placement, std::string_view key_prefix) {
  std::vector<double> copies(placement.pool().size());
  SampleKeys keys(key_prefix);
  constexpr std::size_t at_once = 1000;
  double all = 0;
  for (std::size_t i = 0; i < sample_size; i += at_once) {
    std::vector<std::string> some;
    while (some.size() < at_once) some.push_back(keys.next());
    placement.expect(some);
    for (const std::string& key : some) all += add_copies(placement, key, copies);
  }
  for (double& share : copies) share /= all;
  return copies;
}

std::vector<double> fair_shares(const Placement& placement) {
  const bool zero_is_one = profile_named(placement.profile()).rule.zero_weight_is_one;
  std::vector<double> shares;
  double total = 0;
  for (const Server& server : placement.pool()) {
    shares.push_back(server.weight == 0 && zero_is_one ? 1 : server.weight);
    total += shares.back();
  }
  for (double& share : shares) share = total == 0 ? 1.0 / static_cast<double>(shares.size()) : share / total;
  return shares;
}

RingShares ring_shares(const Placement& placement, std::string_view key_prefix) {
  const std::vector<double> counted = counted_shares(placement, key_prefix);
  RingShares result{false, counted, fair_shares(placement), {}};
  const Continuum* ring = placement.continuum();
  if (ring == nullptr) return result;
  result.points = points_per_server(*ring, placement.pool().size());
  const std::vector<double> arcs = arc_shares(placement, *ring);
  result.exact = !deviates(arcs, counted);
  if (result.exact) result.shares = arcs;
  return result;
}

}  // namespace mcds
