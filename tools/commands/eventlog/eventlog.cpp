// Implements mcds eventlog: the command line, put, info and where. The algorithm is in
// common/structures/eventlog/eventlog.hpp.

#include <limits>

#include "tools/commands/eventlog/options.hpp"

namespace mcds {

namespace {

constexpr std::size_t window_bytes = std::size_t{1} << 20;

std::optional<WallTime> time_of(Session& session, const EventlogOptions& options) {
  if (!options.at) return std::nullopt;
  return parse_time(*options.at, session.clock().wall(), "--at");
}

// Puts lines, and reports the outcome of earlier lines.
class LinePutter {
 public:
  LinePutter(LogWriter& log, EventData kind, std::optional<WallTime> at) : log_(log), kind_(kind), at_(at) {}

  void put(const Window<std::string>& window) {
    for (std::size_t i = 0; i < window.items.size(); ++i) {
      try {
        auto id = log_.stage(window.items[i], kind_, at_);
        if (!id) {
          flush(window);
          id = log_.stage(window.items[i], kind_, at_);
        }
        if (staged_.empty()) first_staged_ = id;
        staged_.push_back(i);
      } catch (const Failure& failure) {
        window.fail(i, failure);
      }
    }
    flush(window);
  }

  void print(Session& session, const std::string& log, std::uint64_t failed) const {
    JsonObject answer("eventlog", log);
    answer.number("events", events_).number("failed", failed);
    if (first_) answer.bytes("first_id", first_->text()).bytes("last_id", last_->text());
    add_lost(answer, session);
    session.add_unfinished(answer);
    answer_from(session, answer, {.server = {}, .or_one = true}, std::to_string(events_));
  }

 private:
  void flush(const Window<std::string>& window) {
    const std::vector<std::size_t> staged = std::exchange(staged_, {});
    if (staged.empty()) return;
    const auto fail = [&](std::size_t from, const Failure& failure) {
      for (std::size_t i = from; i < staged.size(); ++i) window.fail(staged[i], failure);
    };
    try {
      const LogWriter::Flushed flushed = log_.flush();
      events_ += flushed.events;
      if (!first_) first_ = first_staged_;
      last_ = flushed.last;
      if (flushed.failure) fail(flushed.events, *flushed.failure);
    } catch (const Failure& failure) {
      fail(0, failure);
    }
  }

  LogWriter& log_;
  EventData kind_;
  std::optional<WallTime> at_;
  std::vector<std::size_t> staged_;  // indexes of the window's lines
  std::optional<EventId> first_staged_, first_, last_;
  std::uint64_t events_ = 0;
};

ExitStatus put_lines(Session& session, const EventlogOptions& options, LogWriter& log) {
  LinePutter putter(log, options.json ? EventData::json : EventData::text, time_of(session, options));
  Batch<std::string> batch;
  batch.parse = [](std::string line) { return line; };
  batch.run = [&](const Window<std::string>& window) { putter.put(window); };
  batch.max_items = std::numeric_limits<std::size_t>::max();
  batch.bytes_of = [](const std::string& line) { return line.size() + sizeof line; };
  batch.max_bytes = window_bytes;
  const LinesDone done = batch.of_lines(session, {.answers_each = false});
  putter.print(session, options.name, done.failed);
  return done.worst;
}

// Returns the shape given on the command line, or nullopt if neither option was given.
std::optional<RingShape> asked_shape(const EventlogOptions& options) {
  if (!options.chunk && !options.chunks) return std::nullopt;
  const RingShape usual;
  return RingShape::of(options.chunk.value_or(std::chrono::seconds(usual.chunk_s)),
                       options.chunks.value_or(static_cast<std::uint64_t>(usual.chunks)));
}

ExitStatus put(Session& session, const EventlogOptions& options) {
  LogWriter log(log_context(session), options.name, asked_shape(options));
  if (options.data.value_or("-") == "-") return put_lines(session, options, log);
  const auto at = time_of(session, options);
  const auto put = log.put(value_of(*options.data), options.json ? EventData::json : EventData::text, at);
  JsonObject answer("eventlog", options.name);
  answer.bytes("id", put.id.text()).time("at", put.id.time());
  answer.signed_number("at_s", whole_seconds(put.id.time()));
  answer_from(session, answer, {.server = put.server, .or_one = true}, put.id.text());
  return ExitStatus::ok;
}

// Collects what info prints about the events: the first and last times, and the gaps.
class InfoSink final : public LogSink {
 public:
  explicit InfoSink(Session& session) : session_(session) {}
  bool event(const EventLine& event) override {
    if (!first) first = event.id;
    last = event.id;
    return true;
  }
  void gap(const LogGap& gap) override { gaps.push_back(gap_object(gap)); }
  void damaged(const CorruptData& damage) override { damages.report(session_, damage); }
  std::optional<EventId> first, last;
  std::vector<JsonObject> gaps;
  DamageReport damages;

