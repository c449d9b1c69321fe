// Stages the lines of a log's puts; part_writer.cpp appends them to a chunk.

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"
#include "common/structures/eventlog/part_writer.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

// A process's events keep their order if its clock is set back by less than this.
constexpr auto tolerated_step_back = std::chrono::seconds(1);

std::optional<EventId> id_of_line(std::string_view lines, std::size_t number) {
  for (std::size_t before = 0; before < number; ++before) take_line(lines);
  return EventId::parse(lines.substr(0, event_id_size));
}

}  // namespace

struct LogWriter::Parts {
  Context context;
  std::string name;
  bool guessed;                        // the shape is a guess
  std::optional<PartWriter> writer{};  // never empty
  EventIdSource ids;
  EventId last_id{};
  WallTime last_now{};
  std::string lines{};
  std::int64_t chunk = 0;  // of the lines
  std::size_t events = 0;  // number of lines

  Parts(const Context& of, std::string_view called, const std::optional<RingShape>& shape)
      : context(of), name(called), guessed(!shape), ids(context.random) {
    writer.emplace(LogRing(context, name, shape.value_or(RingShape{})), guessed);
  }

  const LogRing& ring() const { return writer->ring(); }
  const RingShape& shape() const { return ring().shape; }

  void use_shape(const RingShape& shape) {
    guessed = false;
    writer.emplace(LogRing(context, name, shape), false);
  }

  bool is_kept(WallTime at) const {
    const WallTime now = context.clock.wall();
    return at >= now - shape().kept() && at <= now + std::chrono::seconds(shape().chunk_s);
  }

  void check_kept(WallTime at) const {
    if (is_kept(at)) return;
    throw InvalidInput("--at " + format_time(at) + " is outside this log's retention; use a time less than " +
                       format_duration(shape().kept()) + " ago and at most " +
                       format_duration(std::chrono::seconds(shape().chunk_s)) +
                       " ahead, or see --chunk and --chunks");
  }

  WallTime time_of(std::optional<WallTime> at) {
    WallTime now = context.clock.wall();
    if (!at) {
      if (now < last_now && last_now - now < tolerated_step_back) now = last_now;
      last_now = now;
      return now;
    }
    if (!is_kept(*at) && guessed && events == 0) {
      if (const auto shape = newest_in_use(ring())) use_shape(*shape);
    }
    check_kept(*at);
    return *at;
  }

  Flushed flush() {
    if (events == 0) return {};
    const std::string text = std::exchange(lines, {});
    lines.reserve(text.size());
    const std::size_t count = std::exchange(events, 0);
    const auto appended = attempt([&] { return writer->append(chunk, text); });
    const auto& failure = appended.failure();
    if (!failure && appended.value()) return flush_as(*appended.value(), text);
    const std::size_t stored = failure ? writer->stored() : count;
    if (stored == 0) raise(*failure);
    return {.server = context.cluster.placement().server_of(ring().keys.part({chunk, 0})),
            .events = stored,
            .last = id_of_line(text, stored - 1),
            .failure = failure};
  }

  // Divides the lines into the chunks of another shape.
  Flushed flush_as(const RingShape& in_use, std::string_view text) {
    use_shape(in_use);
    std::map<std::int64_t, std::pair<std::string, std::size_t>> chunks;
    while (!text.empty()) {
      const std::string_view line = take_line(text);
      const auto id = EventId::parse(line.substr(0, event_id_size));
      check_kept(id.value().time());
      auto& [some, count] = chunks[in_use.chunk_of(id.value().time())];
      some.append(line).append("\n");
      ++count;
    }
    Flushed all;
    for (auto& [of_time, staged] : chunks) {
      chunk = of_time;
      lines = std::move(staged.first);
      events = staged.second;
      try {
        Flushed one = flush();
        one.events += all.events;
        all = std::move(one);
      } catch (const Failure& failure) {
        if (all.events == 0) throw;
        all.failure = failure;
      }
      if (all.failure) break;
    }
    return all;
  }
};

LogWriter::LogWriter(const Context& context, std::string_view name, const std::optional<RingShape>& shape)
    : parts_(std::make_unique<Parts>(context, name, shape)) {}
LogWriter::~LogWriter() = default;

LogWriter::Put LogWriter::put(std::string_view data, EventData kind, std::optional<WallTime> at,
                              const std::optional<EventId>& as) {
  require(parts_->events == 0, "what was staged is flushed before a single event is put");
  const auto id = stage(data, kind, at, as);
  return {*id, flush().server};
}

EventId LogWriter::new_id() {
  return parts_->ids.next(parts_->time_of(std::nullopt));
}

std::optional<EventId> LogWriter::stage(std::string_view data, EventData kind, std::optional<WallTime> at,
                                        const std::optional<EventId>& as) {
  Parts& parts = *parts_;
  const WallTime time = parts.time_of(at);
  const std::int64_t of_time = parts.shape().chunk_of(time);
  if (parts.events != 0 && of_time != parts.chunk) return std::nullopt;
  const std::size_t before = parts.lines.size();
  const EventId id = as ? *as : parts.ids.next(time);
  require(id != parts.last_id, "ids are unique");
  parts.last_id = id;
  append_event_line(parts.lines, id, data, kind);
  if (parts.events != 0 && parts.lines.size() > PartWriter::batch_size) {
    parts.lines.resize(before);
    return std::nullopt;
  }
  parts.chunk = of_time;
  ++parts.events;
  return id;
}

std::size_t LogWriter::staged() const {
  return parts_->events;
}

LogWriter::Flushed LogWriter::flush() {
  return parts_->flush();
}

}  // namespace mcds
