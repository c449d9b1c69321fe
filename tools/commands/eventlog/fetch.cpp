// Implements mcds eventlog fetch: a range, or a cursor's new events, to standard output or a command's input.

#include "tools/commands/eventlog/options.hpp"
#include "tools/commands/run_report.hpp"

namespace mcds {

namespace {

LogRange range_of(Session& session, const EventlogOptions& options) {
  const WallTime now = session.clock().wall();
  LogRange range;
  if (options.first) range.first = parse_time(*options.first, now, "--first");
  if (options.last) range.last = parse_time(*options.last, now, "--last");
  if (range.first && range.last && *range.first > *range.last) {
    throw InvalidInput("--first is after --last; swap them");
  }
  if (options.after) {
    range.after = EventId::parse(*options.after);
    if (!range.after)
      throw InvalidInput("--after: give an event's id, such as 01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18");
  }
  range.limit = options.limit;
  return range;
}

// The outcome of passing events on.
struct Handed {
  bool damage = false;  // the log is damaged
  ChildResult child = {};

  ExitStatus status() const {
    if (child.exit_code() != 0) return static_cast<ExitStatus>(child.exit_code());
    return damage ? ExitStatus::bad_data : ExitStatus::ok;
  }
};

// Reads events with `read` and prints them, or passes them to the child's standard input if there are any.
template <typename Read>
Handed hand_over(Session& session, const EventlogOptions& options, const Read& read) {
  std::string lines;
  Progress progress(session.clock(), "events");
  EventPrinter printer(session, options.child.empty() ? nullptr : &lines, &progress);
  session.output().buffered(true);
  const bool wanted = read(printer);
  printer.release();
  session.output().flush();
  hide_progress();
  Handed handed{printer.saw_damage()};
  if (options.child.empty() || lines.empty() || !wanted) return handed;
  ChildOptions child{.command = options.child};
  child.input = std::move(lines);
  handed.child = run_alone(session, child);
  report_failure(session.output(), handed.child);
  return handed;
}

// Fetches a log that is written with a shape other than the usual one, or with several.
void fetch_shapes(Session& session, const EventlogOptions& options, LogRange range, const LogSummary& known,
                  EventPrinter& printer) {
  printer.drop_held();
  range.only_if_sole = false;
  std::vector<RingShape> shapes = known.shapes;
  const bool usual = std::ranges::find(shapes, RingShape{}) != shapes.end();
  if (!known.found_nothing() && !usual) shapes.emplace_back();
  if (shapes.size() == 1) {
    LogReader(log_context(session), options.name, shapes.front()).fetch(range, printer);
    return;
  }
  MergedLogs merged(printer);
  merged.fetch(session, options.name, shapes, range);
  merged.print_first(range.limit.value_or(UINT64_MAX));
}

ExitStatus fetch_range(Session& session, const EventlogOptions& options) {
  LogRange range = range_of(session, options);
  ShapeFinder finder(session, options, std::nullopt);
  range.only_if_sole = true;
  bool missing = false;
  const Handed handed = hand_over(session, options, [&](EventPrinter& printer) {
    const LogSummary summary =
        finder.read([&](LogReader& log) { return log.fetch(range, printer); }, [&] { printer.drop_held(); });
    if (summary.declined) fetch_shapes(session, options, range, summary, printer);
    missing = !summary.declined && summary.found_nothing() && summary.shapes.empty();
    if (missing) warn_of_no_trace(session, options.name);
    return true;
  });
  return missing && options.must_exist ? worse(handed.status(), ExitStatus::no) : handed.status();
}

// Records the events on their way to the printer: their number, and the contents of the last one.
class NotedEvents final : public LogSink {
 public:
  explicit NotedEvents(EventPrinter& to) : to_(to) {}
  bool event(const EventLine& event) override {
    ++count;
    last = event.id;
    kind = event.base64 || event.foreign || event.data.starts_with('"') ? EventData::text : EventData::json;
    data = event.bytes();
    return to_.event(event);
  }
  void gap(const LogGap& gap) override { to_.gap(gap); }
  void damaged(const CorruptData& damage) override { to_.damaged(damage); }

  std::uint64_t count = 0;
  EventId last{};
  EventData kind{};
  std::string data;

 private:
  EventPrinter& to_;
};

// Delivers a cursor's new events. With --give-up, events that fail repeatedly move to another log.
class CursorFetch {
 public:
  CursorFetch(Session& session, const EventlogOptions& options, CursorFile& file)
      : session_(session), options_(options), file_(file), saved_(file.load()) {
    if (options.give_up) failed_.emplace(log_context(session), options.name + ".failed", shape_of_failed);
  }

  // Delivers the events. A batch that failed is delivered one event at a time until its end is passed.
  ExitStatus run() {
    if (!options_.give_up || !saved_.until) return deliver(options_.limit);
    ExitStatus status = ExitStatus::ok;
    while (saved_.until && !stopped_) status = worse(status, deliver(1));
    return status;
  }

 private:
  // Keeps failed events for a week, so that somebody can inspect them.
  static constexpr RingShape shape_of_failed{.chunk_s = 3600, .chunks = 168};
  // The maximum age of an id in that log. An event with an older id would soon expire.
  static constexpr auto oldest_id = std::chrono::hours(6 * 24);

