// The puts of a log: lines are staged, and appended to a chunk of every copy by part_writer.cpp.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/rely.hpp"
#include "common/base/units.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

// A process's events keep their order although its clock is set back a little.
constexpr auto tolerated_step_back = std::chrono::seconds(1);

class Unheard final : public LogSink {
 public:
  bool event(const EventLine&) override { return true; }
  void gap(const LogGap&) override {}
  void damaged(const CorruptData&) override {}
};

std::optional<EventId> id_of_line(std::string_view lines, std::size_t number) {
  for (std::size_t before = 0; before < number; ++before) take_line(lines);
  return EventId::parse(lines.substr(0, event_id_size));
}

}  // namespace

struct LogWriter::Parts {
  LogPlace place;
  EventIdSource ids;
  EventId last_id{};
  WallTime last_now{};
  std::string lines{};
  std::int64_t chunk = 0;  // of the lines
  std::size_t events = 0;  // so many

  Parts(Context context, std::string_view name, const std::optional<RingShape>& shape)
      : place(std::move(context), name, shape), ids(place.context.random) {}

  bool is_kept(WallTime at) const {
    const WallTime now = place.context.clock.wall();
    return at >= now - place.shape.kept() && at <= now + std::chrono::seconds(place.shape.chunk_s);
  }

  void check_kept(WallTime at) const {
    if (is_kept(at)) return;
    throw InvalidInput("--at: " + format_time(at) + " is outside the time that this log keeps, from " +
                       format_duration(place.shape.kept()) + " ago to " +
                       format_duration(std::chrono::seconds(place.shape.chunk_s)) +
                       " ahead; see --chunk and --chunks");
  }

  WallTime time_of(std::optional<WallTime> at) {
    WallTime now = place.context.clock.wall();
    if (!at) {
      if (now < last_now && last_now - now < tolerated_step_back) now = last_now;
      last_now = now;
      return now;
    }
    if (!is_kept(*at) && place.guessed && events == 0) {
      if (const auto shape = place.newest_in_use()) place.use_shape(shape);
    }
    check_kept(*at);
    return *at;
  }

  bool perhaps() const { return std::ranges::any_of(place.writers, std::mem_fn(&PartWriter::perhaps)); }

  using OfCopy = Result<PartWriter::Appended>;
  Flushed flush() {
    if (events == 0) return {};
    const std::string text = std::exchange(lines, {});
    lines.reserve(text.size());
    const std::size_t count = std::exchange(events, 0);
    for (PartWriter& writer : place.writers) writer.begin_lines();
    // Of each copy; not done: nowhere to be put so far.
    std::vector<OfCopy> done(place.copies.size(), PartWriter::Appended{.done = false});
    const auto nowhere = [](const OfCopy& one) { return !one.failure() && !one.value().done; };
    std::optional<Failure> refusal;
    bool creates = false;
    // Once more for copies that would have to begin the log, after a look whether it is kept elsewhere; where
    // that was found, its own shape may be another.
    for (int round = 0; round < 3; ++round) {
      static_cast<void>(place.copies.each([&](std::size_t copy) {
        if (nowhere(done[copy]))
          done[copy] = attempt([&] { return place.writers[copy].append(chunk, text); });
      }));
      if (std::ranges::none_of(done, nowhere)) break;
      bool somewhere = false;
      std::optional<LogMove> left;
      std::optional<RingShape> meant;
      for (const OfCopy& one : done) {
        somewhere = somewhere || (!one.failure() && one.value().done);
        if (nowhere(one) && one.value().left) left = one.value().left;
        if (nowhere(one) && one.value().meant) meant = one.value().meant;
      }
      refusal = left ? attempt([&] { place.refuse(*left); }).failure() : std::nullopt;
      if (refusal) {
        if (!somewhere && perhaps())
          throw UnknownOutcome("no reply to an append; the event may be in the log");
        if (!somewhere) raise(*refusal);
        // What one copy got before the log left is put into the others too.
        for (PartWriter& writer : place.writers) writer.follow();
        place.let_begin();
        continue;
      }
      // What is stored, perhaps, gets no other shape any more.
      if (meant && !somewhere && !perhaps()) return flush_as(*meant, text);
      if (somewhere || perhaps()) {
        for (PartWriter& writer : place.writers) writer.settle();
      }
      if (somewhere) {
        place.let_begin();
        continue;
      }
      const auto looked = attempt([&] { return place.elsewhere(); });
      if (looked.failure() && perhaps())
        throw UnknownOutcome("no reply to an append, then: " + std::string(looked.failure()->what()),
                             looked.failure()->server());
      looked.value();
      creates = true;
    }
    std::vector<std::optional<Failure>> failures;
    for (const OfCopy& one : done) {
      rely_on(!nowhere(one) || refusal, "what was put nowhere was refused");
      failures.push_back(nowhere(one) ? refusal : one.failure());
    }
    return conclude(text, count, failures, creates);
  }

