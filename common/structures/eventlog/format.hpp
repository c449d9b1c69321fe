// The bytes of an event log: ids, keys, lines. Pure functions; eventlog.hpp has the layout as a whole.
//
// A line is `<id> <data> *<checksum>`, the checksum being the CRC-32 of what stands before it, in 8 hex
// digits. <data> is
//   "…"    a JSON string: the event's bytes, which are UTF-8
//   b"…"   base64: the event's bytes, which are not UTF-8
//   …      any other JSON value without white space between its tokens, as it was given to --json
// No JSON text begins with b, so the three cannot be confused, whatever the data; a program that parses every
// line as JSON fails at the b instead of mistaking base64 for text. A JSON string given to --json
// is the same event as its text.
// Neither form contains a line feed: JSON strings escape it, and it is white space elsewhere.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/base/clock.hpp"
#include "common/base/random.hpp"
#include "common/cluster/request.hpp"

namespace mcds {

// A UUIDv7 (RFC 9562): 48 bits of UNIX milliseconds, then version, variant and 74 bits that count up within a
// millisecond.
struct EventId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const EventId&) const = default;
  // `01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18`, 36 characters that sort as the ids do.
  std::string text() const;
  void append_to(std::string& out) const;
  WallTime time() const;
  static std::optional<EventId> parse(std::string_view text);
};

constexpr std::size_t event_id_size = 36;

// Ids that grow strictly as long as the times given do not fall. The 74 bits start at random in each new
// millisecond and grow by random steps, so that no two machines meet.
class EventIdSource {
 public:
  explicit EventIdSource(Random& random) : random_(random) {}
  EventId next(WallTime at);

 private:
  Random& random_;
  std::uint64_t last_ms_ = 0;
  EventId last_;
  std::uint64_t steps_ = 0;  // random bits drawn and not used yet
};

// C seconds per chunk, N chunks kept.
struct RingShape {
  std::int64_t chunk_s = 60;
  std::int64_t chunks = 60;

  bool operator==(const RingShape&) const = default;
  // Throws InvalidInput, naming --chunk or --chunks.
  static RingShape of(Duration chunk, std::uint64_t chunks);

  std::int64_t chunk_of(WallTime time) const;
  WallTime start_of(std::int64_t chunk) const { return WallTime(std::chrono::seconds(chunk * chunk_s)); }
  // How long every event is kept: N * C.
  std::chrono::seconds kept() const { return std::chrono::seconds(chunk_s * chunks); }
  // When a chunk's item ends: N chunks after its end, a tick, and half a chunk for clocks that differ.
  WallTime expiry_of(std::int64_t chunk) const;
  std::string text() const { return std::to_string(chunk_s) + 'x' + std::to_string(chunks); }
  static std::optional<RingShape> parse(std::string_view text);
};

// One item of the ring: chunk 29920568's first part is `29920568`, the next `29920568.1`. Which of several
// copies of the log it is of is known to readers only: no key and no header says it.
struct PartName {
  std::int64_t chunk = 0;
  std::int64_t part = 0;
  std::int64_t copy = 0;

  bool operator==(const PartName&) const = default;
  std::strong_ordering operator<=>(const PartName& other) const {
    return std::tie(chunk, copy, part) <=> std::tie(other.chunk, other.copy, other.part);
  }
  // Of which ring, for a log that was kept in other numbers of copies before: 0 is the one in use,
  // LogNumber::ring() another.
  static constexpr std::int64_t copies_per_ring = 100;
  std::int64_t ring() const { return copy / copies_per_ring; }
  PartName stored() const { return {chunk, part}; }
  std::string text() const;
  static std::optional<PartName> parse(std::string_view text);
};

// Of one copy of a chunk, a bound for what a directory may name: some more than it has room for.
constexpr std::int64_t most_parts = 32768;

// How many chunks share a directory.
constexpr std::int64_t chunks_per_directory = 32;

class LogKeys {
 public:
  // `log` is `<namespace>eventlog:<name>`.
  LogKeys(std::string log, const RingShape& shape) : log_(std::move(log)), ring_(log_ + ':' + shape.text()) {}
  std::string part(const PartName& name) const { return ring_ + ':' + name.text(); }
  // Of a part's item, which lies with the first of its chunk.
  Request of_part(Request request, const PartName& name) const {
    return name.part == 0 ? std::move(request) : std::move(request).lying_with(part({name.chunk, 0}));
  }
  std::string directory(std::int64_t group) const { return ring_ + ":dir:" + std::to_string(group); }
  std::string conf() const { return log_ + ":conf"; }
  // Names the log and its shape: what a cursor belongs to.
  const std::string& ring() const { return ring_; }

 private:
  std::string log_;
  std::string ring_;
};

enum class EventData { text, json };

// Appends one line, line feed included. Throws Failure(bad_data) if json is required and `data` is not JSON,
// or when the line would not fit into an item.
void append_event_line(std::string& out, const EventId& id, std::string_view data, EventData kind);

struct EventLine {
  EventId id;
  std::string_view data;  // as stored: JSON, or with `base64` the digits
  bool base64 = false;
  // Its checksum is right, but its data is none of the three: another program's, to be shown as bytes and
  // reported.
  bool foreign = false;

  // What was put: a string's bytes, or the JSON text.
  std::string bytes() const;
};
// `line` without its line feed; nullopt for anything that is not exactly such a line with its checksum.
std::optional<EventLine> parse_event_line(std::string_view line);
// The same for a line that foreign bytes without a line feed were put before.
std::optional<EventLine> salvage_event_line(std::string_view line);

// First line of a part: `E1 <part name> <incarnation> *<checksum>\n`; the incarnation is 16 random hex
// digits.
std::string part_header(const PartName& name, std::string_view incarnation);
struct PartHeader {
  std::string_view incarnation;
  std::size_t size;
};
std::optional<PartHeader> parse_part_header(std::string_view value, const PartName& name);

// A line that means nothing, of `size` bytes, at least 16: `F <spaces> *<checksum>\n`. It fills a part.
std::string filler_line(std::size_t size);
bool is_filler(std::string_view line);

// Lines of a directory: `N <part name> <incarnation> <UNIX seconds> *<checksum>\n` is written before a part
// is created, `W <part name> <incarnation> *<checksum>\n` if it was not, because another client was first.
std::string named_line(const PartName& name, std::string_view incarnation, WallTime now);
std::string withdrawn_line(const PartName& name, std::string_view incarnation);
struct DirectoryLine {
  bool named;  // else withdrawn
  PartName name;
  std::string_view incarnation;
  WallTime at;
};
std::optional<DirectoryLine> parse_directory_line(std::string_view line);

// The shapes that the conf key's value (common/primitives/in_use.hpp) says are in use, the newest last.
std::vector<RingShape> parse_conf(std::string_view value, WallTime now);

// Takes the first line off `text`, without its line feed. The last line may lack one.
std::string_view take_line(std::string_view& text);

}  // namespace mcds
