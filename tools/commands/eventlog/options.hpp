// What the eventlog verbs share: their options, which ring they mean, and how they print what a read finds.
#pragma once

#include "common/structures/eventlog/cursor.hpp"
#include "common/structures/eventlog/eventlog.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct EventlogOptions {
  std::string name;
  std::vector<std::string> names;  // of tail
  std::optional<std::string> data, at, first, last, until, after, cursor;
  std::optional<Duration> chunk;
  std::optional<std::uint64_t> chunks, limit, busy_status, give_up;
  std::uint64_t count = 10;
  Duration every = std::chrono::seconds(1);
  bool json = false, follow = false, must_exist = false;
  std::vector<std::string> child;
};

// Returns the context of what has one copy, whatever is configured. Throws InvalidInput if the command line
// asks for several.
Context log_context(Session& session);

// Reports each damage once, up to a limit.
class DamageReport {
 public:
  void tell(Session& session, const CorruptData& damage);
  bool any() const { return !told_.empty(); }

 private:
  std::set<std::string> told_;
};

// Prints events and gaps as they come, or collects the lines for a child. Gaps that come before any event are
// held until it is certain that this is the ring to read.
class EventPrinter final : public LogSink {
 public:
  // `progress`: counts the events, if they are not awaited.
  explicit EventPrinter(Session& session, std::string* lines = nullptr, Progress* progress = nullptr)
      : session_(session), lines_(lines), progress_(progress) {}

  // What comes from now on is of this log, and is printed with its name; empty: without one.
  void of(const std::string& log) { log_ = log; }
  bool event(const EventLine& event) override;
  void gap(const LogGap& gap) override;
  void damaged(const CorruptData& damage) override { damages_.tell(session_, damage); }
  // No event will come that decides about held gaps.
  void release();
  void drop_held() { held_.clear(); }
  bool saw_damage() const { return damages_.any(); }

 private:
  void print(const JsonObject& object, std::optional<std::string_view> bare);

  Session& session_;
  std::string* lines_;
  Progress* progress_;
  std::string log_;
  std::vector<LogGap> held_;
  DamageReport damages_;
  bool released_ = false;
};

JsonObject gap_object(const LogGap& gap, const std::string& log = {});

// False: another run holds it, which was said unless -E says 0.
bool open_cursor(Session& session, const EventlogOptions& options, std::optional<CursorFile>& file);

void warn_of_no_trace(Session& session, const std::string& name);

// Reads with the shape of a cursor; without one, with the usual one, or where that finds nothing with the one
// that the log's conf key names. `read` is called once or twice and returns its summary. Warns of writers
// that use another.
class ShapeFinder {
 public:
  // `reads_all`: the caller reads the other shapes too.
  ShapeFinder(Session& session, const EventlogOptions& options, const std::optional<RingShape>& known,
              bool reads_all = false)
      : session_(session), options_(options), fixed_(known), reads_all_(reads_all) {
    use(known.value_or(RingShape{}));
  }
  template <typename Read, typename Again>
  LogSummary read(const Read& read, const Again& again) {
    LogSummary summary = read(*log_);
    const bool nothing = !summary.declined && summary.found_nothing() && !summary.shapes.empty();
    if (nothing && !fixed_ && summary.shapes.back() != log_->shape()) {
      again();
      use(summary.shapes.back());
      summary = read(*log_);
    }
    warn_of_others(summary);
    return summary;
  }
  LogReader& log() { return *log_; }

 private:
  void use(const RingShape& shape) { log_.emplace(log_context(session_), options_.name, shape); }
  void warn_of_others(const LogSummary& summary) const;

  Session& session_;
  const EventlogOptions& options_;
  const bool fixed_;  // the shape is not a guess
  const bool reads_all_;
  std::optional<LogReader> log_;
};

ExitStatus eventlog_fetch(Session& session, const EventlogOptions& options);
ExitStatus eventlog_tail(Session& session, const EventlogOptions& options);

// The shape of the ring that a cursor belongs to; nullopt for a new one.
std::optional<RingShape> shape_of(const CursorState& state);

// Events of several rings in the order of their times: of one log whose writers use different shapes, or of
// several logs.

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
