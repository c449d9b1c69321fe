// The reads of EventLog: a range, a cursor, a poll. Chunk by chunk in read.cpp.
#include <algorithm>
#include <utility>

#include "common/base/bounds.hpp"
#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "common/structures/eventlog/delivery.hpp"
#include "common/structures/eventlog/eventlog.hpp"

namespace mcds {

namespace {

constexpr std::size_t chunks_per_read = 64;
constexpr std::int64_t parts_per_pass = 32;
constexpr std::size_t old_bytes_per_poll = std::size_t{1} << 20;
constexpr std::size_t old_chunks_per_poll = 256;

WallTime to_milliseconds(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time);
}

// The events of a range, until its limit.
class RangeSink final : public LogSink {
 public:
  RangeSink(const LogRange& range, LogSink& sink) : range_(range), sink_(sink) {
    if (range_.first) range_.first = to_milliseconds(*range_.first);
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

std::vector<std::int64_t> span_of(std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> chunks;
  for (std::int64_t chunk = std::max<std::int64_t>(low, 0); chunk <= high; ++chunk) chunks.push_back(chunk);
  return chunks;
}

Failure too_large(const RingShape& shape, std::int64_t chunk, const char* unless) {
  return {ErrorCode::bad_data, "the events from " + format_time(shape.start_of(chunk)) + " to " +
                                   format_time(shape.start_of(chunk + 1)) + " are more than " +
                                   std::to_string(largest_answers >> 20) + " MiB, the limit for one read" +
                                   unless +
                                   "; read around them with --first and --last, and use shorter chunks "
                                   "(--chunk)"};
}

bool is_sole(const std::vector<RingShape>& shapes, const RingShape& shape) {
  return std::all_of(shapes.begin(), shapes.end(), [&](const RingShape& one) { return one == shape; });
}

}  // namespace

// The window of a clock that may be half a chunk off: one chunk more than is promised, and one more than puts
// can reach.
std::pair<std::int64_t, std::int64_t> EventLog::window(WallTime now) const {
  const std::int64_t current = shape_.chunk_of(now);
  return {current - shape_.chunks - 1, current + 2};
}

EventLog::Read EventLog::read(const std::vector<std::int64_t>& chunks, CursorState& state, LogSink& sink,
                              std::optional<std::uint64_t> limit, bool tolerant, bool refills,
                              bool only_if_sole) {
  Read read;
  ChunkDelivery delivery(
      context_.cluster, shape_, copies_.size(), [this](const PartName& name) { return key_of(name); },
      context_.clock.wall(), state, sink, read.summary);
  const auto deliver = [&](const ChunkText& chunk) {
    const std::uint64_t bytes = read.summary.bytes;
    if (delivery.deliver(chunk, limit)) {
      sizes_[chunk.chunk] += read.summary.bytes - bytes;
      return true;
    }
    read.ended_in = chunk.chunk;
    return false;
  };
  std::size_t at_once = chunks_per_read;
  bool looked = false;
  for (std::size_t i = 0, count = 0; i < chunks.size(); i += count) {
    count = std::min(at_once, chunks.size() - i);
    const auto some = std::span(chunks).subspan(i, count);
    const auto texts = read_chunks(some, sink, read.summary, tolerant, refills);
    // Before anything is delivered.
    if (i == 0) {
      refuse_if_left(read.summary);
      const bool there =
          read.summary.directory || std::any_of(texts.begin(), texts.end(),
                                                [](const ChunkText& chunk) { return !chunk.parts.empty(); });
      if (there && read.summary.conf_may_lack() && !std::exchange(looked, true) && elsewhere()) {
        if (!state.ring.empty()) state.ring = keys_.ring();
        read = {};
        count = 0;
        continue;
      }
    }
    if (std::exchange(read.summary.flood, false)) {
      if (count == 1) {
        sizes_[some.front()] = 0;
        const auto unless_declined = [&](const ChunkText& chunk) {
          if (i != 0 || !only_if_sole || is_sole(read.summary.shapes, shape_)) return deliver(chunk);
          read.summary.declined = true;
          return false;
        };
        if (!read_in_passes(some.front(), sink, read.summary, tolerant, unless_declined)) return read;
        continue;
      }
      at_once = std::max<std::size_t>(1, count / 4);
      count = 0;
      continue;
    }
    if (only_if_sole && i == 0 && !is_sole(read.summary.shapes, shape_)) {
      read.summary.declined = true;
      for (const ChunkText& chunk : texts) read.summary.parts += chunk.parts.size();
      return read;
    }
    for (const ChunkText& chunk : texts) {
      sizes_[chunk.chunk] = 0;
      if (!deliver(chunk)) return read;
    }
  }
  return read;
}

// A chunk that is more than is held at a time, some parts after the others. The last part of one pass is in
// the next one too:
// what its writer put twice, at most into the part behind, is delivered once.
bool EventLog::read_in_passes(std::int64_t chunk, LogSink& sink, LogSummary& summary, bool tolerant,
                              const std::function<bool(const ChunkText&)>& deliver) {
  if (copies_.size() > 1 || !formers_.empty())
    throw too_large(shape_, chunk, " of a log in several copies, or whose number of them was changed");
  const std::uint64_t chunks = summary.chunks;
  for (PartWindow window{.count = parts_per_pass};;) {
    ChunkReader reader(copies_.at(0), shape_, keys_, true, tolerant, sink, summary);
    const auto texts = reader.read(std::span(&chunk, 1), window);
    if (std::exchange(summary.flood, false)) {
      if (window.count == 1) throw too_large(shape_, chunk, " of one part");
      window.count = std::max<std::int64_t>(1, window.count / 4);
      continue;
    }
    refuse_if_left(summary);
    if (!deliver(texts.front())) return false;
    summary.chunks = chunks + 1;
    if (!reader.goes_on()) return true;
    window.first += std::max<std::int64_t>(1, window.count - 1);
  }
}

LogSummary EventLog::fetch(const LogRange& range, LogSink& sink) {
  const WallTime now = context_.clock.wall();
  auto [low, high] = window(now);
  std::optional<WallTime> first = range.first;
  if (range.after) first = std::max(first.value_or(WallTime{}), range.after->time());
  const WallTime kept_from = shape_.start_of(low + 1);
  if (first && *first < kept_from) {
    sink.gap({LogGap::Reason::expired, *first, std::min(kept_from, range.last.value_or(kept_from))});
  }
  if (first) low = std::max(low, shape_.chunk_of(*first));
  if (range.last) high = std::min(high, shape_.chunk_of(*range.last));
  CursorState state;
  RangeSink in_range(range, sink);
  const auto all = [&] {
    return read(span_of(low, high), state, in_range, std::nullopt, false, true, range.only_if_sole).summary;
  };
  LogSummary summary = all();
  if (summary.declined) return summary;
  if (summary.found_nothing() && elsewhere()) summary = all();
  summary.events = in_range.events();
  return summary;
}

LogSummary EventLog::deliver(CursorState& state, LogSink& sink, std::optional<std::uint64_t> limit,
                             bool tolerant) {
  const WallTime now = context_.clock.wall();
  const auto [low, high] = window(now);
  adopt(state, now, sink);
  Read done = read(span_of(low, high), state, sink, limit, tolerant, true);
  if (done.summary.found_nothing() && elsewhere()) {
    state.ring = keys_.ring();
    done = read(span_of(low, high), state, sink, limit, tolerant, true);
  }
  if (done.ended_in) {
    state.seen = std::min(now, shape_.start_of(*done.ended_in));
  } else if (done.summary.unreachable.empty()) {
    state.seen = now;
  } else if (!state.seen) {
    state.seen = now;  // a new reader was promised no history of servers that do not answer
  }
  return done.summary;
}

// Checks that the cursor is this log's, and reports what expired since it was last here.
void EventLog::adopt(CursorState& state, WallTime now, LogSink& sink) {
  if (!state.ring.empty() && state.ring != keys_.ring())
    follow(state);
  else
    state.tell_copies_apart(copies_.size());
  if (!state.ring.empty() && state.ring != keys_.ring()) {
    throw Failure(ErrorCode::bad_data, "the cursor belongs to " + state.ring + ", not to " + keys_.ring() +
                                           "; give another file, or remove it to read the whole log again");
  }
  state.ring = keys_.ring();
  forget_old(state, now);
  const std::int64_t low = window(now).first;
  const WallTime kept_from = shape_.start_of(low + 1);
  if (state.seen && shape_.chunk_of(*state.seen) < low + 1) {
    sink.gap({LogGap::Reason::expired, *state.seen, kept_from});
    state.seen = kept_from;
  }
}

// The cursor belongs to the log under another number of copies: under one that it had before, or under keys
// from before they said it, or under one whose events have all expired.
void EventLog::follow(CursorState& state) {
  for (int look = 0; look < 2; ++look) {
    remember(read_conf().all());
    if (take_over(state)) return;
    if (look == 0 && !elsewhere()) break;
  }
  state.tell_copies_apart(copies_.size());
  if (state.ring == keys_.ring()) return;
  if (state.ring != unmarked_ring() && !is_numbered_otherwise(state.ring)) return;
  // What was delivered must not be forgotten only because the copy that tells of its ring is silent, or was
  // until now.
  for (const Reply& conf : execute_copies(context_, Request::get(keys_.conf()))) {
    if (expect_read(context_.cluster, conf).outcome == Outcome::hit)
      remember(parse_in_use(conf.value, context_.clock.wall()));
  }
  if (take_over(state)) return;
  state.parts.clear();
  state.lost.clear();
  state.early.clear();
  state.ring = keys_.ring();
}

bool EventLog::take_over(CursorState& state) const {
  for (const FormerRing& former : formers_) {
    if (!(former.shape == shape_) || keys_of(former).ring() != state.ring) continue;
    state.tell_copies_apart(former.number.copies);
    state.change_rings(former.number.ring(), LogNumber{copies_.size(), kept_.is_unmarked()}.ring());
    state.ring = keys_.ring();
    return true;
  }
  return false;
}

// Two chunks beyond what clocks half a chunk off may read, and by the earlier of this reader's clock and the
// last one's: what a clock that is ahead takes for old, another still reads, and must know that it was
// delivered.
void EventLog::forget_old(CursorState& state, WallTime now) const {
  state.forget_before(window(std::min(now, state.seen.value_or(now))).first - 2);
}

LogSummary EventLog::poll(CursorState& state, LogSink& sink) {
  const WallTime now = context_.clock.wall();
  const auto [low, high] = window(now);
  const bool behind = !state.seen || *state.seen < now - shape_.kept() / 2;
  if (behind || state.ring != keys_.ring()) return deliver(state, sink, std::nullopt, true);
  forget_old(state, now);
  sizes_.erase(sizes_.begin(), sizes_.lower_bound(low));
  const std::int64_t recent = std::max(low, high - 3);
  std::vector<std::int64_t> chunks;
  if (turn_ <= low) {
    turn_ = low;
    turn_began_ = now;
  }
  for (std::size_t bytes = 0;
       turn_ < recent && bytes < old_bytes_per_poll && chunks.size() < old_chunks_per_poll; ++turn_) {
    const auto size = sizes_.find(turn_);
    if (size != sizes_.end()) bytes += size->second;
    chunks.push_back(turn_);
  }
  for (std::int64_t chunk = recent; chunk <= high; ++chunk) chunks.push_back(chunk);
  LogSummary summary = read(chunks, state, sink, std::nullopt, true, false).summary;
  if (turn_ >= recent) {
    if (summary.unreachable.empty()) state.seen = turn_began_;
    turn_ = 0;
  }
  return summary;
}

}  // namespace mcds
