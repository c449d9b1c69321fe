#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "common/structures/eventlog/eventlog.hpp"

namespace mcds {

// Collects what a read of an event log finds.
class CollectingSink final : public LogSink {
 public:
  struct Event {
    EventId id;
    std::string text;
  };

  bool event(const EventLine& event) override {
    events.push_back({event.id, event.bytes()});
    return true;
  }
  void gap(const LogGap& gap) override { gaps.push_back(gap); }
  void damaged(const CorruptData& damage) override { damages.emplace_back(damage.what()); }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const Event& event : events) texts.push_back(event.text);
    return texts;
  }
  bool has(const EventId& id) const {
    return std::any_of(events.begin(), events.end(), [&](const Event& event) { return event.id == id; });
  }

  std::vector<Event> events;
  std::vector<LogGap> gaps;
  std::vector<std::string> damages;
};

}  // namespace mcds