 private:
  Session& session_;
};

ExitStatus info(Session& session, const EventlogOptions& options) {
  ShapeFinder finder(session, options, std::nullopt);
  InfoSink sink(session);
  const auto summary = finder.read([&](LogReader& log) { return log.fetch({}, sink); }, [] {});
  const RingShape& shape = finder.log().shape();
  JsonObject answer("eventlog", options.name);
  answer.boolean("found", !summary.found_nothing());
  if (!summary.found_nothing()) {
    answer.number("chunk_s", static_cast<std::uint64_t>(shape.chunk_s));
    answer.number("chunks", static_cast<std::uint64_t>(shape.chunks));
    answer.number("kept_s", static_cast<std::uint64_t>(shape.kept().count()));
    answer.number("events", summary.events)
        .number("chunks_used", summary.chunks)
        .number("parts", summary.parts);
    answer.number("size_bytes", summary.bytes);
    if (sink.first) answer.time("first_at", sink.first->time()).time("last_at", sink.last->time());
    answer.objects("gaps", sink.gaps);
    std::vector<std::string> shapes;
    for (const RingShape& one : summary.shapes) shapes.push_back(one.text());
    if (shapes.size() > 1) answer.strings("shapes", shapes);
  }
  add_copies(answer, session, {.server = {}, .or_one = true});
  session.output().answer(answer, std::to_string(summary.events));
  if (sink.damages.any()) return ExitStatus::bad_data;
  return summary.found_nothing() ? ExitStatus::no : ExitStatus::ok;
}

ExitStatus where(Session& session, const EventlogOptions& options) {
  return print_where(session, keys_of_log(log_context(session), options.name), 1);
}

ExitStatus drop(Session& session, const EventlogOptions& options) {
  return answer_dropped(session, JsonObject("eventlog", options.name),
                        [&] { return drop_log(log_context(session), options.name); });
}

using EventlogOptionsPtr = std::shared_ptr<EventlogOptions>;

constexpr const char* busy_help =
    "exit code if another run is using the cursor; default 75; with 0 nothing is printed either";

void declare_put(Command& command, const EventlogOptionsPtr& options) {
  command.verb("put", "add an event, or one for each line of standard input", put, options)
      .answer("eventlog id at at_s server copies?")
      .answer("eventlog events failed first_id? last_id? lost_or_dropped? unfinished? copies?")
      .field("events integer number of events that were stored")
      .example("mcds eventlog put deploys 'v1.4.2 ok'")
      .example("mcds eventlog put deploys --json '{\"version\":\"1.4.2\"}'")
      .example("tail -F app.log | mcds eventlog put app -")
      .argument("NAME", "the log", &options->name)
      .optional_argument(
          "DATA", "the event; @FILE: a file's contents; - or nothing: one event per line of standard input",
          dash(&options->data))
      .flag("--json",
            "DATA is JSON, and is printed as JSON with all digits of its numbers; by default it is any bytes",
            options->json)
      .option(
          "--at", "T",
          "the time of the event, at most one chunk ahead and as old as the log keeps events; default now",
          &options->at)
      .option("--chunk", "D",
              "length of a chunk, in whole seconds; default: as the log was last written, else 1m",
              &options->chunk)
      .option("--chunks", "N",
              "number of chunks for which every event is kept; default: as the log was last written, else or "
              "with --chunk 60",
              &options->chunks);
}

void declare_fetch(Command& command, const EventlogOptionsPtr& options) {
  command.verb("fetch", "print events in the order of their time", eventlog_fetch, options)
      .answer("id at at_s data")
      .answer("gap from:time to:time reason")
      .field("from time the beginning of the gap")
      .field("to time the end of the gap")
      .field("reason string why the events are missing: expired or evicted")
      .example("mcds eventlog fetch deploys --first 15m")
      .example("mcds eventlog fetch deploys --cursor deploys.seen -- mail -s deploys ops")
      .example("mcds eventlog fetch deploys --limit 100 -o value")
      .argument("NAME", "the log", &options->name)
      .option("--first", "T", "only events at or after T", &options->first)
      .option("--last", "T", "only events at or before T", &options->last)
      .option("--after", "ID",
              "only events with a greater id; unlike a cursor, this misses events that are put late with an "
              "earlier time",
              &options->after)
      .option("--limit", "N", "at most N events: the oldest ones, or with --cursor those put first",
              &options->limit)
      .option("--cursor", "FILE",
              "only events that this file's reader has not had, late ones included; CMD reads them on stdin, "
              "and again if it fails",
              &options->cursor)
      .option("--give-up", "N",
              "with --cursor and a command: after N failures an event goes into the log NAME.failed",
              &options->give_up)
      .option("-E,--busy-exit", "N", busy_help, &options->busy_status)
      .flag("--must-exist", "exit with 1 if there is no such log; not with --cursor", options->must_exist)
      .child(options->child, false);
}

void declare_tail(Command& command, const EventlogOptionsPtr& options) {
  command.verb("tail", "print the last events, and new ones with -f", eventlog_tail, options)
      .answer("eventlog? id at at_s data")
      .answer("eventlog? gap from:time to:time reason")
      .field("from time the beginning of the gap")
      .field("to time the end of the gap")
      .field("reason string why the events are missing: expired or evicted")
      .example("mcds eventlog tail deploys")
      .example("mcds eventlog tail deploys -f -o value")
      .example("mcds eventlog tail deploys -f -n 0 --cursor ~/.deploys")
      .example("mcds eventlog tail deploys alerts -n 20")
      .argument("NAME", "the logs; events of several are merged by time and have the log's name",
                &options->names)
      .option("-n,--lines", "N", "the number of events, of all logs together; default 10", &options->count)
      .flag("-f,--follow",
            "continue with new events until a signal ends it (exit code 0) or the output is closed",
            options->follow)
      .option("--every", "D", "how often -f reads new events; default 1s", &options->every)
      .option("--until", "T", "only events at or before T; with -f, end at T", &options->until)
      .option("--cursor", "FILE",
              "continue behind what was last printed with this file (to process events: fetch -- CMD); one "
              "log, no --until",
              &options->cursor)
      .option("-E,--busy-exit", "N", busy_help, &options->busy_status);
}

}  // namespace

void declare_eventlog(Command& command) {
  command.exits(
      "1 info, drop, --must-exist: there is no such log|2 put: a part of the log was lost or dropped while "
      "events were put; --give-up: an event has gone into the log of failed ones|65 a bad line of input, a "
      "cursor that is damaged or not of this log, or another program's bytes in the log; all its events are "
      "printed nevertheless|66 the cursor or a file cannot be read|69|73 the cursor cannot be written|75 the "
      "cursor is in use, or others keep changing the log while it is dropped|76|80 the event may or may not "
      "be stored|126|127");
  const auto options = std::make_shared<EventlogOptions>();
  declare_put(command, options);
  declare_fetch(command, options);
  declare_tail(command, options);
  command.verb("info", "print the number of events, their times, and gaps", info, options)
      .answer("eventlog found copies?")
      .answer(
          "eventlog found chunk_s chunks kept_s events chunks_used parts size_bytes first_at? last_at? gaps "
          "shapes? copies?")
      .field("size_bytes integer bytes in these items")
      .example("mcds eventlog info deploys")
      .argument("NAME", "the log", &options->name);
  command.verb("drop", "end the log: nothing of it remains on the servers", drop, options)
      .example("mcds eventlog drop deploys")
      .answer("eventlog @dropped")
      .argument("NAME", "the log", &options->name);
  command.verb("where", "print the log's keys and their servers", where, options)
      .answer("@where")
      .example("mcds eventlog where deploys")
      .argument("NAME", "the log", &options->name);
}

namespace {

const char* name_of(LogGap::Reason reason) {
  return reason == LogGap::Reason::expired ? "expired" : "evicted";
}

JsonObject event_object(const EventLine& event, const std::string& log) {
  JsonObject object;
  if (!log.empty()) object.bytes("eventlog", log);
  object.bytes("id", event.id.text()).time("at", event.id.time());
  object.signed_number("at_s", whole_seconds(event.id.time()));
  if (event.foreign) {
    object.bytes("data_b64", base64(event.data));
  } else if (event.base64) {
    object.bytes("data_b64", event.data);
  } else {
    object.raw("data", event.data);
  }
  return object;
}

std::string in_options(const RingShape& shape) {
  return "--chunk " + format_duration(std::chrono::seconds(shape.chunk_s)) + " --chunks " +
         std::to_string(shape.chunks);
}

}  // namespace

Context log_context(Session& session) {
  return context_with_one_copy(session, "--copies", "an event log");
}

std::optional<RingShape> shape_of(const CursorState& state) {
  const std::size_t colon = state.ring.rfind(':');
  return colon == std::string::npos ? std::nullopt
                                    : RingShape::parse(std::string_view(state.ring).substr(colon + 1));
}

JsonObject gap_object(const LogGap& gap, const std::string& log) {
  JsonObject object;
  if (!log.empty()) object.bytes("eventlog", log);
  object.boolean("gap", true).time("from", gap.from).time("to", gap.to).bytes("reason", name_of(gap.reason));
  return object;
}

bool open_cursor(Session& session, const EventlogOptions& options, std::optional<CursorFile>& file) {
  try {
    file.emplace(*options.cursor);
    return true;
  } catch (const Failure& failure) {
    if (failure.code() != ErrorCode::try_again) throw;
    if (options.busy_status != 0) session.output().error(failure);
    return false;
  }
}

void warn_of_no_trace(Session& session, const std::string& name) {
  session.output().warning("no event log named " + name +
                           " exists; it was never written, or all its events expired");
}

bool EventPrinter::event(const EventLine& event) {
  release();
  if (progress_ != nullptr) progress_->advance();
  const bool bare = session_.output().mode() == OutputMode::value;
  const std::string name = log_.empty() ? log_ : log_ + '\t';
  print(event_object(event, log_), bare ? name + event.bytes() : std::string());
  return true;
}

void EventPrinter::gap(const LogGap& gap) {
  if (!released_) {
    held_.push_back(gap);
    return;
  }
  if (session_.output().mode() != OutputMode::value) return print(gap_object(gap, log_), std::nullopt);
  session_.output().warning((log_.empty() ? "" : log_ + ": ") + "events from " + format_time(gap.from) +
                            " to " + format_time(gap.to) + " are lost (" + name_of(gap.reason) + ")");
}

void DamageReport::report(Session& session, const CorruptData& damage) {
  constexpr std::size_t most = 20;
  if (reported_.size() > most || !reported_.emplace(damage.what()).second) return;
  if (reported_.size() <= most) return session.output().error(damage);
  session.output().warning("only the first " + std::to_string(most) + " damaged places are shown");
}

void EventPrinter::release() {
  released_ = true;
  const auto held = std::exchange(held_, {});
  for (const LogGap& one : held) gap(one);
}

void EventPrinter::print(const JsonObject& object, std::optional<std::string_view> bare) {
  if (lines_ == nullptr) return session_.output().answer(object, bare.value_or(""));
  *lines_ += session_.output().mode() == OutputMode::value ? std::string(bare.value_or("")) : object.text();
  *lines_ += session_.options().null ? '\0' : '\n';
}

void ShapeFinder::warn_of_others(const LogSummary& summary) const {
  if (summary.declined || reads_all_) return;
  for (const RingShape& shape : summary.shapes) {
    if (shape == log_->shape()) continue;
    session_.output().warning("only the events of " + options_.name + " put with " +
                              in_options(log_->shape()) + " are shown; others were put with " +
                              in_options(shape) + ", and fetch and tail without --cursor read all");
    return;
  }
}

}  // namespace mcds
