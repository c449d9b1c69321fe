#include "common/structures/eventlog/part_writer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/primitives/item_size.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

constexpr int attempts = 3;        // at one append or creation whose replies get lost
constexpr int largest_walk = 200;  // steps over parts before giving up against rivals

bool holds(std::string_view part, std::string_view lines) {
  return part.find(lines.substr(0, event_id_size)) != std::string_view::npos;
}

}  // namespace

PartWriter::Appended PartWriter::append(std::int64_t chunk, const std::string& lines) {
  Appended all;
  lines_in_pieces(lines, [&](const std::string& piece, std::size_t, std::size_t last) {
    if (all.done) all = append_piece(chunk, piece);
    if (!all.done) return;
    stored_ = last;
    if (piece.size() != lines.size()) perhaps_ = true;
  });
  return all;
}

void PartWriter::restore(std::int64_t chunk, std::string_view lines) {
  restores_ = true;
  const auto done = attempt([&] {
    while (!lines.empty()) {
      std::size_t size = std::min(lines.size(), batch_size);
      if (size < lines.size()) size = lines.rfind('\n', size - 1) + 1;
      if (size == 0) size = lines.find('\n') + 1;
      append(chunk, std::string(lines.substr(0, size)));
      lines.remove_prefix(size);
    }
  });
  restores_ = false;
  done.value();
}

PartWriter::Appended PartWriter::append_piece(std::int64_t chunk, const std::string& lines) {
  Appended appended;
  if (parts_.size() > 1000) parts_.erase(parts_.begin());
  std::int64_t& part = parts_[chunk];
  for (int step = 0; step < largest_walk && part < most_parts; ++step) {
    const PartName name{chunk, part};
    std::int64_t last_part = part;
    if (may_begin_ && std::exchange(missing_, std::nullopt) == name) {
      if (create(name, lines) != Stored::yes) continue;
      guessed_ = false;
      return appended;
    }
    Stored stored = append_to(name, lines);
    if (stored == Stored::refused) {
      const Look found = look(name, lines, last_part, appended);
      if (found == Look::stored) stored = Stored::yes;
      if (found == Look::again) stored = Stored::again;
      if (found == Look::nowhere) missing_ = name;
      appended.done = found != Look::nowhere && found != Look::elsewhere;
      if (!appended.done) return appended;
      if (found == Look::missing) stored = create(name, lines);
    }
    if (stored == Stored::yes) {
      guessed_ = false;
      return appended;
    }
    if (stored == Stored::refused) part = std::max(part + 1, last_part);
  }
  throw Contention(
      "the log's chunk is full and other clients fill each new part at once; try again",
      context_->cluster.address_of(context_->cluster.placement().server_of(keys_.part({chunk, 0}))));
}

PartWriter::Stored PartWriter::append_to(const PartName& name, const std::string& lines) {
  const Request request = keys_.append(name, lines);
  for (int attempt = 1;; ++attempt) {
    const Reply reply = context_->cluster.execute(request);
    if (!reply.unknown()) {
      return expect(context_->cluster, reply).outcome == Outcome::stored ? Stored::yes : Stored::refused;
    }
    perhaps_ = true;
    const auto value = read_back(name);
    if (value && holds(*value, lines)) return Stored::yes;
    if (attempt == attempts) expect(context_->cluster, reply);
  }
}

// The part's value after a lost reply; nullopt: it is not there. Throws UnknownOutcome when that cannot be
// learned.
std::optional<std::string> PartWriter::read_back(const PartName& name) {
  Reply reply;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    reply = context_->cluster.execute(keys_.get(name));
    if (reply.outcome == Outcome::miss) return std::nullopt;
    if (reply.outcome == Outcome::hit) return std::move(reply.value);
  }
  throw UnknownOutcome("no reply to an append, nor to the read that checks it; the event may be in the log",
                       context_->cluster.address_of(reply.server));
}

// Why an append was refused: full, or missing. It is tried again behind the look: a part that was missing may
// have been created meanwhile, and only one that is there and refuses is full. Learns from the directory
// which part is the chunk's last.
PartWriter::Look PartWriter::look(const PartName& name, const std::string& lines, std::int64_t& last_part,
                                  Appended& appended) {
  const std::string key = keys_.part(name);
  const Request there =
      keys_.of_part(touches_ ? Request::touch(key, exptime_of(name.chunk)) : Request::get(key), name);
  std::vector<Request> batch{there, keys_.append(name, lines),
                             Request::get(keys_.directory(name.chunk / chunks_per_directory)),
                             Request::gets(keys_.conf())};
  // One that is there counts as full.
  if (auto misplaced = keys_.misplaced(context_->cluster, there)) batch.push_back(std::move(*misplaced));
  const auto replies = context_->cluster.execute(batch);
  const auto is_there = [](const Reply& reply) {
    return reply.outcome == Outcome::stored || reply.outcome == Outcome::hit;
  };
  conf_ = look_in_use(*context_, keys_.conf(), replies[3]);
  // Not those that were lost and withdrawn: what is written behind a hole is found through the directory
  // only.
  LogDirectory directory;
  directory.add(replies[2].value);
  for (const auto& [named, incarnation] : directory.named(name.chunk, WallTime::max()))
    last_part = std::max(last_part, named.part);
  if (replies[1].outcome == Outcome::stored) return Look::stored;
  if (replies[1].unknown()) perhaps_ = true;
  appended.left = left(name.chunk);
  if (appended.left) return Look::elsewhere;
  if (replies.size() > 4 && is_there(replies[4])) return Look::full;
  // Both of what tells of the log may be on one server, which does not answer.
  const auto told = [&](Outcome outcome) {
    return replies[2].outcome == outcome || conf_->outcome == outcome;
  };
  const bool unknown = !perhaps_ && (told(Outcome::miss) || !told(Outcome::hit));
  appended.meant = meant();
  const auto missing = appended.meant           ? Look::elsewhere
                       : !may_begin_ && unknown ? Look::nowhere
                                                : Look::missing;
  // Not every server knows touch, and some close the connection on it. One whose reply was lost changes
  // nothing: the exptime is the same for everybody.
  touches_ = touches_ && !replies[0].failed();
  if (replies[0].unknown() || replies[1].unknown() || replies[0].is(ReplyFailure::Kind::refused)) {
    const auto value = read_back(name);
    if (value && holds(*value, lines)) return Look::stored;
    if (replies[1].unknown()) return Look::again;
    return value ? Look::full : missing;
  }
  expect(context_->cluster, replies[1]);
  return is_there(expect(context_->cluster, replies[0])) ? Look::full : missing;
}

