#include "tools/commands/item/selection.hpp"

namespace mcds {

std::int64_t FirstKeys::rank_of(const LiveKey& about) const {
  switch (order_) {
    case Order::size:
      return -static_cast<std::int64_t>(about.size_bytes);
    case Order::idle:
      return about.last_accessed_at;
    case Order::ttl:
      break;
  }
  return about.expires_at < 0 ? INT64_MAX : about.expires_at;
}

void FirstKeys::add(std::string_view key, const LiveKey& about) {
  if (most_ == 0) return;
  const std::int64_t rank = rank_of(about);
  if (heap_.size() == most_) {
    if (rank >= heap_.front().rank) return;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
  heap_.push_back({rank, {std::string(key), about}});
  std::push_heap(heap_.begin(), heap_.end());
}

std::vector<ListedKey> FirstKeys::take() {
  std::sort_heap(heap_.begin(), heap_.end());
  std::vector<ListedKey> keys;
  for (Ranked& ranked : heap_) keys.push_back(std::move(ranked.key));
  heap_.clear();
  return keys;
}

void PrefixSums::add(std::string_view key, std::uint64_t bytes) {
  const std::size_t end = key.find(separator_);
  const std::string_view prefix =
      end == std::string_view::npos ? std::string_view() : key.substr(0, end + separator_.size());
  auto found = sums_.find(prefix);
  if (found == sums_.end()) found = sums_.emplace(std::string(prefix), Sum{std::string(prefix)}).first;
  ++found->second.keys;
  found->second.bytes += bytes;
}

std::vector<PrefixSums::Sum> PrefixSums::take() const {
  std::vector<Sum> sums;
  for (const auto& [prefix, sum] : sums_) sums.push_back(sum);
  std::stable_sort(sums.begin(), sums.end(),
                   [](const Sum& one, const Sum& other) { return one.bytes > other.bytes; });
  return sums;
}

}  // namespace mcds
