#include "common/placement/ring/shares.hpp"

#include <cmath>
#include <numeric>

#include "common/placement/profiles/profile.hpp"
#include "common/placement/ring/continuum.hpp"

namespace mcds {

namespace {

// If counted shares deviate more from the arcs, the client's hash does not reach the whole circle.
constexpr double max_deviation = 0.01;

std::uint64_t largest_hash(const Continuum& ring) {
  return ring.bits() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ring.bits()) - 1;
}

// Whatever a client's search rule is, another server can begin only at a point or right after one.
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
    if (std::abs(a[i] - b[i]) > max_deviation) return true;
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

// Adds one copy for each server that must have the key; if none must, all of them share one copy. Returns the
// number of copies.
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
  std::vector<double> shares = placement.route_weights();
  if (shares.empty()) {
    for (const Server& server : placement.pool())
      shares.push_back(server.weight == 0 && zero_is_one ? 1 : server.weight);
  }
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
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

namespace {

std::vector<std::string> addresses_of(const Pool& pool) {
  std::vector<std::string> addresses;
  for (const Server& server : pool) addresses.push_back(server.address());
  return addresses;
}

}  // namespace

RingDiff::RingDiff(const Placement& before, const Placement& after, bool by_position)
    : before_(before),
      after_(after),
      addresses_before_(addresses_of(before.pool())),
      addresses_after_(addresses_of(after.pool())),
      by_position_(by_position) {}

bool RingDiff::is_same(std::size_t before, std::size_t after) const {
  return by_position_ ? before == after : addresses_before_[before] == addresses_after_[after];
}

void RingDiff::add_copies(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found) {
  const Owners before = before_.owners_of(key), after = after_.owners_of(key);
  if (found && !before.has(*found)) return misplaced_.add(bytes);
  all_.add(bytes);
  const auto stays = [&](std::size_t to) {
    return std::ranges::any_of(before.list, [&](const Owner& from) { return is_same(from.server, to); });
  };
  for (const Owner& owner : after.list) {
    if (stays(owner.server)) continue;
    moved_.add(bytes);
    pairs_[{found.value_or(before.list.front().server), owner.server}].add(bytes);
    return;
  }
}

void RingDiff::add(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found) {
  if (before_.replicates() || after_.replicates()) return add_copies(key, bytes, found);
  const std::size_t from = before_.server_of(key);
  if (found && *found != from) return misplaced_.add(bytes);
  all_.add(bytes);
  const std::size_t to = after_.server_of(key);
  if (is_same(from, to)) return;
  moved_.add(bytes);
  pairs_[{from, to}].add(bytes);
}

std::vector<RingDiff::Pair> RingDiff::pairs() const {
  std::vector<Pair> result;
  for (const auto& [servers, moved] : pairs_) {
    result.push_back({addresses_before_[servers.first], addresses_after_[servers.second], moved});
  }
  std::ranges::stable_sort(result, [](const Pair& a, const Pair& b) { return a.moved.keys > b.moved.keys; });
  return result;
}

double RingDiff::moved_share() const {
  return all_.keys == 0 ? 0 : static_cast<double>(moved_.keys) / static_cast<double>(all_.keys);
}

double RingDiff::ideal_share() const {
  std::map<std::string, double> growth;
  const auto name = [&](const std::vector<std::string>& addresses, std::size_t i) {
    return by_position_ ? std::to_string(i) : addresses[i];
  };
  const std::vector<double> before = fair_shares(before_), after = fair_shares(after_);
  for (std::size_t i = 0; i < after.size(); ++i) growth[name(addresses_after_, i)] += after[i];
  for (std::size_t i = 0; i < before.size(); ++i) growth[name(addresses_before_, i)] -= before[i];
  double sum = 0;
  for (const auto& [address, more] : growth) sum += std::max(0.0, more);
  return sum < 1e-12 ? 0 : sum;
}

}  // namespace mcds
