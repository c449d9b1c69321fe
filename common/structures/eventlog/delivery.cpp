// Turns the text of a chunk into events in order, each once, and reports what is missing.
#include <tuple>

#include "common/base/bytes.hpp"
#include "common/primitives/seal.hpp"
#include "common/structures/eventlog/cursor.hpp"
#include "common/structures/eventlog/read.hpp"

namespace mcds {

namespace {

struct Damages {
  std::size_t count = 0;
  std::size_t first = 0;  // offset of the first
  void note(std::size_t at) {
    if (count++ == 0) first = at;
  }
};

// The incarnation of another program's value, to which events were appended.
constexpr std::string_view foreign_part = "foreign";

// Returns true if there are events that no other part's first line claims.
bool holds_events(std::string_view text) {
  const auto first = unseal(text.substr(0, text.find('\n')));
  if (first && first->starts_with("E1 ")) return false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (parse_event_line(line) || salvage_event_line(line)) return true;
  }
  return false;
}

class ChunkDelivery {
 public:
  ChunkDelivery(const LogRing& ring, CursorState& state, LogReading& reading)
      : ring_(ring),
        shape_(ring.shape),
        now_(ring.context.clock.wall()),
        state_(state),
        sink_(reading.sink),
        found_(reading.found) {}

  bool deliver(const ChunkText& chunk, std::optional<std::uint64_t>& left) {
    std::vector<Part> parts = open_parts(chunk);
    if (report_losses(chunk, parts)) {
      sink_.gap({LogGap::Reason::evicted, shape_.start_of(chunk.chunk), shape_.start_of(chunk.chunk + 1)});
    }
    std::vector<EventLine> events;
    bool whole = true;
    for (Part& part : parts) {
      found_.bytes += part.text->value.size();
      whole = collect(part, events, left) && whole;
    }
    found_.parts += parts.size();
    found_.chunks += parts.empty() ? 0 : 1;
    drop_repeated(parts, events);
    for (const Part& part : parts) {
      state_.parts[part.name] = {std::string(part.incarnation), part.start, part.last};
    }
    const EventId* before = nullptr;
    for (const EventLine& event : events) {
      require(before == nullptr || *before < event.id, "events are delivered in the order of their ids");
      before = &event.id;
      ++found_.events;
      if (!sink_.event(event)) return false;
    }
    return whole;
  }

 private:
  // An existing part, and how far it was consumed.
  struct Part {
    PartName name;
    const PartText* text;
    std::string_view incarnation = {};
    std::size_t start = 0;  // offset of the undelivered bytes
    std::optional<EventId> last = {};
    bool replaced = false;  // the consumed bytes are no longer the same
  };

  std::vector<Part> open_parts(const ChunkText& chunk) {
    std::vector<Part> parts;
    for (const auto& [name, text] : chunk.parts) {
      if (text.unreachable) continue;
      Part part{.name = name, .text = &text};
      const auto header = parse_part_header(text.value, name);
      if (!header) damage(part, "is not a part of an event log");
      if (!header && !holds_events(text.value)) continue;
      part.incarnation = header ? header->incarnation : foreign_part;
      // Its writer was slow to create it; it is not lost.
      state_.lost.erase({part.name, std::string(part.incarnation)});
      part.start = header ? header->size : 0;
      const auto known = state_.parts.find(part.name);
      if (known != state_.parts.end() && known->second.incarnation == part.incarnation) {
        const auto& consumed = known->second;
        part.replaced = consumed.bytes > text.value.size() || consumed.bytes < part.start ||
                        (consumed.bytes != 0 && text.value[consumed.bytes - 1] != '\n');
        if (!part.replaced) std::tie(part.start, part.last) = std::tie(consumed.bytes, consumed.last);
      }
      parts.push_back(part);
    }
    return parts;
  }

  // Returns the parts that should exist: in the promised window all known parts; in older chunks that have
  // not expired, those that were read and have been replaced, because their events may exist again.
  std::vector<NamedPart> expected(const ChunkText& chunk, const std::vector<Part>& parts) const {
    const std::int64_t current = shape_.chunk_of(now_);
    const bool promised = chunk.chunk >= current - shape_.chunks && chunk.chunk <= current;
    std::vector<NamedPart> all;
    const auto there = [&](const PartName& name) {
      return std::ranges::any_of(parts, [&](const Part& part) { return part.name == name; });
    };
    for (auto known = state_.parts.lower_bound({chunk.chunk, 0}); known != state_.parts.end(); ++known) {
      if (known->first.chunk != chunk.chunk) break;
      if (promised || (shape_.expiry_of(chunk.chunk) > now_ && there(known->first)))
        all.emplace_back(known->first, known->second.incarnation);
    }
    if (!promised) return all;
    all.insert(all.end(), chunk.named.begin(), chunk.named.end());
    const std::string unnamed(16, '0');
    for (const Part& part : parts) {
      for (PartName before{chunk.chunk, part.name.part - 1}; before.part >= 0; --before.part) {
        if (chunk.parts.contains(before)) break;
        const auto reported = state_.lost.lower_bound({before, ""});
        const bool again = reported != state_.lost.end() && reported->first == before;
        if (!again) all.emplace_back(before, unnamed);
      }
    }
    if (chunk.directory_lost && chunk.parts.empty()) all.emplace_back(PartName{chunk.chunk, 0}, unnamed);
    return all;
  }

