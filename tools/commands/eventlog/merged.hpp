// Events of several rings in the order of their times: of one log whose writers use different shapes, or of
// several logs.
#pragma once

#include <deque>

#include "tools/commands/eventlog/options.hpp"

namespace mcds {

// Keeps what reads find, until it is printed: with `most`, the last so many events of each ring.
class MergedLogs final : public LogSink {
 public:
  explicit MergedLogs(EventPrinter& printer, std::uint64_t most = UINT64_MAX)
      : printer_(printer), most_(most) {}

  // What comes from now on is of this log.
  void of(const std::string& log);
  // Forgets what came since of(): the ring is read again.
  void drop_ring();

  // What these rings of the log have within the range.
  void fetch(Session& session, const std::string& name, std::span<const RingShape> shapes,
             const LogRange& range);
  // The oldest `most` events, and the gaps before them. The same event of two rings once.
  void print_first(std::uint64_t most);
  // The newest `most` events, and the gaps between and behind them.
  void print_last(std::uint64_t most);

  bool event(const EventLine& event) override;
  void gap(const LogGap& gap) override;
  void damaged(const CorruptData& damage) override { printer_.damaged(damage); }

 private:
  struct Item {
    std::string log;
    WallTime at;
    std::optional<EventId> id;  // else a gap
    std::string data;
    bool base64 = false, foreign = false;
    LogGap gap{};
  };
  std::vector<Item> sorted();
  void print(std::span<const Item> items);
  void forget_oldest();

  EventPrinter& printer_;
  std::uint64_t most_;
  std::vector<Item> items_;
  std::deque<Item> ring_;  // of the present one
  std::uint64_t events_ = 0;
  std::string log_;
  bool tells_expired_ = true;
};

}  // namespace mcds