  Flushed conclude(std::string_view text, std::size_t count, std::span<const std::optional<Failure>> failures,
                   bool creates) {
    const auto failure = failure_of(Part::changing, failures);
    const std::size_t stored = failure ? stored_at_least() : count;
    rely_on(stored <= count, "no copy has more lines than were put");
    if (stored == 0) raise(*failure);
    if (!failure) settle_begun(failures);
    if (creates && !failure) place.kept.confirm([&] { return take_back(text, failures); });
    const std::string key = place.keys.part({chunk, 0});
    return {.server = place.context.cluster.placement().server_of(key),
            .copies = copy_outcomes(place.context, key, failures),
            .events = stored,
            .last = id_of_line(text, stored - 1),
            .failure = failure};
  }

  // What a log that began with these lines consists of, as long as nobody else has added anything.
  bool take_back(std::string_view text, std::span<const std::optional<Failure>> failures) const {
    const PartName name{chunk, 0};
    const std::vector<Request> gets{Request::gets(place.keys.part(name)),
                                    Request::gets(place.keys.directory(name.chunk / chunks_per_directory)),
                                    Request::gets(place.keys.conf())};
    const auto taken = place.copies.each([&](std::size_t copy) {
      std::string incarnation;
      const auto is_ours = [&](std::size_t get, const Reply& there) {
        if (get == 2) return parse_in_use(there.value, place.context.clock.wall()).size() <= 1;
        if (get == 1) {
          LogDirectory directory;
          directory.add(there.value);
          return directory.lines() == 1 && directory.knows(name, incarnation);
        }
        const auto header = parse_part_header(there.value, name);
        if (header) incarnation = header->incarnation;
        return header && there.value.substr(header->size) == text;
      };
      return !failures[copy] && mcds::take_back(place.copies.at(copy).cluster, gets, is_ours, true);
    });
    return taken.count(std::identity()) == place.copies.size();
  }

  // In as many copies as a change must be. A server whose items are small takes the lines in pieces, the
  // first ones first.
  std::size_t stored_at_least() const {
    std::vector<std::size_t> stored;
    for (const PartWriter& writer : place.writers) stored.push_back(writer.stored());
    std::sort(stored.rbegin(), stored.rend());
    return stored[quorum(stored.size()) - 1];
  }

  // Another shape divides the lines into other chunks.
  Flushed flush_as(const RingShape& shape, std::string_view text) {
    place.use_shape(shape);
    std::map<std::int64_t, std::pair<std::string, std::size_t>> chunks;
    while (!text.empty()) {
      const std::string_view line = take_line(text);
      const auto id = EventId::parse(line.substr(0, event_id_size));
      check_kept(id.value().time());
      auto& [some, count] = chunks[shape.chunk_of(id.value().time())];
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

  // What readers of other copies need to know of a chunk that began with this put. A copy whose chunk began,
  // while another went on with one, has lost what came before: it would vouch for the chunk when the other is
  // lost next. Where a part could not be written the shape is noted all the same: the conf key of that copy
  // lies elsewhere, and may be the only one that can be reached.
  void settle_begun(std::span<const std::optional<Failure>> failures) {
    bool began = false;
    bool went_on = false;
    for (std::size_t i = 0; i < failures.size(); ++i) {
      const bool begun = place.writers[i].take_begun();
      began = began || begun;
      went_on = went_on || (!begun && !failures[i]);
    }
    for (std::size_t i = 0; began && i < failures.size(); ++i) {
      if (failures[i])
        note_in_use(place.copies.at(i), place.keys.conf(),
                    {place.shape.text(), place.shape.expiry_of(chunk)});
    }
    if (!began || !went_on) return;
    Unheard sink;
    LogReading reading{sink, true};
    // What was put is in the log; the next read refills.
    static_cast<void>(attempt([&] { read_chunks(place, std::span(&chunk, 1), reading); }));
  }
};

LogWriter::LogWriter(Context context, std::string_view name, std::optional<RingShape> shape)
    : parts_(std::make_unique<Parts>(std::move(context), name, shape)) {}
LogWriter::~LogWriter() = default;

LogWriter::Put LogWriter::put(std::string_view data, EventData kind, std::optional<WallTime> at) {
  rely_on(parts_->events == 0, "what was staged is flushed before a single event is put");
  const auto id = stage(data, kind, at);
  Flushed flushed = flush();
  return {*id, flushed.server, std::move(flushed.copies)};
}

std::optional<EventId> LogWriter::stage(std::string_view data, EventData kind, std::optional<WallTime> at) {
  Parts& parts = *parts_;
  const WallTime time = parts.time_of(at);
  const std::int64_t of_time = parts.place.shape.chunk_of(time);
  if (parts.events != 0 && of_time != parts.chunk) return std::nullopt;
  const std::size_t before = parts.lines.size();
  const EventId id = parts.ids.next(time);
  rely_on(id != parts.last_id, "ids are unique");
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