  // Returns true if incarnations of this chunk's parts are gone whose loss was not reported yet.
  bool report_losses(const ChunkText& chunk, const std::vector<Part>& parts) {
    bool lost = std::ranges::any_of(parts, [](const Part& part) { return part.replaced; });
    for (const auto& [name, incarnation] : expected(chunk, parts)) {
      const auto text = chunk.parts.find(name);
      if (text != chunk.parts.end() && text->second.unreachable) continue;
      const auto same = [&](const Part& part) {
        return part.name == name && part.incarnation == incarnation;
      };
      if (std::ranges::any_of(parts, same)) continue;
      const auto known = state_.parts.find(name);
      if (known != state_.parts.end() && known->second.incarnation == incarnation) state_.parts.erase(known);
      lost = state_.lost.emplace(name, incarnation).second || lost;
    }
    return lost;
  }

  // Adds the part's undelivered events. Returns false if the limit ends before them.
  bool collect(Part& part, std::vector<EventLine>& events, std::optional<std::uint64_t>& left) {
    std::string_view rest = std::string_view(part.text->value).substr(part.start);
    Damages lines, data;
    bool unknown = false;
    const auto report = [&](bool whole) {
      report_damage(part, lines, "a line that is not an event", "lines that are not events");
      report_damage(part, data, "an event that is not JSON, shown as bytes",
                    "events that are not JSON, shown as bytes");
      if (unknown) sink_.damaged(corrupt(part, unknown_form));
      return whole;
    };
    while (!rest.empty()) {
      std::string_view after = rest;
      const std::string_view line = take_line(after);
      if (left && *left == 0) return report(false);
      if (line.size() == rest.size()) {
        if (part.incarnation != foreign_part) damage(part, "ends in the middle of a line");
        return report(true);
      }
      auto event = parse_event_line(line);
      if (!event && !is_filler(line) && unseal(line)) {
        unknown = true;
      } else if (!event && !is_filler(line)) {
        if (part.incarnation != foreign_part) lines.note(part.start);
        event = salvage_event_line(line);
      }
      if (event && event->foreign) data.note(part.start);
      part.start += line.size() + 1;
      rest = after;
      if (!event) continue;
      part.last = event->id;
      events.push_back(*event);
      if (left) --*left;
    }
    return report(true);
  }

  // Sorts by id and drops ids that occur twice, or that were already consumed in any part.
  void drop_repeated(const std::vector<Part>& parts, std::vector<EventLine>& events) const {
    if (events.empty()) return;
    const auto by_id = [](const EventLine& a, const EventLine& b) { return a.id < b.id; };
    const auto same_id = [](const EventLine& a, const EventLine& b) { return a.id == b.id; };
    if (!std::ranges::is_sorted(events, by_id)) std::ranges::stable_sort(events, by_id);
    events.erase(std::unique(events.begin(), events.end(), same_id), events.end());
    const std::vector<EventId> before = consumed_ids(parts);
    std::erase_if(events,
                  [&](const EventLine& event) { return std::ranges::binary_search(before, event.id); });
  }

  // Returns the ids, sorted.
  std::vector<EventId> consumed_ids(const std::vector<Part>& parts) const {
    std::vector<EventId> before;
    for (const Part& part : parts) {
      const auto known = state_.parts.find(part.name);
      if (known == state_.parts.end() || part.replaced || known->second.incarnation != part.incarnation)
        continue;
      std::string_view consumed = std::string_view(part.text->value).substr(0, known->second.bytes);
      while (!consumed.empty()) {
        if (const auto id = EventId::parse(take_line(consumed).substr(0, event_id_size)))
          before.push_back(*id);
      }
    }
    std::ranges::sort(before);
    return before;
  }

  void report_damage(const Part& part, const Damages& damages, const std::string& one,
                     const std::string& many) {
    if (damages.count == 0) return;
    const std::string what = damages.count == 1
                                 ? one + ", at byte "
                                 : std::to_string(damages.count) + ' ' + many + ", the first at byte ";
    damage(part, "has " + what + std::to_string(damages.first));
  }

  void damage(const Part& part, const std::string& what) {
    sink_.damaged(corrupt(part, what + ": another program writes to this key"));
  }

  CorruptData corrupt(const Part& part, const std::string& what) const {
    return CorruptData(ring_.keys.part(part.name) + ' ' + what,
                       ring_.context.cluster.address_of(part.text->server));
  }

  const LogRing& ring_;
  const RingShape& shape_;
  WallTime now_;
  CursorState& state_;
  LogSink& sink_;
  LogSummary& found_;
};

}  // namespace

bool deliver_chunk(const LogRing& ring, const ChunkText& chunk, CursorState& state, LogReading& reading,
                   std::optional<std::uint64_t>& left) {
  return ChunkDelivery(ring, state, reading).deliver(chunk, left);
}

}  // namespace mcds
