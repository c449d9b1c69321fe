// Implements mcds eventlog tail: prints the last events, and with -f new ones.
#include "tools/commands/eventlog/options.hpp"

namespace mcds {

namespace {

constexpr auto save_at_least_every = std::chrono::seconds(30);

// Passes on the events that were put until the given time.
class UntilSink final : public LogSink {
 public:
  UntilSink(LogSink& sink, const std::optional<WallTime>& until) : sink_(sink), until_(until) {}
  bool event(const EventLine& event) override {
    return (until_ && event.id.time() > *until_) || sink_.event(event);
  }
  void gap(const LogGap& gap) override {
    if (!until_ || gap.from <= *until_) sink_.gap(gap);
  }
  void damaged(const CorruptData& damage) override { sink_.damaged(damage); }

 private:
  LogSink& sink_;
  const std::optional<WallTime>& until_;
};

// One ring of one log.
class Ring {
 public:
  // Reads only `shape` if one is given.
  Ring(Session& session, EventlogOptions options, CursorState state, const std::optional<RingShape>& shape,
       bool reads_all)
      : session_(session),
        options_(std::move(options)),
        state_(std::move(state)),
        finder_(session, options_, shape, reads_all) {}

  const std::string& log() const { return options_.name; }
  const RingShape& shape() { return finder_.log().shape(); }
  CursorState& state() { return state_; }

  LogSummary start(MergedLogs& merged, const std::optional<WallTime>& until) {
    const CursorState before = state_;
    UntilSink sink(merged, until);
    const LogSummary summary =
        finder_.read([&](LogReader& log) { return log.deliver(state_, sink, std::nullopt, options_.follow); },
                     [&] {
                       if (before.ring.empty()) merged.drop_ring();
                       state_ = {.seen = before.seen};
                     });
    reporter_.report(session_, summary.unreachable);
    return summary;
  }

  LogSummary poll(LogSink& to, const std::optional<WallTime>& until) {
    UntilSink sink(to, until);
    const LogSummary summary = finder_.log().poll(state_, sink);
    reporter_.report(session_, summary.unreachable);
    return summary;
  }

 private:
  Session& session_;
  EventlogOptions options_;
  CursorState state_;
  OutageReporter reporter_;
  ShapeFinder finder_;
};

// Reads logs. A log that is written with several shapes has a ring of each; a cursor is for one ring.
class Tail {
 public:
  Tail(Session& session, const EventlogOptions& options)
      : session_(session), options_(options), printer_(session), several_(options.names.size() > 1) {
    if (options.every < std::chrono::milliseconds(10)) throw InvalidInput("--every must be at least 10ms");
    if (options.until) until_ = parse_time(*options.until, session.clock().wall(), "--until");
    if (options.cursor && several_)
      throw InvalidInput("--cursor belongs to one log; run one tail for each log");
    if (options.cursor && until_)
      throw InvalidInput("--cursor and --until cannot be combined: the cursor would skip later events");
    reads_all_ = !options.cursor;
  }

  ExitStatus run() {
    const ExitStatus busy = busy_exit(options_.busy_status);
    if (options_.cursor && !open_cursor(session_, options_, file_)) return busy;
    session_.output().buffered(true);
    std::optional<Pause> pause;
    if (options_.follow) pause.emplace(session_);
    start();
    while (pause && wait(*pause)) {
      poll();
      commit(false);
    }
    commit(true);
    return printer_.saw_damage() ? ExitStatus::bad_data : ExitStatus::ok;
  }

 private:
  // Starts reading where a used cursor stopped, or otherwise with the last events.
  void start() {
    const CursorState state = file_ ? file_->load() : CursorState();
    saved_ = state;
    const bool fresh = state.ring.empty();
    const std::uint64_t most = fresh ? options_.count : UINT64_MAX;
    MergedLogs merged(printer_, most);
    for (const std::string& name : options_.names) {
      EventlogOptions one = options_;
      one.name = name;
      rings_.push_back(std::make_unique<Ring>(session_, std::move(one), state, shape_of(state), reads_all_));
      merged.of(label(name));
      const LogSummary summary = rings_.back()->start(merged, until_);
      const bool nothing = summary.found_nothing();
      unknown_ = fresh && nothing;
      if (nothing && summary.shapes.empty() && !options_.follow && summary.unreachable.empty())
        warn_of_no_trace(session_, name);
      add_rings(name, summary, merged);
    }
    merged.print_last(most);
    commit(true);
  }

