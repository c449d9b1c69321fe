// Options that the eventlog verbs share, the choice of the ring to read, and the printing of events.
#pragma once

#include "common/structures/eventlog/cursor.hpp"
#include "common/structures/eventlog/eventlog.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct EventlogOptions {
  std::string name;
  std::vector<std::string> names;  // for tail
  std::optional<std::string> data, at, first, last, until, after, cursor;
  std::optional<Duration> chunk;
  std::optional<std::uint64_t> chunks, limit, busy_status, give_up;
  std::uint64_t count = 10;
  Duration every = std::chrono::seconds(1);
  bool json = false, follow = false, must_exist = false;
  std::vector<std::string> child;
};

// Returns a context with one copy. Throws InvalidInput if the command line asks for several.
Context log_context(Session& session);

// Reports each damage once, up to a limit.
class DamageReport {
 public:
  void report(Session& session, const CorruptData& damage);
  bool any() const { return !reported_.empty(); }

 private:
  std::set<std::string> reported_;
};

// Prints events and gaps as they arrive, or collects the lines for a child. Gaps that precede any event are
// held until it is certain that this is the ring to read.
class EventPrinter final : public LogSink {
 public:
  // `progress` counts the events unless the reader waits for new ones.
  explicit EventPrinter(Session& session, std::string* lines = nullptr, Progress* progress = nullptr)
      : session_(session), lines_(lines), progress_(progress) {}

  // Sets the log that later events belong to. They are printed with its name unless it is empty.
  void of(const std::string& log) { log_ = log; }
  bool event(const EventLine& event) override;
  void gap(const LogGap& gap) override;
  void damaged(const CorruptData& damage) override { damages_.report(session_, damage); }
  // Prints the held gaps: no event will come that decides about them.
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

// Returns false if another run holds the cursor, which is reported unless -E says 0.
bool open_cursor(Session& session, const EventlogOptions& options, std::optional<CursorFile>& file);

void warn_of_no_trace(Session& session, const std::string& name);

// Chooses the shape to read with: the cursor's or, for a new or no cursor, the usual shape, and if that finds
// nothing, the shape that the log's conf key names. A cursor leaves its ring only then, because other shapes
// may be in use beside it. `read` is called once or twice and returns its summary. Warns of writers that use
// another shape.
class ShapeFinder {
 public:
  // If `reads_all` is true, the caller reads the other shapes too, and `known` is the only one here.
  ShapeFinder(Session& session, const EventlogOptions& options, const std::optional<RingShape>& known,
              bool reads_all = false)
      : session_(session), options_(options), fixed_(reads_all && known), reads_all_(reads_all) {
    use(known.value_or(RingShape{}));
  }
  template <typename Read, typename Again>
  LogSummary read(const Read& read, const Again& again) {
    LogSummary summary = read(*log_);
    const bool nothing = !summary.declined && summary.found_nothing() && summary.unreachable.empty();
    if (nothing && !fixed_ && !summary.shapes.empty() && summary.shapes.back() != log_->shape()) {
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
  const bool fixed_;
  const bool reads_all_;
  std::optional<LogReader> log_;
};

ExitStatus eventlog_fetch(Session& session, const EventlogOptions& options);
ExitStatus eventlog_tail(Session& session, const EventlogOptions& options);

// Returns the shape of the ring that a cursor belongs to, or nullopt for a new cursor.
std::optional<RingShape> shape_of(const CursorState& state);

// Merges the events of several rings by time: a log's rings of different shapes, or those of several logs.
// Keeps all events until they are printed, or with `most` the last `most` of each ring.
class MergedLogs final : public LogSink {
 public:
  explicit MergedLogs(EventPrinter& printer, std::uint64_t most = UINT64_MAX)
      : printer_(printer), most_(most) {}

  // Sets the log that later events belong to.
  void of(const std::string& log);
  // Drops the events since of(), because the ring is read again.
  void drop_ring();

  // Reads the events of these rings of the log within the range.
  void fetch(Session& session, const std::string& name, std::span<const RingShape> shapes,
             const LogRange& range);
  // Prints the oldest `most` events and the gaps before them. An event that is in two rings is printed once.
  void print_first(std::uint64_t most);
  // Prints the newest `most` events and the gaps between and after them.
  void print_last(std::uint64_t most);

  bool event(const EventLine& event) override;
  void gap(const LogGap& gap) override;
  void damaged(const CorruptData& damage) override { printer_.damaged(damage); }

 private:
  struct Item {
    std::string log;
    WallTime at;
    std::optional<EventId> id;  // empty for a gap
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
  std::deque<Item> ring_;  // of the ring being read
  std::uint64_t events_ = 0;
  std::string log_;
  bool reports_expired_ = true;
};

}  // namespace mcds
