#include "common/placement/ring/diff.hpp"

#include <algorithm>

#include "common/placement/ring/shares.hpp"

namespace mcds {

namespace {

std::vector<std::string> addresses_of(const Pool& pool) {
  std::vector<std::string> addresses;
  for (const Server& server : pool) addresses.push_back(server.address());
  return addresses;
}

}  // namespace

RingDiff::RingDiff(const Placement& before, const Placement& after)
    : before_(before),
      after_(after),
      addresses_before_(addresses_of(before.pool())),
      addresses_after_(addresses_of(after.pool())) {
  for (const std::string& from : addresses_before_) {
    std::vector<bool>& row = same_.emplace_back();
    for (const std::string& to : addresses_after_) row.push_back(from == to);
  }
}

void RingDiff::add_copies(std::string_view key, std::uint64_t bytes, std::optional<std::size_t> found) {
  const Owners before = before_.owners_of(key), after = after_.owners_of(key);
  if (found && !before.has(*found)) return astray_.add(bytes);
  all_.add(bytes);
  const auto stays = [&](std::size_t to) {
    return std::ranges::any_of(before.list, [&](const Owner& from) { return same_[from.server][to]; });
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
  if (found && *found != from) return astray_.add(bytes);
  all_.add(bytes);
  const std::size_t to = after_.server_of(key);
  if (same_[from][to]) return;
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
  const std::vector<double> before = fair_shares(before_), after = fair_shares(after_);
  for (std::size_t i = 0; i < after.size(); ++i) growth[addresses_after_[i]] += after[i];
  for (std::size_t i = 0; i < before.size(); ++i) growth[addresses_before_[i]] -= before[i];
  double sum = 0;
  for (const auto& [address, more] : growth) sum += std::max(0.0, more);
  return sum < 1e-12 ? 0 : sum;
}

}  // namespace mcds
