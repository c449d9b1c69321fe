#include "tools/commands/item/hot_keys.hpp"

#include <cstring>

namespace mcds {

void KeyCounts::add(KeyEvent::What what) {
  using What = KeyEvent::What;
  gets += what == What::found || what == What::missed ? 1 : 0;
  misses += what == What::missed ? 1 : 0;
  stores += what == What::stored ? 1 : 0;
  deletes += what == What::deleted ? 1 : 0;
  evictions += what == What::evicted ? 1 : 0;
}

void HotKeys::add(const KeyEvent& event, std::string_view name) {
  const auto server = static_cast<std::uint32_t>(event.server);
  id_.resize(sizeof server);
  std::memcpy(id_.data(), &server, sizeof server);
  id_ += name;
  auto found = activities_.find(std::string_view(id_));
  if (found == activities_.end()) {
    if (activities_.size() >= 2 * kept_) forget_the_least();
    found = activities_.emplace(id_, Activity{}).first;
  }
  found->second.counts.add(event.what);
  // A key that is not there has a size of 0.
  if (event.what != KeyEvent::What::missed && event.size_bytes) found->second.size_bytes = event.size_bytes;
}

void HotKeys::forget_the_least() {
  std::vector<std::uint64_t> totals;
  totals.reserve(activities_.size());
  for (const auto& [id, activity] : activities_) totals.push_back(activity.counts.events());
  const auto middle = totals.begin() + static_cast<std::ptrdiff_t>(totals.size() - kept_);
  std::nth_element(totals.begin(), middle, totals.end());
  // Of those with as many as the last that is kept, some go too.
  std::size_t surplus = activities_.size() - kept_;
  const std::uint64_t least = *middle;
  std::erase_if(activities_, [&](const auto& entry) {
    if (surplus == 0 || entry.second.counts.events() > least) return false;
    --surplus;
    return true;
  });
  uncounted_ += least;
}

std::vector<HotKey> HotKeys::hottest(KeyFigure order, std::size_t count) const {
  struct Ranked {
    std::uint64_t figure;
    const std::string* id;
    const Activity* activity;
  };
  std::vector<Ranked> ranked;
  for (const auto& [id, activity] : activities_) {
    if (const std::uint64_t own = activity.counts.of(order); own > 0) ranked.push_back({own, &id, &activity});
  }
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(count, ranked.size()));
  std::partial_sort(ranked.begin(), end, ranked.end(), [](const Ranked& one, const Ranked& other) {
    return one.figure != other.figure ? one.figure > other.figure : *one.id < *other.id;
  });
  std::vector<HotKey> keys;
  for (auto at = ranked.begin(); at != end; ++at) {
    std::uint32_t server = 0;
    std::memcpy(&server, at->id->data(), sizeof server);
    keys.push_back({at->id->substr(sizeof server), server, at->activity->counts, at->activity->size_bytes});
  }
  return keys;
}

}  // namespace mcds