// Nothing of a guessed shape is there: whether the newest in use is another.
std::optional<RingShape> PartWriter::meant() const {
  if (!guessed_ || conf_->outcome != Outcome::hit) return std::nullopt;
  const auto shapes = shapes_in(parse_in_use(conf_->value, context_->clock.wall()));
  return shapes.empty() || shapes.back() == shape_ ? std::nullopt : std::optional(shapes.back());
}

// Who may have stored something goes on where readers read the old number too.
std::optional<LogMove> PartWriter::left(std::int64_t chunk) const {
  if (conf_->outcome != Outcome::hit) return std::nullopt;
  const auto conf = parse_in_use(conf_->value, context_->clock.wall());
  const auto move = move_away(conf, keys_.copies());
  const InUse ours = in_use(chunk);
  const bool is_read = std::ranges::any_of(
      conf, [&](const InUse& one) { return one.what == ours.what && one.until >= ours.until; });
  return perhaps_ && is_read ? std::nullopt : move;
}

// Refused: another client created it, and it has no room. Each attempt has another name, because one
// without a reply may be executed when the part has been created, evicted and is missing again. Only a name
// under which certainly nothing was created is withdrawn.
PartWriter::Stored PartWriter::create(const PartName& name, const std::string& lines) {
  const std::string incarnation = context_->random.token();
  try {
    if (!name_part(name, incarnation)) {
      withdraw(name, incarnation);
      return Stored::again;
    }
  } catch (const NotApplied& failure) {
    // A directory that has no room stays without it; its server may come back.
    if (keys_.has_one_copy() || (!restores_ && failure.code() == ErrorCode::refused)) throw;
  }
  const auto request =
      keys_.of_part(Request::append_or_create(keys_.part(name), part_header(name, incarnation), lines,
                                              exptime_of(name.chunk)),
                    name);
  const Reply reply = context_->cluster.execute(request);
  if (reply.unknown()) {
    perhaps_ = true;
    const auto value = read_back(name);
    return value && holds(*value, lines) ? Stored::yes : Stored::again;
  }
  if (!reply.created) withdraw(name, incarnation);
  begun_ = begun_ || (reply.created && name.part == 0);
  return expect(context_->cluster, reply).outcome == Outcome::stored ? Stored::yes : Stored::refused;
}

void PartWriter::withdraw(const PartName& name, const std::string& incarnation) {
  const auto request =
      Request::append(keys_.directory(name.chunk / chunks_per_directory), withdrawn_line(name, incarnation));
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (!context_->cluster.execute(request).failed()) return;
  }
}

// A directory is a set of lines: one that stands there twice does no harm, so a lost reply is simply
// repeated.
bool PartWriter::name_part(const PartName& name, const std::string& incarnation) {
  const std::int64_t group = name.chunk / chunks_per_directory;
  const Exptime exptime = exptime_of((group + 1) * chunks_per_directory - 1);
  const WallTime now = context_->clock.wall();
  std::vector<Request> batch{
      Request::append_or_create(keys_.directory(group), "", named_line(name, incarnation, now), exptime)};
  bool knows_us = true;
  if (conf_ && !conf_->failed()) {
    const InUse noted = in_use(name.chunk);
    const auto all = parse_in_use(conf_->outcome == Outcome::hit ? conf_->value : "", now);
    knows_us = std::ranges::any_of(all, [&](const InUse& one) { return one.what == noted.what; });
    batch.push_back(note_in_use(keys_.conf(), *std::exchange(conf_, std::nullopt), noted, now));
  }
  for (int attempt = 1;; ++attempt) {
    const auto replies = context_->cluster.execute(batch);
    const Reply& reply = replies.front();
    const bool rival =
        !knows_us && attempt == 1 && !replies.back().failed() && replies.back().outcome != Outcome::stored;
    if (reply.outcome == Outcome::stored) return !rival;
    if (reply.outcome == Outcome::not_stored) {
      throw NotApplied(ErrorCode::refused,
                       "the log's directory has no room: the server is out of memory, or its items are too "
                       "small (-I); give it more",
                       context_->cluster.address_of(reply.server));
    }
    // Nothing of the event itself has been sent yet.
    if (reply.unknown() && attempt == attempts) {
      throw NotApplied(ErrorCode::unavailable, reply.failure->message,
                       context_->cluster.address_of(reply.server));
    }
    if (!reply.unknown()) expect(context_->cluster, reply);
  }
}

}  // namespace mcds
