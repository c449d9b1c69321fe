// Reads a log for a range, a cursor or a poll; read.cpp reads the chunks.

#include "common/base/bounds.hpp"
#include "common/base/units.hpp"
#include "common/structures/eventlog/cursor.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

constexpr std::size_t chunks_per_read = 64;
constexpr std::int64_t parts_per_pass = 32;
constexpr std::size_t old_bytes_per_poll = std::size_t{1} << 20;
constexpr std::size_t old_chunks_per_poll = 256;

// Passes on the events of a range, up to its limit.
class RangeSink final : public LogSink {
 public:
  RangeSink(const LogRange& range, LogSink& sink) : range_(range), sink_(sink) {
    if (range_.first) range_.first = std::chrono::floor<std::chrono::milliseconds>(*range_.first);
  }
  bool event(const EventLine& event) override {
    const WallTime at = event.id.time();
    if (range_.first && at < *range_.first) return true;
    if (range_.last && at > *range_.last) return true;
    if (range_.after && event.id <= *range_.after) return true;
    if (range_.limit && *range_.limit == 0) return false;
    if (range_.limit) --*range_.limit;
    ++events_;
    return sink_.event(event) && range_.limit.value_or(1) != 0;
  }
  void gap(const LogGap& gap) override { sink_.gap(gap); }
  void damaged(const CorruptData& damage) override { sink_.damaged(damage); }
  std::uint64_t events() const { return events_; }

 private:
  LogRange range_;
  LogSink& sink_;
  std::uint64_t events_ = 0;
};

// Receives what nobody asked for.
class NoSink final : public LogSink {
 public:
  bool event(const EventLine&) override { return true; }
  void gap(const LogGap&) override {}
  void damaged(const CorruptData&) override {}
};

std::vector<std::int64_t> span_of(std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> chunks;
  for (std::int64_t chunk = std::max<std::int64_t>(low, 0); chunk <= high; ++chunk) chunks.push_back(chunk);
  return chunks;
}

Failure too_large(const RingShape& shape, std::int64_t chunk) {
  return {ErrorCode::bad_data, "the events from " + format_time(shape.start_of(chunk)) + " to " +
                                   format_time(shape.start_of(chunk + 1)) + " are more than " +
                                   std::to_string(max_answers_size >> 20) +
                                   " MiB, the limit for one read of one part; read around them with --first "
                                   "and --last, and use shorter chunks (--chunk)"};
}

bool is_sole(const std::vector<RingShape>& shapes, const RingShape& shape) {
  return std::ranges::all_of(shapes, [&](const RingShape& one) { return one == shape; });
}

}  // namespace

struct LogReader::Parts {
  LogRing ring;
  // The state of poll(): bytes of each chunk when last read, the older chunk whose turn it is, and the start
  // of that turn.
  std::map<std::int64_t, std::size_t> sizes{};
  std::int64_t turn = 0;
  WallTime turn_began{};

  Parts(const Context& context, std::string_view name, const RingShape& shape) : ring(context, name, shape) {}

  const RingShape& shape() const { return ring.shape; }

  // Returns the window for a clock that may be half a chunk off: one chunk more than is promised, and one
  // more than puts can reach.
  std::pair<std::int64_t, std::int64_t> window(WallTime now) const {
    const std::int64_t current = shape().chunk_of(now);
    return {current - shape().chunks - 1, current + 2};
  }

  // Drops chunks two before those that clocks half a chunk off may read, by the earlier of this reader's
  // clock and the last one's: a chunk that is old by a fast clock may still be read by another, which must
  // know that it was delivered.
  void forget_old(CursorState& state, WallTime now) const {
    state.forget_before(window(std::min(now, state.seen.value_or(now))).first - 2);
  }

  struct Wanted {
    std::vector<std::int64_t> chunks;
    std::optional<std::uint64_t> limit{};
    bool only_if_sole = false;
  };
  // Returns the chunk in which the limit or the sink ended the read.
  std::optional<std::int64_t> read(Wanted wanted, CursorState& state, LogReading& reading) {
    LogSummary& found = reading.found;
    std::optional<std::int64_t> ended_in;
    const auto deliver = [&](const ChunkText& chunk) {
      const std::uint64_t bytes = found.bytes;
      if (deliver_chunk(ring, chunk, state, reading, wanted.limit)) {
        sizes[chunk.chunk] += found.bytes - bytes;
        return true;
      }
      ended_in = chunk.chunk;
      return false;
    };
    std::size_t at_once = chunks_per_read;
    for (std::size_t i = 0, count = 0; i < wanted.chunks.size(); i += count) {
      count = std::min(at_once, wanted.chunks.size() - i);
      const auto some = std::span(wanted.chunks).subspan(i, count);
      const auto texts = read_chunks(ring, some, reading);
      // The read can be declined only before anything is delivered.
      const bool declines = i == 0 && wanted.only_if_sole;
      if (std::exchange(reading.flood, false)) {
        if (count == 1) {
          sizes[some.front()] = 0;
          if (!read_in_passes(some.front(), reading, declines, deliver)) return ended_in;
          continue;
        }
        at_once = std::max<std::size_t>(1, count / 4);
        count = 0;
        continue;
      }
      found.declined = declines && !is_sole(found.shapes, shape());
      for (const ChunkText& chunk : texts) {
        if (found.declined) {
          found.parts += chunk.parts.size();
          continue;
        }
        sizes[chunk.chunk] = 0;
        if (!deliver(chunk)) return ended_in;
      }
      if (found.declined) break;
    }
    return ended_in;
  }

