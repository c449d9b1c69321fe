#include "tools/commands/eventlog/merged.hpp"

#include <algorithm>

namespace mcds {

void MergedLogs::fetch(Session& session, const std::string& name, std::span<const RingShape> shapes,
                       const LogRange& range) {
  const auto keeps_less = [](const RingShape& one, const RingShape& other) {
    return one.kept() < other.kept();
  };
  const RingShape longest = *std::max_element(shapes.begin(), shapes.end(), keeps_less);
  for (const RingShape& shape : shapes) {
    // What one ring keeps no more, another may.
    tells_expired_ = shape == longest;
    EventLog(session.context_with_copies(), name, shape).fetch(range, *this);
  }
}

bool MergedLogs::event(const EventLine& event) {
  items_.push_back({event.id.time(), event.id, std::string(event.data), event.base64, event.foreign, {}});
  return true;
}

void MergedLogs::gap(const LogGap& gap) {
  if (gap.reason == LogGap::Reason::expired && !tells_expired_) return;
  items_.push_back({gap.from, std::nullopt, {}, false, false, gap});
}

void MergedLogs::print(std::uint64_t most) {
  std::stable_sort(items_.begin(), items_.end(), [](const Item& one, const Item& other) {
    if (one.at != other.at) return one.at < other.at;
    return one.id && other.id ? *one.id < *other.id : !one.id && other.id;
  });
  printer_.release();
  std::optional<EventId> last;
  for (const Item& item : items_) {
    if (!item.id) {
      printer_.gap(item.gap);
      continue;
    }
    if (last == item.id) continue;
    if (most == 0) break;
    --most;
    last = item.id;
    printer_.event({*item.id, item.data, item.base64, item.foreign});
  }
  items_.clear();
}

}  // namespace mcds
