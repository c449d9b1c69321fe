// Puts events: stages their lines, and appends these to the parts of a chunk. eventlog.hpp has the layout and
// the guarantees.

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

constexpr int attempts = 3;    // for one append or creation whose replies get lost
constexpr int max_walk = 200;  // steps over parts that other clients fill

bool holds(std::string_view part, std::string_view lines) {
  return part.find(lines.substr(0, event_id_size)) != std::string_view::npos;
}

// A process's events keep their order if its clock is set back by less than this.
constexpr auto tolerated_step_back = std::chrono::seconds(1);

std::optional<EventId> id_of_line(std::string_view lines, std::size_t number) {
  for (std::size_t before = 0; before < number; ++before) take_line(lines);
  return EventId::parse(lines.substr(0, event_id_size));
}

// Appends lines to a chunk: to its last part, or to one that it creates.
class PartWriter {
 public:
  // The maximum size of one append; batches stay below it.
  static constexpr std::size_t batch_size = std::size_t{256} << 10;

  // If `guessed` is set, the shape is a guess until append() has stored something.
  PartWriter(LogRing ring, bool guessed) : ring_(std::move(ring)), guessed_(guessed) {}

  const LogRing& ring() const { return ring_; }
  // Appends whole event lines, at most batch_size. If nothing of a guessed shape exists and another one is in
  // use, stores nothing and returns the newest one in use. Throws NotApplied, UnknownOutcome, Contention.
  std::optional<RingShape> append(std::int64_t chunk, const std::string& lines) {
    stored_ = 0;
    perhaps_ = false;
    bool is_meant = false;
    lines_in_pieces(lines, [&](const std::string& piece, std::size_t, std::size_t last) {
      is_meant = is_meant || append_piece(chunk, piece) == Stored::meant;
      if (is_meant) return;
      stored_ = last;
      guessed_ = false;
    });
    return is_meant ? meant() : std::nullopt;
  }
  // Returns how many of the last append's lines, from the first, are certainly stored: a server with small
  // items gets them in pieces.
  std::size_t stored() const { return stored_; }

 private:
  enum class Stored { yes, refused, again, meant };
  enum class Look { stored, full, missing, nothing, again, elsewhere };

  Stored append_piece(std::int64_t chunk, const std::string& lines) {
    Cluster& cluster = ring_.context.cluster;
    if (parts_.size() > 1000) parts_.erase(parts_.begin());
    std::int64_t& part = parts_[chunk];
    bool begins_again = false;
    for (int step = 0; step < max_walk && part < max_parts; ++step) {
      const PartName name{chunk, part};
      std::int64_t last_part = part;
      Stored stored = append_to(name, lines);
      if (stored == Stored::refused) {
        const Look found = look(name, lines, last_part);
        if (found == Look::elsewhere) return Stored::meant;
        if (found == Look::nothing && part > 0 && !std::exchange(begins_again, true)) {
          part = 0;
          continue;
        }
        if (found == Look::stored) stored = Stored::yes;
        if (found == Look::again) stored = Stored::again;
        if (found == Look::missing || found == Look::nothing) stored = create(name, lines);
      }
      if (stored == Stored::yes) return stored;
      if (stored == Stored::refused) part = std::max(part + 1, last_part);
    }
    throw Contention(
        "the log's chunk is full and other clients fill each new part at once, or its server closes every "
        "connection; try again",
        cluster.address_of(cluster.placement().server_of(ring_.keys.part({chunk, 0}))));
  }

  Stored append_to(const PartName& name, const std::string& lines) {
    Cluster& cluster = ring_.context.cluster;
    const Request request = ring_.keys.append(name, lines);
    for (int attempt = 1;; ++attempt) {
      const Reply reply = cluster.execute(request);
      if (!reply.unknown()) {
        return expect(cluster, reply).outcome == Outcome::stored ? Stored::yes : Stored::refused;
      }
      perhaps_ = true;
      const auto value = read_back(name);
      if (value && holds(*value, lines)) return Stored::yes;
      if (attempt == attempts) expect(cluster, reply);
    }
  }