  // Reads a chunk that exceeds the memory limit in passes of some parts each. The last part of a pass is read
  // again in the next one: a writer puts an event twice at most into the following part, so it is delivered
  // once.
  template <typename Deliver>
  bool read_in_passes(std::int64_t chunk, LogReading& reading, bool declines, const Deliver& deliver) {
    LogSummary& found = reading.found;
    const std::uint64_t chunks = found.chunks;
    for (PartWindow window{.count = parts_per_pass};;) {
      const auto texts = read_chunks(ring, std::span(&chunk, 1), reading, window);
      if (std::exchange(reading.flood, false)) {
        if (window.count == 1) throw too_large(shape(), chunk);
        window.count = std::max<std::int64_t>(1, window.count / 4);
        continue;
      }
      found.declined = declines && !is_sole(found.shapes, shape());
      if (found.declined || !deliver(texts.front())) return false;
      found.chunks = chunks + 1;
      if (!texts.front().goes_on) return true;
      window.first += std::max<std::int64_t>(1, window.count - 1);
    }
  }

  // Checks that the cursor belongs to this log, and reports what expired since it was used last.
  void adopt(CursorState& state, WallTime now, LogSink& sink) {
    const std::string& ours = ring.keys.ring();
    if (!state.ring.empty() && state.ring != ours) {
      throw Failure(ErrorCode::bad_data,
                    "the cursor belongs to " + state.ring + ", not to " + ours +
                        "; use another file, or remove the cursor to read the log from the start");
    }
    state.ring = ours;
    forget_old(state, now);
    const std::int64_t low = window(now).first;
    const WallTime kept_from = shape().start_of(low + 1);
    if (state.seen && shape().chunk_of(*state.seen) < low + 1) {
      sink.gap({LogGap::Reason::expired, *state.seen, kept_from});
      state.seen = kept_from;
    }
  }
};

LogReader::LogReader(const Context& context, std::string_view name, const RingShape& shape)
    : parts_(std::make_unique<Parts>(context, name, shape)) {}
LogReader::~LogReader() = default;

const RingShape& LogReader::shape() const {
  return parts_->shape();
}

LogSummary LogReader::fetch(const LogRange& range, LogSink& sink) {
  const WallTime now = parts_->ring.context.clock.wall();
  auto [low, high] = parts_->window(now);
  std::optional<WallTime> first = range.first;
  if (range.after) first = std::max(first.value_or(WallTime{}), range.after->time());
  const WallTime kept_from = shape().start_of(low + 1);
  if (first && *first < kept_from) {
    sink.gap({LogGap::Reason::expired, *first, std::min(kept_from, range.last.value_or(kept_from))});
  }
  if (first) low = std::max(low, shape().chunk_of(*first));
  if (range.last) high = std::min(high, shape().chunk_of(*range.last));
  NoSink nobody;
  const bool empty = low > high;
  if (empty) low = high = shape().chunk_of(now);  // one chunk shows whether there is a log
  CursorState state;
  RangeSink in_range(range, empty ? nobody : sink);
  LogReading reading{in_range};
  parts_->read({span_of(low, high), std::nullopt, range.only_if_sole}, state, reading);
  reading.found.events = in_range.events();
  return std::move(reading.found);
}

LogSummary LogReader::deliver(CursorState& state, LogSink& sink, std::optional<std::uint64_t> limit,
                              bool tolerant) {
  const WallTime now = parts_->ring.context.clock.wall();
  const auto [low, high] = parts_->window(now);
  parts_->adopt(state, now, sink);
  LogReading reading{sink, tolerant};
  const auto ended_in = parts_->read({span_of(low, high), limit}, state, reading);
  if (ended_in) {
    state.seen = std::min(now, shape().start_of(*ended_in));
  } else if (reading.found.unreachable.empty() || !state.seen) {
    state.seen = now;  // a new reader was promised no history of servers that do not answer
  }
  return std::move(reading.found);
}

LogSummary LogReader::poll(CursorState& state, LogSink& sink) {
  Parts& parts = *parts_;
  const WallTime now = parts.ring.context.clock.wall();
  const auto [low, high] = parts.window(now);
  const bool behind = !state.seen || *state.seen < now - shape().kept() / 2;
  if (behind || state.ring != parts.ring.keys.ring()) return deliver(state, sink, std::nullopt, true);
  parts.forget_old(state, now);
  parts.sizes.erase(parts.sizes.begin(), parts.sizes.lower_bound(low));
  const std::int64_t recent = std::max(low, high - 3);
  std::vector<std::int64_t> chunks;
  if (parts.turn <= low) {
    parts.turn = low;
    parts.turn_began = now;
  }
  for (std::size_t bytes = 0;
       parts.turn < recent && bytes < old_bytes_per_poll && chunks.size() < old_chunks_per_poll;
       ++parts.turn) {
    const auto size = parts.sizes.find(parts.turn);
    if (size != parts.sizes.end()) bytes += size->second;
    chunks.push_back(parts.turn);
  }
  for (std::int64_t chunk = recent; chunk <= high; ++chunk) chunks.push_back(chunk);
  LogReading reading{sink, true};
  parts.read({chunks}, state, reading);
  if (parts.turn >= recent) {
    if (reading.found.unreachable.empty()) state.seen = parts.turn_began;
    parts.turn = 0;
  }
  return std::move(reading.found);
}

}  // namespace mcds
