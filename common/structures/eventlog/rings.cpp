// What the reads of EventLog read: the log's own ring, and those it had under other numbers of copies, as
// one.
#include <algorithm>
#include <utility>

#include "common/base/errors.hpp"
#include "common/structures/eventlog/eventlog.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

std::vector<const ChunkText*> copies_of(const std::vector<std::vector<ChunkText>>& found, std::size_t chunk) {
  std::vector<const ChunkText*> copies;
  for (const auto& copy : found) copies.push_back(&copy[chunk]);
  return copies;
}

}  // namespace

std::vector<ChunkText> EventLog::read_chunks(std::span<const std::int64_t> chunks, LogSink& sink,
                                             LogSummary& summary, bool tolerant, bool refills) {
  auto texts = read_ring(copies_, keys_, chunks, sink, summary, tolerant, refills);
  remember(summary.conf);
  for (const FormerRing& former : formers_) {
    if (summary.flood) return {};
    if (former.shape == shape_) read_former(former, texts, sink, summary, tolerant, refills);
  }
  if (summary.flood) return {};
  return texts;
}

void EventLog::remember(std::span<const InUse> conf) {
  const WallTime now = context_.clock.wall();
  for (const FormerRing& ring : former_rings(conf)) {
    std::erase_if(formers_, [&](const FormerRing& other) {
      return other.number == ring.number && other.shape == ring.shape && other.until <= ring.until;
    });
    const bool known = std::any_of(formers_.begin(), formers_.end(), [&](const FormerRing& other) {
      return other.number == ring.number && other.shape == ring.shape;
    });
    if (!known) formers_.push_back(ring);
  }
  std::erase_if(formers_, [&](const FormerRing& ring) { return ring.until <= now; });
}

LogKeys EventLog::keys_of(const FormerRing& former) const {
  return {former.number.key(context_, name_), former.shape};
}

std::string EventLog::key_of(const PartName& name) const {
  for (const FormerRing& former : formers_) {
    if (former.shape == shape_ && former.number.ring() == name.ring())
      return keys_of(former).part(name.stored());
  }
  return keys_.part(name.stored());
}

// Adds what a former ring has of these chunks. Who got no answer from its conf key goes on to write there:
// then it is read for longer.
void EventLog::read_former(const FormerRing& former, std::span<ChunkText> texts, LogSink& sink,
                           LogSummary& summary, bool tolerant, bool prolongs) {
  std::vector<std::int64_t> chunks;
  for (const ChunkText& text : texts) chunks.push_back(text.chunk);
  const std::int64_t ring = former.number.ring();
  const std::int64_t first_copy = ring * PartName::copies_per_ring;
  LogSummary found;
  auto formers =
      read_ring(Replicas(former.number.in(context_)), keys_of(former), chunks, sink, found, tolerant, false);
  summary.flood = found.flood;
  summary.directory = summary.directory || found.directory;
  summary.unreachable.insert(summary.unreachable.end(), found.unreachable.begin(), found.unreachable.end());
  WallTime until = former.until;
  for (ChunkText& chunk : formers) {
    const auto text = std::find_if(texts.begin(), texts.end(),
                                   [&](const ChunkText& one) { return one.chunk == chunk.chunk; });
    text->formers.insert(ring);
    if (chunk.whole) text->whole_formers.insert(ring);
    const auto name_loss = [&](const PartName& name, const std::string& incarnation) {
      text->named.emplace_back(PartName{name.chunk, name.part, first_copy + name.copy}, incarnation);
    };
    for (const auto& [name, incarnation] : chunk.named) name_loss(name, incarnation);
    if (chunk.directory_lost && chunk.parts.empty()) name_loss({chunk.chunk, 0}, std::string(16, '0'));
    if (!chunk.parts.empty()) until = std::max(until, shape_.expiry_of(chunk.chunk));
    for (auto& [number, part] : chunk.parts)
      text->parts[{first_copy + number.copy, number.part}] = std::move(part);
  }
  if (!prolongs || until <= former.until) return;
  const InUse longer{former.number.text() + '/' + shape_.text(), until};
  static_cast<void>(copies_.each(
      [&](std::size_t copy) { add_to_conf(copies_.at(copy), keys_.conf(), std::span(&longer, 1)); }));
}

