// Encodes and decodes the bytes of an event log: ids, keys, lines. The functions are pure; eventlog.hpp has
// the layout as a whole.
//
// A line is `<id> <data> *<checksum>`; the checksum is the CRC-32 of everything before it, in 8 hex digits.
// <data> is
//   "…"    a JSON string: the event's bytes, which are UTF-8
//   b"…"   base64: the event's bytes, which are not UTF-8
//   …      any other JSON value without white space between its tokens, as it was given to --json
// No JSON text begins with b, so the three cannot be confused; a program that parses every line as JSON fails
// at the b instead of mistaking base64 for text. A JSON string given to --json is the same event as its text.
// Neither form contains a line feed: JSON strings escape it, and it is white space elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.hpp"
#include "common/primitives/active_variants.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/eventlog/event.hpp"

namespace mcds {

// Generates ids that grow strictly as long as the times given do not fall. The 74 bits start at random in
// each new millisecond and grow by random steps, so that ids of two machines do not collide.
class EventIdSource {
 public:
  explicit EventIdSource(Random& random) : random_(random) {}
  EventId next(WallTime at);

 private:
  Random& random_;
  std::uint64_t last_ms_ = 0;
  EventId last_;
  std::uint64_t steps_ = 0;  // random bits not used yet
};

// The maximum number of parts of a chunk: somewhat more than a directory has room for.
constexpr std::int64_t max_parts = 32768;

// The number of chunks that share a directory.
constexpr std::int64_t chunks_per_directory = 32;

// The keys of one ring.
class LogKeys {
 public:
  // `log` is `<namespace>eventlog:<name>`.
  LogKeys(std::string log, const RingShape& shape) : log_(std::move(log)), ring_(log_ + ':' + shape.text()) {}
  std::string part(const PartName& name) const { return ring_ + ':' + name.text(); }
  // Returns the request with a part's placement: on the server of its chunk's first part.
  Request of_part(Request request, const PartName& name) const {
    return name.part == 0 ? std::move(request) : std::move(request).placed_with(part({name.chunk, 0}));
  }
  Request get(const PartName& name) const { return of_part(Request::get(part(name)), name); }
  Request append(const PartName& name, const std::string& lines) const {
    return of_part(Request::append(part(name), lines), name);
  }
  std::string directory(std::int64_t group) const { return ring_ + ":dir:" + std::to_string(group); }
  std::string conf() const { return log_ + ":conf"; }
  // Returns the name of the log with its shape, to which a cursor belongs.
  const std::string& ring() const { return ring_; }

 private:
  std::string log_;
  std::string ring_;
};

// A log in one shape.
struct LogRing {
  // Throws InvalidInput for an unusable name.
  LogRing(const Context& of, std::string_view name, const RingShape& in_shape)
      : context(of), shape(in_shape), keys(structure_key(of, "eventlog", name), in_shape) {}

  Context context;
  RingShape shape;
  LogKeys keys;
};

// Returns the shapes that a log's conf key has in use, the newest last.
std::vector<RingShape> shapes_in(std::span<const ActiveVariant> conf);

// Appends one line, line feed included. Throws Failure(bad_data) if json is required and `data` is not JSON,
// or if the line would not fit into an item.
void append_event_line(std::string& out, const EventId& id, std::string_view data, EventData kind);

// Describes a whole line that this version cannot read.
constexpr const char* unknown_form =
    "holds lines of another program in an unknown form; do not drop the event log";
// Parses `line` without its line feed. Returns nullopt if it is not exactly such a line with its checksum.
std::optional<EventLine> parse_event_line(std::string_view line);
// Does the same for a line that follows foreign bytes without a line feed.
std::optional<EventLine> salvage_event_line(std::string_view line);

// Returns the first line of a part: `E1 <part name> <incarnation of 16 random hex digits> *<checksum>\n`.
std::string part_header(const PartName& name, std::string_view incarnation);
struct PartHeader {
  std::string_view incarnation;
  std::size_t size;
};
std::optional<PartHeader> parse_part_header(std::string_view value, const PartName& name);

// Returns a line of `size` bytes without meaning: `F <spaces> *<checksum>\n`. It replaces dropped events.
constexpr std::size_t min_filler = 16;
std::string filler_line(std::size_t size);
bool is_filler(std::string_view line);

// Return lines of a directory: `N <part name> <incarnation> <UNIX seconds> *<checksum>\n` is written before a
// part is created, `W <part name> <incarnation> *<checksum>\n` if another client created it first.
std::string named_line(const PartName& name, std::string_view incarnation, WallTime now);
std::string withdrawn_line(const PartName& name, std::string_view incarnation);
struct DirectoryLine {
  bool named;  // else withdrawn
  PartName name;
  std::string_view incarnation;
  WallTime at;
  bool follows_foreign = false;
};
// Parses `line` without its line feed, also one that follows foreign bytes without a line feed.
std::optional<DirectoryLine> parse_directory_line(std::string_view line);

}  // namespace mcds