  // Reads the part after a lost reply. Returns nullopt if it is missing. Throws UnknownOutcome without
  // answer.
  std::optional<std::string> read_back(const PartName& name) {
    Cluster& cluster = ring_.context.cluster;
    Reply reply;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      reply = cluster.execute(ring_.keys.get(name));
      if (reply.outcome == Outcome::miss) return std::nullopt;
      if (reply.outcome == Outcome::hit) return std::move(reply.value);
    }
    throw UnknownOutcome("no reply to an append, nor to the read that checks it; the event may be in the log",
                         cluster.address_of(reply.server));
  }

  // Finds out why an append was refused: the part is full or missing. The append is repeated after the
  // read, because a missing part may have been created meanwhile, and only an existing part that refuses
  // is full. The directory shows the chunk's last part. If it answers and names none, nothing of the chunk
  // may exist, because the log was dropped.
  Look look(const PartName& name, const std::string& lines, std::int64_t& last_part) {
    Cluster& cluster = ring_.context.cluster;
    const std::string key = ring_.keys.part(name);
    const Request there =
        ring_.keys.of_part(touches_ ? Request::touch(key, exptime_of(name.chunk)) : Request::get(key), name);
    const std::vector<Request> batch{there, ring_.keys.append(name, lines),
                                     Request::get(ring_.keys.directory(name.chunk / chunks_per_directory)),
                                     Request::gets(ring_.keys.conf())};
    const auto replies = cluster.execute(batch);
    conf_ = read_active_variants(ring_.context, ring_.keys.conf(), replies[3]);
    // Lost and withdrawn parts do not count: only the directory leads to what is written after a hole.
    LogDirectory directory;
    directory.add(replies[2].value);
    directory_missing_ = replies[2].outcome == Outcome::miss;
    const auto all_named = directory.named(name.chunk);
    for (const auto& [named, incarnation] : all_named) last_part = std::max(last_part, named.part);
    if (replies[1].outcome == Outcome::stored) return Look::stored;
    if (replies[1].unknown()) perhaps_ = true;
    const bool named = replies[2].failed() || !all_named.empty();
    const auto missing = meant() ? Look::elsewhere : named ? Look::missing : Look::nothing;
    // Some servers do not support touch, or close the connection on it. A lost reply to it changes nothing,
    // because the exptime is the same for all clients.
    touches_ = touches_ && !replies[0].failed();
    if (replies[0].unknown() || replies[1].unknown() || replies[0].is(ReplyFailure::Kind::refused)) {
      const auto value = read_back(name);
      if (value && holds(*value, lines)) return Look::stored;
      if (replies[1].unknown()) return Look::again;
      return value ? Look::full : missing;
    }
    expect(cluster, replies[1]);
    const Outcome outcome = expect(cluster, replies[0]).outcome;
    return outcome == Outcome::stored || outcome == Outcome::hit ? Look::full : missing;
  }

  bool knows_us(const Reply& conf) const {
    const auto shapes = shapes_in(parse_active_variants(conf.value, ring_.context.clock.wall()));
    return std::ranges::find(shapes, ring_.shape) != shapes.end();
  }

  // Returns the newest shape in use if nothing of a guessed shape exists and they differ.
  std::optional<RingShape> meant() const {
    if (!guessed_ || perhaps_) return std::nullopt;
    const auto shapes = shapes_in(parse_active_variants(conf_.value, ring_.context.clock.wall()));
    return shapes.empty() || shapes.back() == ring_.shape ? std::nullopt : std::optional(shapes.back());
  }

  // Creates a part with these lines. Returns refused if another client created it and it has no room. Each
  // attempt uses another incarnation, because one without reply may be executed after the part has been
  // created and evicted. Only an incarnation that was certainly not created is withdrawn. A crash after
  // name_part() leaves a listed part that does not exist, which is reported as a gap.
  Stored create(const PartName& name, const std::string& lines) {
    Cluster& cluster = ring_.context.cluster;
    const std::string incarnation = ring_.context.random.token();
    if (!name_part(name, incarnation)) {
      withdraw(name, incarnation);
      return Stored::again;
    }
    const std::vector<Request> batch{
        ring_.keys.of_part(Request::append_or_create(ring_.keys.part(name), part_header(name, incarnation),
                                                     lines, exptime_of(name.chunk))
                               .creating_first(),
                           name),
        Request::append(ring_.keys.conf(), ""), Request::get(ring_.keys.conf())};
    const auto replies = cluster.execute(batch);
    // A drop that has read the conf key before this append does not remove it. If a drop has already removed
    // it, or did not have to because it was not written, it is written again.
    const bool is_there =
        replies[1].outcome == Outcome::stored && (replies[2].failed() || knows_us(replies[2]));
    const bool is_away = replies[2].failed() && !replies[2].unknown();
    if (!is_there && !is_away)
      static_cast<void>(
          attempt([&] { record_active_variant(ring_.context, ring_.keys.conf(), in_use(name.chunk)); }));
    const Reply& reply = replies.front();
    if (reply.unknown()) {
      perhaps_ = true;
      const auto value = read_back(name);
      if (!value || !holds(*value, lines)) return Stored::again;
    } else {
      if (!reply.created) withdraw(name, incarnation);
      if (expect(cluster, reply).outcome != Outcome::stored) return Stored::refused;
    }
    return Stored::yes;
  }

  // Withdraws a part. Best effort: if it fails, a reader reports a gap although nothing was lost.
  void withdraw(const PartName& name, const std::string& incarnation) {
    const auto request = Request::append(ring_.keys.directory(name.chunk / chunks_per_directory),
                                         withdrawn_line(name, incarnation));
    for (int attempt = 0; attempt < attempts; ++attempt) {
      if (!ring_.context.cluster.execute(request).failed()) return;
    }
  }

  // Throws NotApplied if the shape cannot be recorded and no earlier directory shows that it was: a fetch
  // would not find the event, and a log in another shape may exist.
  void require_recorded(std::int64_t group) const {
    if (!conf_.failed() || !directory_missing_) return;
    Cluster& cluster = ring_.context.cluster;
    std::vector<Request> batch;
    for (const std::int64_t back : {1, 2, 3})
      batch.push_back(Request::get(ring_.keys.directory(group - back)));
    const auto replies = cluster.execute(batch);
    if (std::ranges::find(replies, Outcome::hit, &Reply::outcome) != replies.end()) return;
    throw NotApplied(ErrorCode::unavailable,
                     "the server of the conf key does not answer, without which nothing finds a new log; try "
                     "again when it does",
                     cluster.address_of(conf_.server));
  }

  // Lists a part, so that its absence is reported from now on, and records the shape. Returns false if
  // another client removed the conf key, or changed it before this shape was in it. A directory is a set
  // of lines, so after a lost reply the line is appended again.
  bool name_part(const PartName& name, const std::string& incarnation) {
    Cluster& cluster = ring_.context.cluster;
    const std::int64_t group = name.chunk / chunks_per_directory;
    require_recorded(group);
    const Exptime exptime = exptime_of((group + 1) * chunks_per_directory - 1);
    const WallTime now = ring_.context.clock.wall();
    std::vector<Request> batch{Request::append_or_create(ring_.keys.directory(group), "",
                                                         named_line(name, incarnation, now), exptime)
                                   .creating_first(directory_missing_)};
    if (!conf_.failed())
      batch.push_back(record_active_variant(ring_.keys.conf(), conf_, in_use(name.chunk), now));
    for (int attempt = 1;; ++attempt) {
      const auto replies = cluster.execute(batch);
      const Reply& reply = replies.front();
      const Reply& noted = replies.back();
      const bool rival =
          attempt == 1 && !conf_.failed() && !noted.failed() &&
          (noted.outcome == Outcome::not_found || (noted.outcome != Outcome::stored && !knows_us(conf_)));
      if (reply.outcome == Outcome::stored) return !rival;
      if (reply.outcome == Outcome::not_stored) {
        throw NotApplied(ErrorCode::refused,
                         "the log's directory has no room: the server is out of memory, or its items are too "
                         "small (-I); give it more",
                         cluster.address_of(reply.server));
      }
      // Nothing of the event itself has been sent yet, so this is not an unknown outcome.
      if (reply.unknown() && attempt == attempts) {
        throw NotApplied(ErrorCode::unavailable, reply.failure->message, cluster.address_of(reply.server));
      }
      if (!reply.unknown()) expect(cluster, reply);
    }
  }

  Exptime exptime_of(std::int64_t chunk) const {
    return Exptime::at(ring_.shape.expiry_of(chunk), ring_.context.clock.wall());
  }
  ActiveVariant in_use(std::int64_t chunk) const {
    return {ring_.shape.text(), ring_.shape.expiry_of(chunk)};
  }

  LogRing ring_;
  bool guessed_;
  std::size_t stored_ = 0;
  bool perhaps_ = false;  // some of the current lines may be stored, so the rest must follow them
  bool touches_ = true;   // false once a server did not support touch
  Reply conf_;            // as look() found it last
  bool directory_missing_ = false;
  std::map<std::int64_t, std::int64_t> parts_;  // chunk → the part last appended to
};

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
