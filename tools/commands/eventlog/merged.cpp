#include "tools/commands/eventlog/merged.hpp"

namespace mcds {

void MergedLogs::of(const std::string& log) {
  items_.insert(items_.end(), std::move_iterator(ring_.begin()), std::move_iterator(ring_.end()));
  ring_.clear();
  events_ = 0;
  log_ = log;
}

void MergedLogs::drop_ring() {
  ring_.clear();
  events_ = 0;
}

void MergedLogs::fetch(Session& session, const std::string& name, std::span<const RingShape> shapes,
                       const LogRange& range) {
  const auto keeps_less = [](const RingShape& one, const RingShape& other) {
    return one.kept() < other.kept();
  };
  const RingShape longest = *std::ranges::max_element(shapes, keeps_less);
  for (const RingShape& shape : shapes) {
    // What one ring keeps no more, another may.
    tells_expired_ = shape == longest;
    of(log_);
    LogReader(log_context(session), name, shape).fetch(range, *this);
  }
}

bool MergedLogs::event(const EventLine& event) {
  ring_.push_back(
      {log_, event.id.time(), event.id, std::string(event.data), event.base64, event.foreign, {}});
  if (++events_ > most_) forget_oldest();
  return true;
}

void MergedLogs::gap(const LogGap& gap) {
  if (gap.reason == LogGap::Reason::expired && !tells_expired_) return;
  ring_.push_back({log_, gap.from, std::nullopt, {}, false, false, gap});
}

void MergedLogs::forget_oldest() {
  while (!ring_.front().id) ring_.pop_front();
  ring_.pop_front();
  --events_;
}

std::vector<MergedLogs::Item> MergedLogs::sorted() {
  of(log_);
  std::vector<Item> items = std::exchange(items_, {});
  std::ranges::stable_sort(items, [](const Item& one, const Item& other) {
    if (one.at != other.at) return one.at < other.at;
    return one.id && other.id ? *one.id < *other.id : !one.id && other.id;
  });
  const auto same = [](const Item& one, const Item& other) {
    return one.id && one.id == other.id && one.log == other.log;
  };
  items.erase(std::unique(items.begin(), items.end(), same), items.end());
  return items;
}

void MergedLogs::print_first(std::uint64_t most) {
  const std::vector<Item> items = sorted();
  std::size_t end = 0;
  for (std::uint64_t events = 0; end < items.size(); ++end) {
    if (items[end].id && ++events > most) break;
  }
  print(std::span(items).first(end));
}

void MergedLogs::print_last(std::uint64_t most) {
  const std::vector<Item> items = sorted();
  std::size_t begin = items.size();
  for (std::uint64_t events = 0; begin > 0; --begin) {
    if (items[begin - 1].id && ++events > most) break;
  }
  print(std::span(items).subspan(begin));
}

void MergedLogs::print(std::span<const Item> items) {
  printer_.release();
  for (const Item& item : items) {
    printer_.of(item.log);
    if (item.id)
      printer_.event({*item.id, item.data, item.base64, item.foreign});
    else
      printer_.gap(item.gap);
  }
}

}  // namespace mcds
