// What the reads of EventLog read: the log's own ring, and those it had under other numbers of copies, as one.
#include <algorithm>
#include <utility>

#include "common/base/errors.hpp"
#include "common/structures/eventlog/eventlog.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

// Younger ones may be in transit to a copy that lacks them.
constexpr auto young_event = std::chrono::milliseconds(50);

std::vector<const ChunkText*> copies_of(const std::vector<std::vector<ChunkText>>& found, std::size_t chunk) {
  std::vector<const ChunkText*> copies;
  for (const auto& copy : found) copies.push_back(&copy[chunk]);
  return copies;
}

bool is_shape(const InUse& one) {
  return RingShape::parse(one.what).has_value();
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

// Adds what a former ring has of these chunks. Who got no answer from its conf key goes on to write there: then it is read for
// longer.
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
  std::vector<LogSummary> summaries(copies.size());
  const auto found = expect_all(copies.each([&](std::size_t copy) {
    return ChunkReader(copies.at(copy), shape_, keys, false, true, sink, summaries[copy]).read(chunks);
  }));
  std::vector<Failure> unreachable;
  for (const LogSummary& one : summaries) {
    summary.flood = summary.flood || one.flood;
    summary.directory = summary.directory || one.directory;
    summary.conf_answered = summary.conf_answered || one.conf_answered;
    summary.conf = united(std::move(summary.conf), one.conf);
    for (const RingShape& shape : one.shapes) {
      if (std::find(summary.shapes.begin(), summary.shapes.end(), shape) == summary.shapes.end())
        summary.shapes.push_back(shape);
    }
    unreachable.insert(unreachable.end(), one.unreachable.begin(), one.unreachable.end());
  }
  if (summary.flood) return {};
  std::vector<ChunkText> united_chunks;
  bool blocked = false;
  bool refilled = false;
  if (refills) repair_confs(summaries);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto of_chunk = copies_of(found, i);
    UnitedChunk chunk = unite(of_chunk);
    blocked = blocked || chunk.blocked;
    // First, so that what is refilled does not come behind parts that are lost.
    if (refills && chunk.text.whole) put_directories_right(of_chunk);
    if (refills && !chunk.blocked) refilled = refill(chunks[i], of_chunk) || refilled;
    united_chunks.push_back(std::move(chunk.text));
  }
  // Again, so that a cursor counts what was re-filled as read: the copy it came from may be lost next.
  if (refilled) return read_ring(copies, keys, chunks, sink, summary, tolerant, false);
  if (blocked && !tolerant)
    throw NotApplied(unreachable.front().code(), unreachable.front().what(), unreachable.front().server());
  if (blocked) summary.unreachable = std::move(unreachable);
  return united_chunks;
}

// What one copy of the conf key says of other numbers of copies, all are to say, and until when each shape is in use then. Best
// effort.
void EventLog::repair_confs(std::span<const LogSummary> copies) {
  std::vector<InUse> all;
  for (const LogSummary& copy : copies) all = united(std::move(all), copy.conf);
  if (std::all_of(all.begin(), all.end(), is_shape)) return;
  static_cast<void>(copies_.each([&](std::size_t copy) {
    const auto& conf = copies[copy].conf;
    if (!copies[copy].conf_answered || united(conf, all) == conf) return;
    add_to_conf(copies_.at(copy), keys_.conf(), all);
  }));
}

// Best effort: what is not written now is by a later read.
bool EventLog::refill(std::int64_t chunk, std::span<const ChunkText* const> copies) {
  if (shape_.expiry_of(chunk) <= context_.clock.wall()) return false;
  const auto missing = missing_lines(copies, context_.clock.wall() - young_event);
  if (std::all_of(missing.begin(), missing.end(), [](const std::string& lines) { return lines.empty(); }))
    return false;
  for (LogWriter& writer : writers_) writer.may_begin();
  static_cast<void>(copies_.each([&](std::size_t copy) {
    writers_[copy].set_restoring(true);
    std::string_view rest = missing[copy];
    while (!rest.empty()) {
      std::size_t size = std::min(rest.size(), LogWriter::batch_size);
      if (size < rest.size()) size = rest.rfind('\n', size - 1) + 1;
      if (size == 0) size = rest.find('\n') + 1;
      writers_[copy].append(chunk, std::string(rest.substr(0, size)));
      rest.remove_prefix(size);
    }
  }));
  for (LogWriter& writer : writers_) writer.set_restoring(false);
  return true;
}

// While another copy has everything: parts that a copy lost are not to be missed, those it has are to be named.
void EventLog::put_directories_right(std::span<const ChunkText* const> copies) {
  static_cast<void>(copies_.each([&](std::size_t copy) {
    for (const auto& [name, incarnation] : lost_parts(*copies[copy]))
      writers_[copy].withdraw(name, incarnation);
    for (const auto& [name, incarnation] : copies[copy]->unnamed) writers_[copy].name_part(name, incarnation);
  }));
}

}  // namespace mcds
