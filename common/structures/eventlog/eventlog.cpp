#include "common/structures/eventlog/eventlog.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "common/base/units.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/eventlog/read.hpp"
#include "common/structures/eventlog/recopy.hpp"

namespace mcds {

namespace {

// A process's events keep their order although its clock is set back a little.
constexpr int most_recopies = 8;
constexpr auto tolerated_step_back = std::chrono::seconds(1);

class Unheard final : public LogSink {
 public:
  bool event(const EventLine&) override { return true; }
  void gap(const LogGap&) override {}
  void damaged(const CorruptData&) override {}
};

// Of conf values.
std::vector<InUse> united(std::span<const std::string> confs, WallTime now) {
  std::vector<InUse> all;
  for (const std::string& conf : confs) all = mcds::united(std::move(all), parse_in_use(conf, now));
  return all;
}

// What all of it says counts where nothing of it is in use any more: the server that still has it has a
// slower clock.
bool has_left(std::span<const std::string> confs, std::size_t copies, WallTime now) {
  const auto in_use = united(confs, now);
  return move_away(in_use.empty() ? united(confs, WallTime{}) : in_use, copies).has_value();
}

// Of two conf values.
bool share_a_shape(std::string_view one, std::string_view other) {
  const auto shapes = parse_conf(one, WallTime{});
  const auto others = parse_conf(other, WallTime{});
  return std::any_of(shapes.begin(), shapes.end(), [&](const RingShape& shape) {
    return std::find(others.begin(), others.end(), shape) != others.end();
  });
}

std::optional<EventId> id_of_line(std::string_view lines, std::size_t number) {
  for (std::size_t before = 0; before < number; ++before) take_line(lines);
  return EventId::parse(lines.substr(0, event_id_size));
}

}  // namespace

EventLog::EventLog(Context context, std::string_view name, RingShape shape)
    : copies_(context),
      context_(std::move(context)),
      name_(name),
      kept_(
          context_, "eventlog", name, ":conf",
          [](const auto& one, const auto& other) { return share_a_shape(one, other); },
          [context = context_, name = std::string(name)](Recopying& drop) {
            LogRecopy(context, name).end(drop);
          },
          [&clock = context_.clock](std::span<const std::string> confs, std::size_t copies) {
            return has_left(confs, copies, clock.wall());
          }),
      shape_(shape),
      keys_(kept_.key(), shape),
      ids_(context_.random) {
  take_keys();
}

void EventLog::take_keys() {
  keys_ = LogKeys(kept_.key(), shape_);
  writers_.clear();
  for (std::size_t i = 0; i < copies_.size(); ++i)
    writers_.emplace_back(copies_.at(i), shape_, keys_, copies_.size());
  if (guessed_) guess_shape();
}

void EventLog::guess_shape() {
  guessed_ = true;
  for (LogWriter& writer : writers_) writer.guess();
}

void EventLog::use_shape(const RingShape& shape) {
  guessed_ = false;
  shape_ = shape;
  take_keys();
}

std::optional<RingShape> EventLog::newest_in_use() const {
  std::optional<RingShape> newest;
  for (const InUse& one : read_conf().all()) {
    if (const auto shape = RingShape::parse(one.what)) newest = shape;
  }
  return newest;
}

ConfCopies EventLog::read_conf() const {
  ConfCopies confs;
  for (const Reply& conf : execute_copies(context_, Request::get(keys_.conf()))) {
    const bool hit = conf.outcome == Outcome::hit;
    confs.copies.push_back(conf.failed()
                               ? std::nullopt
                               : std::optional(parse_in_use(hit ? conf.value : "", context_.clock.wall())));
  }
  return confs;
}

bool EventLog::is_numbered_otherwise(std::string_view ring) const {
  for (std::size_t copies = 1; copies <= most_copies; ++copies) {
    if (LogKeys(LogNumber{copies}.key(context_, name_), shape_).ring() == ring) return true;
  }
  return false;
}

std::string EventLog::unmarked_ring() const {
  return LogKeys(kept_.unmarked_key(), shape_).ring();
}

// If nothing is found: whether it is under other keys, which are used from now on.
bool EventLog::elsewhere() {
  bool found = kept_.elsewhere();
  if (!found) {
    const auto move = complete_left(false);
    if (move && move->to != copies_.size()) kept_.refuse(move->to);
    found = move.has_value();
  }
  if (found) take_keys();
  let_begin();
  return found;
}

// A copy of the conf key that is missing gets what the others say of former rings. If one does not answer it
// is begun all the same, because it tells readers of the shape; they look for what it may not say:
// LogSummary::conf_may_lack.
void EventLog::let_begin() {
  if (copies_.size() > 1) {
    const auto write = [&](const ConfCopies& confs, std::size_t copy) {
      add_to_conf(copies_.at(copy), keys_.conf(), confs.all());
    };
    static_cast<void>(repair(
        copies_, context_.clock, [&](bool) { return read_conf(); }, write));
  }
  for (LogWriter& writer : writers_) writer.may_begin();
}

// If the last look found only places that the log has left: what was begun then is completed.
std::optional<LogMove> EventLog::complete_left(bool everywhere) {
  const auto move = last_move(united(kept_.take_left(), context_.clock.wall()));
  if (move) LogRecopy(context_, name_).complete(move->from, everywhere);
  return move;
}

void EventLog::refuse_if_left(const LogSummary& summary) {
  if (const auto move = move_away(summary.conf, copies_.size())) refuse(*move);
}

void EventLog::refuse(const LogMove& move) {
  // Who is told a number finds the log there, and what it had before.
  LogRecopy(context_, name_).complete(move.from, false);
  // It may have been changed again since.
  static_cast<void>(kept_.elsewhere());
  kept_.refuse(move.to);
}

// If one of the writers found that the log has left.
std::optional<Failure> EventLog::refusal_of_writers() {
  std::optional<LogMove> left;
  for (LogWriter& writer : writers_) {
    if (auto move = writer.take_left()) left = move;
  }
  if (!left) return std::nullopt;
  return attempt([&] { refuse(*left); }).failure();
}

EventLog::Recopied EventLog::recopy() {
  const LogRecopy recopy(context_, name_);
  for (int attempt = 0; attempt < most_recopies; ++attempt) {
    const auto place = kept_.only_place();
    if (!place) {
      if (complete_left(true)) continue;
      recopy.expect_answers();
      return {};
    }
    if (place->copies == copies_.size()) {
      // Whoever began it may not have come to its end.
      if (const auto move = last_move(read_conf().all())) recopy.complete(move->from, true);
      return {.found = true, .from = place->copies};
    }
    const LogNumber from{place->copies, place->unmarked};
    const bool ours = recopy.leave(from);
    recopy.complete(from, true);
    if (ours) return {.found = true, .from = from.copies};
  }
  throw Contention("others change the number of copies of the eventlog '" + name_ + "'; try again");
}

bool EventLog::drop() {
  // Another's, or one that was left, comes to its end first.
  const bool begun = Recopying(context_, "eventlog", name_).look().has_value();
  static_cast<void>(kept_.places());
  return LogRecopy(context_, name_).drop() || begun;
}

bool EventLog::is_kept(WallTime at) const {
  const WallTime now = context_.clock.wall();
  return at >= now - shape_.kept() && at <= now + std::chrono::seconds(shape_.chunk_s);
}

void EventLog::check_kept(WallTime at) const {
  if (is_kept(at)) return;
  throw InvalidInput("--at: " + format_time(at) + " is outside the time that this log keeps, from " +
                     format_duration(shape_.kept()) + " ago to " +
                     format_duration(std::chrono::seconds(shape_.chunk_s)) +
                     " ahead; see --chunk and --chunks");
}

WallTime EventLog::time_of(std::optional<WallTime> at) {
  WallTime now = context_.clock.wall();
  if (!at) {
    if (now < last_now_ && last_now_ - now < tolerated_step_back) now = last_now_;
    last_now_ = now;
    return now;
  }
  if (!is_kept(*at) && guessed_ && staged_events_ == 0) {
    if (const auto shape = newest_in_use()) use_shape(*shape);
  }
  check_kept(*at);
  return *at;
}

EventLog::Put EventLog::put(std::string_view data, EventData kind, std::optional<WallTime> at) {
  assert(staged_events_ == 0);
  const auto id = stage(data, kind, at);
  Flushed flushed = flush();
  return {*id, flushed.server, std::move(flushed.copies)};
}

std::optional<EventId> EventLog::stage(std::string_view data, EventData kind, std::optional<WallTime> at) {
  const WallTime time = time_of(at);
  const std::int64_t chunk = shape_.chunk_of(time);
  if (staged_events_ != 0 && chunk != staged_chunk_) return std::nullopt;
  const std::size_t before = staged_lines_.size();
  const EventId id = ids_.next(time);
  append_event_line(staged_lines_, id, data, kind);
  if (staged_events_ != 0 && staged_lines_.size() > LogWriter::batch_size) {
    staged_lines_.resize(before);
    return std::nullopt;
  }
  staged_chunk_ = chunk;
  ++staged_events_;
  return id;
}

EventLog::Flushed EventLog::flush() {
  if (staged_events_ == 0) return {};
  const std::string lines = std::exchange(staged_lines_, {});
  staged_lines_.reserve(lines.size());
  const std::size_t events = std::exchange(staged_events_, 0);
  for (LogWriter& writer : writers_) writer.begin_lines();
  std::vector<std::optional<std::size_t>> servers(copies_.size());
  std::vector<std::optional<Failure>> failures(copies_.size());
  bool creates = false;
  // Once more for copies that would have to begin the log, after a look whether it is kept elsewhere; where
  // that was found, its own shape may be another.
  for (int round = 0; round < 3; ++round) {
    const auto tried = copies_.each([&](std::size_t copy) {
      if (!servers[copy] && !failures[copy]) servers[copy] = writers_[copy].append(staged_chunk_, lines);
    });
    bool nowhere = false;
    bool somewhere = false;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (tried[i].failure()) failures[i] = tried[i].failure();
      somewhere = somewhere || servers[i];
      nowhere = nowhere || (!servers[i] && !failures[i]);
    }
    if (!nowhere) break;
    if (const auto refusal = refusal_of_writers()) {
      const auto perhaps = [](const LogWriter& writer) { return writer.perhaps(); };
      if (!somewhere && std::any_of(writers_.begin(), writers_.end(), perhaps))
        throw UnknownOutcome("no reply to an append; the event may be in the log");
      if (!somewhere) raise(*refusal);
      // What one copy got before the log left is put into the others too.
      if (round < 2) {
        for (LogWriter& writer : writers_) writer.follow();
        let_begin();
        continue;
      }
      for (std::size_t i = 0; i < servers.size(); ++i) {
        if (!servers[i] && !failures[i]) failures[i] = refusal;
      }
      break;
    }
    std::optional<RingShape> meant;
    for (LogWriter& writer : writers_) {
      if (auto shape = writer.take_meant()) meant = shape;
    }
    // What is stored, perhaps, is not refused any more.
    if (somewhere ||
        std::any_of(writers_.begin(), writers_.end(), [](const auto& writer) { return writer.perhaps(); })) {
      for (LogWriter& writer : writers_) writer.settle();
      let_begin();
    } else if (meant) {
      return flush_as(*meant, lines);
    } else {
      static_cast<void>(elsewhere());
      creates = true;
    }
  }
  return conclude_flush(lines, events, failures, creates);
}

