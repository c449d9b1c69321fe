#include "common/structures/eventlog/part_writer.hpp"

#include <algorithm>

#include "common/primitives/seal.hpp"

namespace mcds {

namespace {

constexpr int attempts = 3;    // for one append or creation whose replies get lost
constexpr int max_walk = 200;  // steps over parts that other clients fill

bool holds(std::string_view part, std::string_view lines) {
  return part.find(lines.substr(0, event_id_size)) != std::string_view::npos;
}

}  // namespace

std::optional<RingShape> PartWriter::append(std::int64_t chunk, const std::string& lines) {
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

PartWriter::Stored PartWriter::append_piece(std::int64_t chunk, const std::string& lines) {
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
  throw Contention("the log's chunk is full and other clients fill each new part at once; try again",
                   cluster.address_of(cluster.placement().server_of(ring_.keys.part({chunk, 0}))));
}

PartWriter::Stored PartWriter::append_to(const PartName& name, const std::string& lines) {
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

// Reads the part after a lost reply. Returns nullopt if it is missing. Throws UnknownOutcome without answer.
std::optional<std::string> PartWriter::read_back(const PartName& name) {
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

// Finds out why an append was refused: the part is full or missing. The append is repeated after the read,
// because a missing part may have been created meanwhile, and only an existing part that refuses is full. The
// directory shows the chunk's last part. If it answers and names none, nothing of the chunk may exist,
// because the log was dropped.
PartWriter::Look PartWriter::look(const PartName& name, const std::string& lines, std::int64_t& last_part) {
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

bool PartWriter::knows_us(const Reply& conf) const {
  const auto shapes = shapes_in(parse_active_variants(conf.value, ring_.context.clock.wall()));
  return std::ranges::find(shapes, ring_.shape) != shapes.end();
}

// Returns the newest shape in use if nothing of a guessed shape exists and they differ.
std::optional<RingShape> PartWriter::meant() const {
  if (!guessed_ || perhaps_) return std::nullopt;
  const auto shapes = shapes_in(parse_active_variants(conf_.value, ring_.context.clock.wall()));
  return shapes.empty() || shapes.back() == ring_.shape ? std::nullopt : std::optional(shapes.back());
}

// Creates a part with these lines. Returns refused if another client created it and it has no room. Each
// attempt uses another incarnation, because one without reply may be executed after the part has been created
// and evicted. Only an incarnation that was certainly not created is withdrawn. A crash after name_part()
// leaves a listed part that does not exist, which is reported as a gap.
PartWriter::Stored PartWriter::create(const PartName& name, const std::string& lines) {
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
  if (!is_there && !is_away) record_active_variant(ring_.context, ring_.keys.conf(), in_use(name.chunk));
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
void PartWriter::withdraw(const PartName& name, const std::string& incarnation) {
  const auto request = Request::append(ring_.keys.directory(name.chunk / chunks_per_directory),
                                       withdrawn_line(name, incarnation));
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (!ring_.context.cluster.execute(request).failed()) return;
  }
}

// Lists a part, so that its absence is reported from now on, and records the shape. Returns false if another
// client removed the conf key, or changed it before this shape was in it. A directory is a set of lines, so
// after a lost reply the line is appended again.
bool PartWriter::name_part(const PartName& name, const std::string& incarnation) {
  Cluster& cluster = ring_.context.cluster;
  const std::int64_t group = name.chunk / chunks_per_directory;
  const Exptime exptime = exptime_of((group + 1) * chunks_per_directory - 1);
  const WallTime now = ring_.context.clock.wall();
  std::vector<Request> batch{
      Request::append_or_create(ring_.keys.directory(group), "", named_line(name, incarnation, now), exptime)
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

}  // namespace mcds
