// mcds eventlog fetch: a range, or what a cursor has not delivered; to standard output or to a command's
// input.
#include "tools/commands/eventlog/merged.hpp"
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

// The events are the child's standard input; its exit code is ours.
ExitStatus run_with(Session& session, const EventlogOptions& options, std::string lines) {
  ChildOptions child{.command = options.child};
  child.input = std::move(lines);
  const ChildResult result = run_alone(session, child);
  if (!result.message.empty()) session.output().error(Failure(ErrorCode::usage, result.message));
  return static_cast<ExitStatus>(result.exit_code());
}

// Reads by `read` into what is printed, or given to the child if there is anything for it.
template <typename Read>
ExitStatus hand_over(Session& session, const EventlogOptions& options, const Read& read) {
  std::string lines;
  EventPrinter printer(session, options.child.empty() ? nullptr : &lines);
  session.output().buffered(true);
  read(printer);
  printer.release();
  session.output().flush();
  if (!options.child.empty() && !lines.empty()) {
    const ExitStatus status = run_with(session, options, std::move(lines));
    if (status != ExitStatus::ok) return status;
  }
  return printer.saw_damage() ? ExitStatus::bad_data : ExitStatus::ok;
}

// Of a log that is written with another shape than the usual one, or with several.
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
  const ExitStatus status = hand_over(session, options, [&](EventPrinter& printer) {
    const LogSummary summary =
        finder.read([&](LogReader& log) { return log.fetch(range, printer); }, [&] { printer.drop_held(); });
    if (summary.declined) return fetch_shapes(session, options, range, summary, printer);
    missing = summary.found_nothing() && summary.shapes.empty();
    if (missing) warn_of_no_trace(session, options.name);
  });
  return missing && options.must_exist ? worse(status, ExitStatus::no) : status;
}

ExitStatus fetch_cursor(Session& session, const EventlogOptions& options) {
  if (options.first || options.last || options.after) {
    throw InvalidInput(
        "--cursor reads what was not delivered yet, not a range of time; omit --first, --last and --after");
  }
  const ExitStatus busy = busy_exit(options.busy_status);
  std::optional<CursorFile> opened;
  if (!open_cursor(session, options, opened)) return busy;
  CursorFile& file = *opened;
  const CursorState before = file.load();
  CursorState state = before;
  ShapeFinder finder(session, options, shape_of(before));
  bool known = true;
  const ExitStatus status = hand_over(session, options, [&](EventPrinter& printer) {
    const auto summary =
        finder.read([&](LogReader& log) { return log.deliver(state, printer, options.limit); },
                    [&] {
                      state = before;
                      printer.drop_held();
                    });
    // A log that no one has written to yet: with which parameters will show.
    known = !before.ring.empty() || !summary.found_nothing();
  });
  const bool delivered =
      status == ExitStatus::ok || (status == ExitStatus::bad_data && options.child.empty());
  if (delivered && known) file.save(state);
  return status;
}

}  // namespace

ExitStatus eventlog_fetch(Session& session, const EventlogOptions& options) {
  return options.cursor ? fetch_cursor(session, options) : fetch_range(session, options);
}

}  // namespace mcds