EventLog::Flushed EventLog::conclude_flush(std::string_view lines, std::size_t events,
                                           std::span<const std::optional<Failure>> failures, bool creates) {
  const auto failure = failure_of(Part::changing, failures);
  const std::size_t stored = failure ? stored_at_least() : events;
  if (stored == 0) raise(*failure);
  if (!failure) settle_begun(failures);
  if (creates && !failure) kept_.confirm([&] { return take_back(lines, failures); });
  return {.server = context_.cluster.placement().server_of(keys_.part({staged_chunk_, 0})),
          .copies = copy_outcomes(context_, keys_.part({staged_chunk_, 0}), failures),
          .events = stored,
          .last = id_of_line(lines, stored - 1),
          .failure = failure};
}

// What a log that began with these lines consists of, as long as nobody else has added anything.
bool EventLog::take_back(std::string_view lines, std::span<const std::optional<Failure>> failures) const {
  const PartName name{staged_chunk_, 0};
  const auto taken = copies_.each([&](std::size_t copy) {
    if (failures[copy]) return false;
    Cluster& cluster = copies_.at(copy).cluster;
    const std::vector<Request> gets{keys_.of_part(Request::gets(keys_.part(name)), name),
                                    Request::gets(keys_.directory(name.chunk / chunks_per_directory)),
                                    Request::gets(keys_.conf())};
    const auto replies = cluster.execute(gets);
    for (const Reply& reply : replies) expect_read(cluster, reply);
    const auto header = parse_part_header(replies[0].value, name);
    if (!header || replies[0].value.substr(header->size) != lines) return false;
    LogDirectory directory;
    directory.add(replies[1].value);
    if (directory.lines() != 1 || !directory.knows(name, header->incarnation)) return false;
    if (parse_in_use(replies[2].value, context_.clock.wall()).size() > 1) return false;
    for (std::size_t i = 0; i < gets.size(); ++i) {
      if (replies[i].outcome == Outcome::miss) continue;
      Request removal = Request::remove_if(gets[i].key, replies[i].cas);
      removal.with = gets[i].with;
      if (expect(cluster, cluster.execute(removal)).outcome != Outcome::deleted) return false;
    }
    return true;
  });
  return taken.count(std::identity()) == copies_.size();
}

