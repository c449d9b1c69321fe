// mcds eventlog tail: the last events, and with -f those that come.
#include <variant>

#include "common/base/units.hpp"
#include "tools/cli/pause.hpp"
#include "tools/commands/eventlog/options.hpp"

namespace mcds {

namespace {

constexpr auto save_at_least_every = std::chrono::seconds(30);

// Keeps the last events, and the gaps between them.
class LastEvents final : public LogSink {
 public:
  LastEvents(std::uint64_t count, EventPrinter& printer) : count_(count), printer_(printer) {}

  bool event(const EventLine& event) override {
    items_.emplace_back(Kept{event.id, std::string(event.data), event.base64, event.foreign});
    ++events_;
    if (events_ > count_) forget_oldest();
    return true;
  }
  void gap(const LogGap& gap) override { items_.emplace_back(gap); }
  void damaged(const CorruptData& damage) override { printer_.damaged(damage); }
  void clear() {
    items_.clear();
    events_ = 0;
  }
  void print() {
    printer_.release();
    for (const auto& item : items_) {
      if (const auto* gap = std::get_if<LogGap>(&item)) {
        printer_.gap(*gap);
      } else {
        const Kept& kept = std::get<Kept>(item);
        printer_.event({kept.id, kept.data, kept.base64, kept.foreign});
      }
    }
    clear();
  }

 private:
  struct Kept {
    EventId id;
    std::string data;
    bool base64, foreign;
  };
  void forget_oldest() {
    while (std::holds_alternative<LogGap>(items_.front())) items_.pop_front();
    items_.pop_front();
    --events_;
  }

  std::uint64_t count_;
  EventPrinter& printer_;
  std::uint64_t events_ = 0;
  std::deque<std::variant<Kept, LogGap>> items_;
};

// Says once that a server does not answer, and again only after it has.
class Outage {
 public:
  explicit Outage(Session& session) : session_(session) {}
  void tell(const LogSummary& summary) {
    if (!summary.unreachable.empty() && !told_) {
      const Failure& failure = summary.unreachable.front();
      session_.output().warning("no answer from " + failure.server() + ": " + failure.what() +
                                "; still trying");
    }
    told_ = !summary.unreachable.empty();
  }

 private:
  Session& session_;
  bool told_ = false;
};

class Tail {
 public:
  Tail(Session& session, const EventlogOptions& options)
      : session_(session), options_(options), printer_(session), outage_(session) {
    if (options.every < std::chrono::milliseconds(10)) throw InvalidInput("--every must be at least 10ms");
    if (options.cursor) file_.emplace(*options.cursor);
    if (file_) state_ = file_->load();
    saved_ = state_;
    finder_.emplace(session, options, shape_of(state_));
  }

  ExitStatus run() {
    session_.output().buffered(true);
    std::optional<Pause> pause;
    if (options_.follow) pause.emplace();
    start();
    while (pause && pause->wait(options_.every)) {
      outage_.tell(finder_->log().poll(state_, printer_));
      commit(false);
    }
    commit(true);
    return printer_.saw_damage() ? ExitStatus::bad_data : ExitStatus::ok;
  }

 private:
  // A used cursor continues where it was; everything else begins with the last events.
  void start() {
    const bool fresh = state_.ring.empty();
    LastEvents last(fresh ? options_.count : UINT64_MAX, printer_);
    const CursorState before = state_;
    const LogSummary summary =
        finder_->read([&](EventLog& log) { return log.deliver(state_, last, std::nullopt, options_.follow); },
                      [&] {
                        state_ = before;
                        last.clear();
                      });
    last.print();
    unknown_ = fresh && summary.found_nothing() && !asked_shape(options_);
    outage_.tell(summary);
    commit(true);
  }

  void commit(bool at_once) {
    session_.output().flush();
    const auto now = session_.clock().steady();
    const bool moved = state_.parts != saved_.parts || state_.lost != saved_.lost;
    unknown_ = unknown_ && !moved;
    if (!file_ || unknown_ || state_ == saved_) return;
    if (!moved && !at_once && now - saved_at_ < save_at_least_every) return;
    file_->save(state_);
    saved_ = state_;
    saved_at_ = now;
  }

  Session& session_;
  const EventlogOptions& options_;
  EventPrinter printer_;
  Outage outage_;
  std::optional<CursorFile> file_;
  CursorState state_;
  CursorState saved_;
  SteadyTime saved_at_{};
  bool unknown_ = false;  // nothing has been written yet, so the parameters are unknown
  std::optional<ShapeFinder> finder_;
};

}  // namespace

ExitStatus eventlog_tail(Session& session, const EventlogOptions& options) {
  return Tail(session, options).run();
}

}  // namespace mcds