  void poll() {
    if (rings_.size() == 1) {
      Ring& ring = *rings_.front();
      const LogSummary summary = ring.poll(printer_, until_);
      const auto is_read = [&](const RingShape& shape) { return shape == ring.shape(); };
      if (std::ranges::all_of(summary.shapes, is_read)) return;
      if (!reads_all_) {
        const bool elsewhere = unknown_ && summary.found_nothing() && !is_read(summary.shapes.back());
        return elsewhere ? begin_with(summary.shapes.back()) : void();
      }
    }
    MergedLogs merged(printer_);
    const std::size_t known = rings_.size();
    for (std::size_t i = 0; i < known; ++i) {
      const std::string name = rings_[i]->log();
      merged.of(label(name));
      add_rings(name, rings_[i]->poll(merged, until_), merged);
    }
    merged.print_last(UINT64_MAX);
  }

  // Begins to read a log that was missing, with the shape that it is written with now.
  void begin_with(const RingShape& shape) {
    EventlogOptions one = options_;
    one.name = options_.names.front();
    const CursorState state{.seen = rings_.front()->state().seen};
    rings_.front() = std::make_unique<Ring>(session_, std::move(one), state, shape, reads_all_);
    MergedLogs merged(printer_);
    static_cast<void>(rings_.front()->start(merged, until_));
    merged.print_last(UINT64_MAX);
  }

  // Adds the rings of the log's shapes in use that are not read yet.
  void add_rings(const std::string& name, const LogSummary& summary, MergedLogs& merged) {
    for (const RingShape& shape : summary.shapes) {
      const auto is_read = [&](const auto& ring) { return ring->log() == name && ring->shape() == shape; };
      if (!reads_all_ || std::ranges::any_of(rings_, is_read)) continue;
      EventlogOptions one = options_;
      one.name = name;
      rings_.push_back(std::make_unique<Ring>(session_, std::move(one), CursorState(), shape, reads_all_));
      merged.of(label(name));
      rings_.back()->start(merged, until_);
    }
  }

  // Waits for the next poll. Returns false if it is time to end.
  bool wait(Pause& pause) {
    if (!until_) return pause.wait(options_.every);
    const auto left = std::chrono::duration_cast<Duration>(*until_ - session_.clock().wall());
    if (std::exchange(last_look_, left < Duration::zero())) return false;
    return pause.wait(std::clamp(left, Duration(std::chrono::milliseconds(1)), options_.every));
  }

  void commit(bool at_once) {
    session_.output().flush();
    if (!file_) return;
    const CursorState& state = rings_.front()->state();
    const auto now = session_.clock().steady();
    const bool moved = state.parts != saved_.parts || state.lost != saved_.lost;
    unknown_ = unknown_ && !moved;
    if (unknown_ || state == saved_) return;
    if (!moved && !at_once && now - saved_at_ < save_at_least_every) return;
    file_->save(state);
    saved_ = state;
    saved_at_ = now;
  }

  std::string label(const std::string& name) const { return several_ ? name : std::string(); }

  Session& session_;
  const EventlogOptions& options_;
  EventPrinter printer_;
  bool several_;
  bool reads_all_ = false;
  std::optional<WallTime> until_;
  bool last_look_ = false;  // the time is over
  std::optional<CursorFile> file_;
  std::vector<std::unique_ptr<Ring>> rings_;
  CursorState saved_;
  SteadyTime saved_at_{};
  bool unknown_ = false;  // nothing has been written yet, so the parameters are unknown
};

}  // namespace

ExitStatus eventlog_tail(Session& session, const EventlogOptions& options) {
  return Tail(session, options).run();
}

}  // namespace mcds