// In as many copies as a change must be. A server whose items are small takes the lines in pieces, the first
// ones first.
std::size_t EventLog::stored_at_least() const {
  std::vector<std::size_t> stored;
  for (const LogWriter& writer : writers_) stored.push_back(writer.stored());
  std::sort(stored.rbegin(), stored.rend());
  return stored[quorum(stored.size()) - 1];
}

// Another shape divides the lines into other chunks.
EventLog::Flushed EventLog::flush_as(const RingShape& shape, std::string_view lines) {
  use_shape(shape);
  std::map<std::int64_t, std::pair<std::string, std::size_t>> chunks;
  while (!lines.empty()) {
    const std::string_view line = take_line(lines);
    const auto id = EventId::parse(line.substr(0, event_id_size));
    check_kept(id.value().time());
    auto& [text, events] = chunks[shape.chunk_of(id.value().time())];
    text.append(line).append("\n");
    ++events;
  }
  Flushed all;
  for (auto& [chunk, staged] : chunks) {
    staged_chunk_ = chunk;
    staged_lines_ = std::move(staged.first);
    staged_events_ = staged.second;
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
void EventLog::settle_begun(std::span<const std::optional<Failure>> failures) {
  bool began = false;
  bool went_on = false;
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    const bool begun = writers_[i].take_begun();
    began = began || begun;
    went_on = went_on || (!begun && !failures[i]);
  }
  for (std::size_t i = 0; began && i < failures.size(); ++i) {
    if (failures[i])
      note_in_use(copies_.at(i), keys_.conf(), {shape_.text(), shape_.expiry_of(staged_chunk_)});
  }
  if (!began || !went_on) return;
  Unheard sink;
  LogSummary summary;
  // What was put is in the log; the next read refills.
  static_cast<void>(
      attempt([&] { return read_chunks(std::span(&staged_chunk_, 1), sink, summary, true, true); }));
}

std::vector<EventLog::KeysOfRing> EventLog::current_keys() {
  static_cast<void>(elsewhere());
  if (guessed_) use_shape(newest_in_use().value_or(shape_));
  remember(read_conf().all());
  const std::int64_t now = shape_.chunk_of(context_.clock.wall());
  const auto keys_of_ring = [&](const LogKeys& ring) {
    std::vector<PlacedKey> keys;
    for (std::int64_t chunk = now - shape_.chunks; chunk <= now + 1; ++chunk)
      keys.push_back({ring.part({chunk, 0})});
    for (std::int64_t group = (now - shape_.chunks) / chunks_per_directory;
         group <= (now + 1) / chunks_per_directory; ++group) {
      keys.push_back({ring.directory(group)});
    }
    keys.push_back({ring.conf()});
    return keys;
  };
  std::vector<KeysOfRing> rings{{copies_.size(), keys_of_ring(keys_)}};
  for (const FormerRing& former : formers_) {
    if (former.shape == shape_) rings.push_back({former.number.copies, keys_of_ring(keys_of(former))});
  }
  return rings;
}

}  // namespace mcds
