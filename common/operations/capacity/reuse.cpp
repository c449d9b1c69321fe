#include "common/operations/capacity/reuse.hpp"

#include <algorithm>
#include <cmath>

namespace mcds {

namespace {

constexpr std::size_t bins = 800;
constexpr std::size_t first_slots = 1 << 16;

}  // namespace

ReuseDistances::ReuseDistances(double largest_bytes)
    : largest_(std::max(largest_bytes, 1.0)),
      tree_(first_slots + 1),
      began_(bins + 1),
      ended_(bins + 1),
      hits_(bins + 1) {}

std::size_t ReuseDistances::bin_of(double bytes) const {
  return std::min(bins,
                  static_cast<std::size_t>(std::max(bytes, 0.0) / largest_ * static_cast<double>(bins)));
}

void ReuseDistances::add(std::size_t slot, std::int64_t bytes) {
  all_ += static_cast<std::uint64_t>(bytes);
  for (std::size_t i = slot + 1; i < tree_.size(); i += i & (~i + 1))
    tree_[i] += static_cast<std::uint64_t>(bytes);
}

std::uint64_t ReuseDistances::up_to(std::size_t slot) const {
  std::uint64_t sum = 0;
  for (std::size_t i = slot + 1; i > 0; i -= i & (~i + 1)) sum += tree_[i];
  return sum;
}

// Returns the bytes used since the entry, including its own.
double ReuseDistances::depth_of(const Entry& entry) const {
  return static_cast<double>(all_ - up_to(entry.slot) + entry.bytes);
}

void ReuseDistances::place(Entry& entry) {
  if (next_ + 1 >= tree_.size()) pack();
  entry.slot = next_++;
  entry.gone = false;
  add(entry.slot, static_cast<std::int64_t>(entry.bytes));
}

void ReuseDistances::leave(Entry& entry) {
  if (!entry.gone) add(entry.slot, -static_cast<std::int64_t>(entry.bytes));
  entry.gone = true;
}

// Compacts the slots in use. Entries deeper than `largest_` are dropped.
void ReuseDistances::pack() {
  std::vector<std::pair<std::size_t, std::uint64_t>> order;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (!entry->second.gone && depth_of(entry->second) > largest_) {
      end_journey(entry->second, largest_, false);
      entry = entries_.erase(entry);
    } else {
      order.emplace_back(entry->second.slot, entry->first);
      ++entry;
    }
  }
  std::ranges::sort(order);
  tree_.assign(std::max(tree_.size(), 4 * order.size() + first_slots), 0);
  next_ = 0, all_ = 0;
  for (const auto& [slot, key] : order) {
    Entry& entry = entries_.at(key);
    entry.slot = next_++;
    if (!entry.gone) add(entry.slot, static_cast<std::int64_t>(entry.bytes));
  }
}

void ReuseDistances::go_on(std::int64_t now) {
  // The journeys of seeded entries are first seen at their current depth.
  if (!std::exchange(began_once_, true)) {
    for (auto& [key, entry] : entries_) entry.began_at = depth_of(entry);
  }
  while (!expiries_.empty() && expiries_.top().first <= now) {
    const auto found = entries_.find(expiries_.top().second);
    if (found != entries_.end() && found->second.expires_at == expiries_.top().first) leave(found->second);
    expiries_.pop();
  }
}

void ReuseDistances::end_journey(const Entry& entry, double depth, bool hit) {
  if (!entry.counts) return;
  const std::size_t first = bin_of(entry.began_at), last = std::max(first, bin_of(depth));
  began_[first] += 1;
  ended_[last] += 1;
  if (hit && depth <= largest_) hits_[last] += 1;
}

void ReuseDistances::seed(std::uint64_t key, std::uint64_t bytes, std::int64_t expires_at) {
  Entry entry{0, bytes, expires_at, 0, true, true};
  const auto [found, is_new] = entries_.try_emplace(key, entry);
  if (!is_new) return;
  place(found->second);
  if (expires_at != never) expiries_.emplace(expires_at, key);
}

void ReuseDistances::get(std::uint64_t key, std::uint64_t bytes, std::int64_t now) {
  ++gets_;
  go_on(now);
  const auto [found, is_new] = entries_.try_emplace(key, Entry{0, bytes, never, 0, true, true});
  Entry& entry = found->second;
  if (!is_new) {
    if (entry.gone)
      end_journey(entry, largest_ * 2, false);
    else
      end_journey(entry, depth_of(entry), true);
    leave(entry);
    if (bytes != 0) entry.bytes = bytes;
    // A deleted item comes back when it is stored, which also sets its expiry.
  }
  entry.counts = true;
  entry.began_at = 0;
  if (entry.bytes == 0) entry.bytes = entries_.size() > 1 ? all_ / entries_.size() : 1;
  place(entry);
}

void ReuseDistances::store(std::uint64_t key, std::uint64_t bytes, std::int64_t expires_at,
                           std::int64_t now) {
  go_on(now);
  const auto [found, is_new] = entries_.try_emplace(key, Entry{0, bytes, expires_at, 0, false, true});
  Entry& entry = found->second;
  if (!is_new) {
    if (!entry.gone) end_journey(entry, depth_of(entry), false);
    leave(entry);
    if (bytes != 0) entry.bytes = bytes;
  }
  entry.expires_at = expires_at;
  entry.began_at = 0;
  place(entry);
  if (expires_at != never) expiries_.emplace(expires_at, key);
}

void ReuseDistances::remove(std::uint64_t key) {
  if (const auto found = entries_.find(key); found != entries_.end()) leave(found->second);
}

void ReuseDistances::finish() {
  for (const auto& [key, entry] : entries_) {
    if (!entry.gone) end_journey(entry, depth_of(entry), false);
  }
  entries_.clear();
}

ReuseDistances::Ratio ReuseDistances::hit_ratio(double bytes) const {
  double under_way = 0, left = 1, variance = 0, low = 0, high = 0;
  const std::size_t last = bin_of(bytes);
  for (std::size_t bin = 0; bin <= last && bin < bins; ++bin) {
    under_way += began_[bin];
    // Journeys that end in this bin were seen through half of it on average.
    const double seen = under_way - (ended_[bin] - hits_[bin]) / 2;
    if (seen > 0 && hits_[bin] > 0) {
      const double part = std::min(hits_[bin] / seen, 1.0);
      left *= 1 - part;
      if (part < 1) variance += part / (seen * (1 - part));
      // A larger cache hits at least as often, so what bounds a smaller one from below bounds it too.
      const double error = 1.96 * left * std::sqrt(variance);
      low = std::max(low, 1 - left - error);
      high = std::max(high, std::min(1.0, 1 - left + error));
    }
    under_way -= ended_[bin];
  }
  return {1 - left, low, high};
}

}  // namespace mcds