std::vector<ChunkText> EventLog::read_ring(const Replicas& copies, const LogKeys& keys,
                                           std::span<const std::int64_t> chunks, LogSink& sink,
                                           LogSummary& summary, bool tolerant, bool refills) {
  if (copies.size() == 1)
    return ChunkReader(copies.at(0), shape_, keys, true, tolerant, sink, summary).read(chunks);
  const auto read = [&](bool) { return read_copies(copies, keys, chunks, sink, refills); };
  std::vector<std::optional<Failure>> unrefilled(copies.size());
  const auto write = [&](const RingText& all, std::size_t copy) {
    unrefilled[copy] = attempt([&] { refill(all, copy); }).failure();
  };
  RingText ring = repair(copies, context_.clock, read, write);
  std::vector<Failure> unreachable;
  for (const LogSummary& one : ring.summaries) {
    summary.flood = summary.flood || one.flood;
    summary.directory = summary.directory || one.directory;
    summary.conf_answered = summary.conf_answered || one.conf_answered;
    summary.conf_silent = summary.conf_silent || !one.conf_answered;
    summary.conf = united(std::move(summary.conf), one.conf);
    for (const RingShape& shape : one.shapes) {
      if (std::find(summary.shapes.begin(), summary.shapes.end(), shape) == summary.shapes.end())
        summary.shapes.push_back(shape);
    }
    unreachable.insert(unreachable.end(), one.unreachable.begin(), one.unreachable.end());
  }
  if (summary.flood) return {};
  // Again, so that a cursor counts what was re-filled as read: the copy it came from may be lost next.
  if (const auto failure = ring.unconfirmed(unrefilled); failure && !tolerant) raise(*failure);
  if (ring.any_missing()) return read_ring(copies, keys, chunks, sink, summary, tolerant, false);
  std::vector<ChunkText> texts;
  bool blocked = false;
  for (UnitedChunk& chunk : ring.chunks) {
    blocked = blocked || chunk.blocked;
    texts.push_back(std::move(chunk.text));
  }
  if (blocked && !tolerant) raise(unreachable.front());
  if (blocked) summary.unreachable = std::move(unreachable);
  return texts;
}

RingText EventLog::read_copies(const Replicas& copies, const LogKeys& keys,
                               std::span<const std::int64_t> chunks, LogSink& sink, bool refills) const {
  RingText ring;
  ring.summaries.resize(copies.size());
  ring.copies = expect_all(copies.each([&](std::size_t copy) {
    return ChunkReader(copies.at(copy), shape_, keys, false, true, sink, ring.summaries[copy]).read(chunks);
  }));
  for (const LogSummary& one : ring.summaries) {
    if (one.flood) return ring;
    ring.confs.copies.push_back(one.conf_answered ? std::optional(one.conf) : std::nullopt);
  }
  const WallTime now = context_.clock.wall();
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto of_chunk = copies_of(ring.copies, i);
    ring.chunks.push_back(unite(of_chunk));
    if (!refills) continue;
    const bool may_be_put = !ring.chunks.back().blocked && shape_.expiry_of(chunks[i]) > now;
    // What too few copies have must not be answered, in transit or not.
    const WallTime young = quorum(copies.size()) > 1 ? WallTime::max() : now - in_transit;
    ring.missing.push_back(may_be_put ? missing_lines(of_chunk, young)
                                      : std::vector<std::string>(copies.size()));
  }
  return ring;
}

// Gives a copy what others have. What cannot be written now does not keep the rest from being written. Throws
// if an event could not be.
void EventLog::refill(const RingText& ring, std::size_t copy) {
  LogWriter& writer = writers_[copy];
  std::optional<Failure> failure;
  if (ring.confs.lacks(copy))
    static_cast<void>(attempt([&] { return add_to_conf(copies_.at(copy), keys_.conf(), ring.confs.all()); }));
  if (ring.any_missing()) {
    for (LogWriter& one : writers_) one.may_begin();
  }
  for (std::size_t i = 0; i < ring.chunks.size(); ++i) {
    const ChunkText& chunk = ring.copies[copy][i];
    // While another copy has everything: parts that this one lost are not to be missed, those it has are to
    // be named. First, so that what is refilled does not come behind parts that are lost.
    const auto put_directory_right = [&] {
      for (const auto& [name, incarnation] : lost_parts(chunk)) writer.withdraw(name, incarnation);
      for (const auto& [name, incarnation] : chunk.unnamed) writer.name_part(name, incarnation);
    };
    if (ring.chunks[i].text.whole) static_cast<void>(attempt(put_directory_right));
    const auto restored = attempt([&] { writer.restore(chunk.chunk, ring.missing[i][copy]); });
    if (restored.failure() && !ring.missing[i][copy].empty()) failure = restored.failure();
  }
  if (failure) raise(*failure);
}

}  // namespace mcds
