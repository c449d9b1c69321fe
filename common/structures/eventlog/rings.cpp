// What writers and readers see of a log: its own ring, and those it had under other numbers of copies, as
// one.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/rely.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

constexpr std::string_view foreign_copy =
    "keys of the log hold another program's values; remove them: mcds eventlog where";

bool has_part(const ChunkText& copy, const PartName& name, std::string_view incarnation) {
  const auto part = copy.parts.find(name);
  if (part == copy.parts.end()) return false;
  const auto header = parse_part_header(part->second.value, name);
  return header && header->incarnation == incarnation;
}

// Whether nothing is missing of what this copy is known to have had. Its directory is on another server and
// may be lost.
bool has_all(const ChunkText& copy) {
  std::int64_t next = 0;
  for (const auto& [name, part] : copy.parts) {
    if (part.unreachable && name.part > copy.last_named) continue;
    if (part.unreachable || name.part != next++) return false;
  }
  if (next == 0) return false;
  return std::ranges::all_of(copy.named,
                             [&](const auto& named) { return has_part(copy, named.first, named.second); });
}

std::map<EventId, std::string_view> event_lines(const ChunkText& copy) {
  std::map<EventId, std::string_view> lines;
  for (const auto& [number, part] : copy.parts) {
    std::string_view rest = part.value;
    while (!rest.empty()) {
      const std::string_view line = take_line(rest);
      if (const auto event = parse_event_line(line)) lines.emplace(event->id, line);
    }
  }
  return lines;
}

// The merged contents of one chunk's copies. `blocked`: data that no answering server has may be on one that
// does not answer.
struct UnitedChunk {
  ChunkText text;
  bool blocked = false;
  std::vector<CopyState> states = {};  // of each copy
};

// After a move of the log to other servers, directories may stand beside other copies' parts: what one names
// and another copy has is not lost, and a part that any directory names tells of no lost directory.
void pair_with_directories(std::vector<std::vector<ChunkText>>& copies) {
  for (std::vector<ChunkText>& own : copies) {
    const auto elsewhere = [&](std::size_t chunk, const auto& test) {
      return std::ranges::any_of(copies,
                                 [&](const auto& copy) { return &copy != &own && test(copy[chunk]); });
    };
    std::set<std::int64_t> lost;
    for (std::size_t i = 0; i < own.size(); ++i) {
      ChunkText& text = own[i];
      std::erase_if(text.named, [&](const NamedPart& named) {
        const auto has = [&](const ChunkText& copy) { return has_part(copy, named.first, named.second); };
        return !has(text) && elsewhere(i, has);
      });
      const bool all_known = std::ranges::all_of(text.unnamed, [&](const NamedPart& part) {
        return elsewhere(i, [&](const ChunkText& copy) {
          return std::ranges::find(copy.all_named, part) != copy.all_named.end();
        });
      });
      if (!all_known) lost.insert(text.chunk / chunks_per_directory);
    }
    for (ChunkText& text : own)
      text.directory_lost = text.directory_lost && lost.contains(text.chunk / chunks_per_directory);
  }
}

UnitedChunk unite(std::span<const ChunkText* const> copies) {
  UnitedChunk united;
  std::vector<CopyState>& states = united.states;
  bool silent = true;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const ChunkText& copy = *copies[i];
    const auto of_copy = static_cast<std::int64_t>(i);
    united.text.chunk = copy.chunk;
    united.text.directory_lost = (i == 0 || united.text.directory_lost) && copy.directory_lost;
    bool lacks_answer = false;
    for (const auto& [name, part] : copy.parts) {
      united.text.parts[{name.chunk, name.part, of_copy}] = part;
      if (part.unreachable && name.part <= copy.last_named) lacks_answer = united.blocked = true;
    }
    for (const auto& [name, incarnation] : copy.named) {
      united.text.named.push_back({{name.chunk, name.part, of_copy}, incarnation});
    }
    const auto first = copy.parts.find({copy.chunk});
    const bool is_silent = first != copy.parts.end() && first->second.unreachable;
    silent = silent && is_silent;
    united.text.whole = united.text.whole || has_all(copy);
    states.push_back({.has = has_all(copy)});
    if (is_silent || lacks_answer) states.back().failure = Failure(ErrorCode::unavailable, "no answer");
    if (copy.foreign) states.back().failure = Failure(ErrorCode::bad_data, std::string(foreign_copy));
  }
  united.blocked = (united.blocked || silent) && !united.text.whole;
  // One copy that is whole is not enough where an event is on most copies, and that one missed it.
  if (quorum(copies.size()) > 1) united.blocked = failure_of(Part::reading, states).has_value();
  return united;
}

// The parts that the copy's directory lists and the copy lacks.
std::vector<NamedPart> lost_parts(const ChunkText& copy) {
  std::vector<NamedPart> lost;
  for (const auto& [name, incarnation] : copy.all_named) {
    const auto part = copy.parts.find(name);
    const bool unreachable = part != copy.parts.end() && part->second.unreachable;
    if (!unreachable && !has_part(copy, name, incarnation)) lost.emplace_back(name, incarnation);
  }
  return lost;
}