  ExitStatus deliver(std::optional<std::uint64_t> limit) {
    CursorState state = saved_;
    ShapeFinder finder(session_, options_, shape_of(saved_));
    bool known = true;
    std::optional<NotedEvents> events;
    const Handed handed = hand_over(session_, options_, [&](EventPrinter& printer) {
      events.emplace(printer);
      const auto summary = finder.read([&](LogReader& log) { return log.deliver(state, *events, limit); },
                                       [&] {
                                         // A gap in the cursor's ring stays one.
                                         if (saved_.ring.empty()) printer.drop_held();
                                         state = {.seen = saved_.seen};
                                         events.emplace(printer);
                                       });
      // If no client has written to the log yet, its parameters are still unknown.
      known = !saved_.ring.empty() || !summary.found_nothing();
      return !is_given_up(*events);
    });
    if (is_given_up(*events)) return give_up(state, *events);
    const bool delivered = handed.child.exit_code() == 0;
    if (!delivered && options_.give_up && events->count > 0) return note_failure(state, *events, handed);
    stopped_ = !delivered;
    if (delivered && known) move_to(state, *events);
    if (const int signal = handed.child.ending_signal(); signal != 0 && saved_.until)
      throw Interrupted{signal};
    return handed.status();
  }

  // Returns true if an earlier run had begun to move the event to the other log.
  bool is_given_up(const NotedEvents& events) const {
    return options_.give_up && events.count == 1 && saved_.failing && saved_.failing->moved_to &&
           saved_.failing->event == events.last;
  }

  void move_to(CursorState& state, const NotedEvents& events) {
    if (state.failing && events.count > 0 && state.failing->event == events.last) state.failing.reset();
    if (state.until && (events.count == 0 || events.last >= *state.until)) {
      state.until.reset();
      state.failing.reset();
    }
    save(state);
  }

  // Counts a failure of the command itself. A missing command, or one that a signal ended, does not count.
  ExitStatus note_failure(CursorState& state, const NotedEvents& events, const Handed& handed) {
    stopped_ = true;
    if (handed.child.reason != ChildResult::Reason::ended || handed.child.ending_signal() != 0)
      return handed.status();
    CursorState next = saved_;
    if (next.ring != state.ring) next = {.ring = state.ring, .seen = saved_.seen};
    if (!next.until) next.until = events.last;
    if (events.count == 1) {
      if (!next.failing || next.failing->event != events.last) next.failing = {events.last};
      ++next.failing->failures;
    }
    save(next);
    if (events.count > 1 || next.failing->failures < *options_.give_up) return handed.status();
    stopped_ = false;
    return give_up(state, events);
  }

  // Moves the event to the other log. Its id there is saved before it is put: if a crash follows, the next
  // run puts the same event again, under the same id.
  ExitStatus give_up(CursorState& state, const NotedEvents& events) {
    const WallTime now = session_.clock().wall();
    auto& id = saved_.failing->moved_to;
    if (!id || now - id->time() > oldest_id) {
      id = failed_->new_id();
      save(saved_);
    }
    failed_->put(events.data, events.kind, id->time(), id);
    session_.output().warning("the event " + events.last.text() + " failed " +
                              std::to_string(saved_.failing->failures) + " times and is now in the log " +
                              options_.name + ".failed as " + id->text());
    state.until = saved_.until;
    state.failing = saved_.failing;
    move_to(state, events);
    return ExitStatus::problem;
  }

  void save(const CursorState& state) {
    file_.save(state);
    saved_ = state;
  }

  Session& session_;
  const EventlogOptions& options_;
  CursorFile& file_;
  CursorState saved_;
  std::optional<LogWriter> failed_;
  bool stopped_ = false;
};

ExitStatus fetch_cursor(Session& session, const EventlogOptions& options) {
  if (options.first || options.last || options.after) {
    throw InvalidInput(
        "--cursor cannot be combined with --first, --last or --after: it reads what was not delivered yet");
  }
  if (options.must_exist) throw InvalidInput("--must-exist and --cursor cannot be combined");
  const ExitStatus busy = busy_exit(options.busy_status);
  std::optional<CursorFile> file;
  if (!open_cursor(session, options, file)) return busy;
  return CursorFetch(session, options, *file).run();
}

}  // namespace

ExitStatus eventlog_fetch(Session& session, const EventlogOptions& options) {
  if (options.give_up && (!options.cursor || options.child.empty()))
    throw InvalidInput("--give-up counts failures of a command in a cursor; give --cursor FILE and -- CMD");
  if (options.give_up == 0) throw InvalidInput("--give-up must be at least 1");
  return options.cursor ? fetch_cursor(session, options) : fetch_range(session, options);
}

void MergedLogs::of(const std::string& log) {
  items_.insert(items_.end(), std::move_iterator(ring_.begin()), std::move_iterator(ring_.end()));
  drop_ring();
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
    // An event that has expired in one ring may still be in another.
    reports_expired_ = shape == longest;
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
  if (gap.reason == LogGap::Reason::expired && !reports_expired_) return;
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
