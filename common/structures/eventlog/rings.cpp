// What writers and readers see of a log: its own ring, and those it had under other numbers of copies, as
// one.
#include <algorithm>
#include <utility>

#include "common/base/rely.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

std::vector<const ChunkText*> copies_of(const std::vector<std::vector<ChunkText>>& found, std::size_t chunk) {
  std::vector<const ChunkText*> copies;
  for (const auto& copy : found) copies.push_back(&copy[chunk]);
  return copies;
}

// The chunks of one ring, of which the log's own is refilled.
class RingReader {
 public:
  RingReader(LogPlace& place, const Replicas& copies, const LogKeys& keys,
             std::span<const std::int64_t> chunks, LogReading& reading)
      : place_(place),
        copies_(copies),
        keys_(keys),
        chunks_(chunks),
        reading_(reading),
        refills_(reading.refills) {}

  // Its copies united.
  std::vector<ChunkText> read() {
    if (copies_.size() == 1) return read_copy({copies_.at(0), place_.shape, keys_, true}, chunks_, reading_);
    std::vector<std::optional<Failure>> unrefilled(copies_.size());
    const auto write = [&](const RingText& all, std::size_t copy) {
      unrefilled[copy] = attempt([&] { refill(all, copy); }).failure();
    };
    RingText ring = repair(
        copies_, place_.context.clock, [&](bool) { return read_copies(); }, write);
    LogFound& found = reading_.found;
    std::vector<Failure> unreachable;
    for (const LogReading& one : ring.readings) add(one.found, unreachable);
    if (found.flood) return {};
    if (const auto failure = ring.unconfirmed(unrefilled); failure && !reading_.tolerant) raise(*failure);
    // Again, so that a cursor counts what was re-filled as read: the copy it came from may be lost next.
    if (ring.any_missing()) {
      refills_ = false;
      return read();
    }
    std::vector<ChunkText> texts;
    bool blocked = false;
    for (UnitedChunk& chunk : ring.chunks) {
      blocked = blocked || chunk.blocked;
      texts.push_back(std::move(chunk.text));
    }
    if (blocked && !reading_.tolerant) raise(unreachable.front());
    if (blocked) found.unreachable = std::move(unreachable);
    return texts;
  }

 private:
  void add(const LogFound& one, std::vector<Failure>& unreachable) {
    LogFound& all = reading_.found;
    all.flood = all.flood || one.flood;
    all.directory = all.directory || one.directory;
    all.conf_answered = all.conf_answered || one.conf_answered;
    all.conf_silent = all.conf_silent || !one.conf_answered;
    all.conf = united(std::move(all.conf), one.conf);
    for (const RingShape& shape : one.shapes) {
      if (std::find(all.shapes.begin(), all.shapes.end(), shape) == all.shapes.end())
        all.shapes.push_back(shape);
    }
    unreachable.insert(unreachable.end(), one.unreachable.begin(), one.unreachable.end());
  }

  RingText read_copies() {
    RingText ring;
    ring.readings = std::vector<LogReading>(copies_.size(), {reading_.sink, true});
    ring.copies = expect_all(copies_.each([&](std::size_t copy) {
      return read_copy({copies_.at(copy), place_.shape, keys_, false}, chunks_, ring.readings[copy]);
    }));
    for (const LogReading& one : ring.readings) {
      if (one.found.flood) return ring;
      ring.confs.copies.push_back(one.found.conf_answered ? std::optional(one.found.conf) : std::nullopt);
    }
    const WallTime now = place_.context.clock.wall();
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const auto of_chunk = copies_of(ring.copies, i);
      ring.chunks.push_back(unite(of_chunk));
      if (!refills_) continue;
      const bool may_be_put = !ring.chunks.back().blocked && place_.shape.expiry_of(chunks_[i]) > now;
      // What too few copies have must not be answered, in transit or not; who follows comes again.
      const bool confirms = quorum(copies_.size()) > 1 && !reading_.tolerant;
      const WallTime young = confirms ? WallTime::max() : now - in_transit;
      ring.missing.push_back(may_be_put ? missing_lines(of_chunk, young)
                                        : std::vector<std::string>(copies_.size()));
    }
    return ring;
  }

  // Gives a copy what others have. What cannot be written now does not keep the rest from being written.
  // Throws if an event could not be.
  void refill(const RingText& ring, std::size_t copy) {
    PartWriter& writer = place_.writers[copy];
    std::optional<Failure> failure;
    if (ring.confs.lacks(copy))
      static_cast<void>(attempt([&] { add_to_conf(copies_.at(copy), keys_.conf(), ring.confs.all()); }));
    if (ring.any_missing()) {
      for (PartWriter& one : place_.writers) one.may_begin();
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

  LogPlace& place_;
  const Replicas& copies_;
  const LogKeys& keys_;
  std::span<const std::int64_t> chunks_;
  LogReading& reading_;
  bool refills_;
};

// Adds what a former ring has of these chunks. Who got no answer from its conf key goes on to write there:
// then it is read for longer.
void read_former(LogPlace& place, const FormerRing& former, std::span<const std::int64_t> chunks,
                 std::span<ChunkText> texts, LogReading& reading) {
  const std::int64_t ring = former.number.ring();
  const std::int64_t first_copy = ring * PartName::copies_per_ring;
  LogReading own{reading.sink, reading.tolerant, false};
  const Replicas copies(former.number.in(place.context));
  auto formers = RingReader(place, copies, place.keys_of(former), chunks, own).read();
  LogFound& found = reading.found;
  found.flood = own.found.flood;
  found.directory = found.directory || own.found.directory;
  found.unreachable.insert(found.unreachable.end(), own.found.unreachable.begin(),
                           own.found.unreachable.end());
  WallTime until = former.until;
  for (std::size_t i = 0; i < formers.size(); ++i) {
    ChunkText& chunk = formers[i];
    ChunkText& text = texts[i];
    rely_on(text.chunk == chunk.chunk, "the rings of a log are read chunk by chunk");
    text.formers.insert(ring);
    if (chunk.whole) text.whole_formers.insert(ring);
    const auto name_loss = [&](const PartName& name, const std::string& incarnation) {
      text.named.emplace_back(PartName{name.chunk, name.part, first_copy + name.copy}, incarnation);
    };
    for (const auto& [name, incarnation] : chunk.named) name_loss(name, incarnation);
    if (chunk.directory_lost && chunk.parts.empty()) name_loss({chunk.chunk, 0}, std::string(16, '0'));
    if (!chunk.parts.empty()) until = std::max(until, place.shape.expiry_of(chunk.chunk));
    for (auto& [number, part] : chunk.parts)
      text.parts[{first_copy + number.copy, number.part}] = std::move(part);
  }
  if (!reading.refills || until <= former.until) return;
  const InUse longer{former.number.text() + '/' + place.shape.text(), until};
  static_cast<void>(place.copies.each([&](std::size_t copy) {
    add_to_conf(place.copies.at(copy), place.keys.conf(), std::span(&longer, 1));
  }));
}

}  // namespace

std::vector<ChunkText> read_chunks(LogPlace& place, std::span<const std::int64_t> chunks,
                                   LogReading& reading) {
  auto texts = RingReader(place, place.copies, place.keys, chunks, reading).read();
  place.remember(reading.found.conf);
  for (const FormerRing& former : place.formers) {
    if (reading.found.flood) return {};
    if (former.shape == place.shape) read_former(place, former, chunks, texts, reading);
  }
  if (reading.found.flood) return {};
  return texts;
}

}  // namespace mcds