// The lines of events that each copy lacks and another has; nothing for a copy that does not answer or is
// another program's, nor when all that is missing is younger than `young` and may be in transit.
std::vector<std::string> missing_lines(std::span<const ChunkText* const> copies, WallTime young) {
  std::vector<std::string> missing(copies.size());
  std::vector<std::map<EventId, std::string_view>> lines;
  for (const ChunkText* copy : copies) lines.push_back(event_lines(*copy));
  for (std::size_t to = 0; to < copies.size(); ++to) {
    const auto& parts = copies[to]->parts;
    if (copies[to]->foreign ||
        std::ranges::any_of(parts, [](const auto& part) { return part.second.unreachable; }))
      continue;
    bool old = false;
    for (std::size_t from = 0; from < copies.size(); ++from) {
      for (const auto& [id, line] : lines[from]) {
        if (!lines[to].emplace(id, line).second) continue;
        old = old || id.time() < young;
        missing[to].append(line).append("\n");
      }
    }
    if (!old) missing[to].clear();
  }
  return missing;
}

// A ring's chunks as its copies have them, and united.
struct RingText {
  std::vector<LogReading> readings = {};            // of each copy
  std::vector<std::vector<ChunkText>> copies = {};  // of each, the chunks
  std::vector<UnitedChunk> chunks = {};             // none: the copies are too large to be held together
  // Of each chunk, the lines each copy lacks; none: repair nothing.
  std::vector<std::vector<std::string>> missing = {};
  ConfCopies confs = {};

  bool any_missing() const {
    return std::ranges::any_of(missing, [](const auto& of_chunk) {
      return std::ranges::any_of(of_chunk, [](const auto& lines) { return !lines.empty(); });
    });
  }

  bool lacks(std::size_t copy) const {
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const ChunkText& text = copies[copy][i];
      const bool misnamed =
          chunks[i].text.whole && !text.foreign && (!text.unnamed.empty() || !lost_parts(text).empty());
      if (misnamed || !missing[i][copy].empty()) return true;
    }
    return !missing.empty() && confs.lacks(copy);
  }

  // Why something of it is in too few copies to be answered; `unrefilled`: copies that did not get what they
  // lack.
  std::optional<Failure> unconfirmed(std::span<const std::optional<Failure>> unrefilled) const {
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const auto lacking = [](const std::string& lines) { return !lines.empty(); };
      if (std::ranges::none_of(missing[i], lacking)) continue;
      std::vector<CopyState> states = chunks[i].states;
      for (std::size_t copy = 0; copy < states.size(); ++copy) {
        states[copy].has = true;
        if (!states[copy].failure && lacking(missing[i][copy])) states[copy].failure = unrefilled[copy];
      }
      if (auto failure = failure_of(Part::answering, states)) return failure;
    }
    return std::nullopt;
  }

  // An event's id says when it was put.
  static bool may_be_late() { return false; }
};

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
    if (keys_.has_one_copy()) return read_copy({copies_.at(0), place_.shape, keys_}, chunks_, reading_);
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
    if (blocked && !reading_.tolerant)
      raise(unreachable.empty() ? Failure(ErrorCode::bad_data, std::string(foreign_copy))
                                : unreachable.front());
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
      if (std::ranges::find(all.shapes, shape) == all.shapes.end()) all.shapes.push_back(shape);
    }
    unreachable.insert(unreachable.end(), one.unreachable.begin(), one.unreachable.end());
  }

  RingText read_copies() {
    RingText ring;
    ring.readings = std::vector<LogReading>(copies_.size(), {reading_.sink, true});
    ring.copies = expect_all(copies_.each([&](std::size_t copy) {
      return read_copy({copies_.at(copy), place_.shape, keys_}, chunks_, ring.readings[copy]);
    }));
    for (const LogReading& one : ring.readings) {
      if (one.found.flood) return ring;
      ring.confs.copies.push_back(one.found.conf_answered ? std::optional(one.found.conf) : std::nullopt);
    }
    pair_with_directories(ring.copies);
    const WallTime now = place_.context.clock.wall();
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      std::vector<const ChunkText*> of_chunk;
      for (const auto& copy : ring.copies) of_chunk.push_back(&copy[i]);
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
      if (ring.chunks[i].text.whole && !chunk.foreign) static_cast<void>(attempt(put_directory_right));
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
  const std::int64_t ring = ring_of(former.number);
  const std::int64_t first_copy = ring * PartName::copies_per_ring;
  LogReading own{reading.sink, reading.tolerant, false};
  const Replicas copies(place.context.in_copies(former.number.copies));
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
    for (auto& [name, part] : chunk.parts)
      text.parts[{name.chunk, name.part, first_copy + name.copy}] = std::move(part);
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
