// Events of several rings in the order of their ids: of one log whose writers use different shapes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/structures/eventlog/eventlog.hpp"
#include "tools/commands/eventlog/options.hpp"

namespace mcds {

// Keeps all that a read finds, until it is printed.
class MergedLogs final : public LogSink {
 public:
  explicit MergedLogs(EventPrinter& printer) : printer_(printer) {}

  // What these rings of the log have within the range.
  void fetch(Session& session, const std::string& name, std::span<const RingShape> shapes,
             const LogRange& range);
  // The oldest `most` events, and the gaps before them. Equal ids once.
  void print(std::uint64_t most);

  bool event(const EventLine& event) override;
  void gap(const LogGap& gap) override;
  void damaged(const CorruptData& damage) override { printer_.damaged(damage); }

 private:
  struct Item {
    WallTime at;
    std::optional<EventId> id;  // else a gap
    std::string data;
    bool base64 = false, foreign = false;
    LogGap gap{};
  };

  EventPrinter& printer_;
  std::vector<Item> items_;
  bool tells_expired_ = true;
};

}  // namespace mcds
