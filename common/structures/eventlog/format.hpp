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

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.hpp"
#include "common/primitives/in_use.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/eventlog/event.hpp"

namespace mcds {

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

// Of a chunk, a bound for what a directory may name: some more than it has room for.
constexpr std::int64_t most_parts = 32768;

// How many chunks share a directory.
constexpr std::int64_t chunks_per_directory = 32;

// The keys of one ring.
class LogKeys {
 public:
  // `log` is `<namespace>eventlog:<name>`.
  LogKeys(std::string log, const RingShape& shape) : log_(std::move(log)), ring_(log_ + ':' + shape.text()) {}
  std::string part(const PartName& name) const { return ring_ + ':' + name.text(); }
  // Of a part's item, which lies with the first of its chunk.
  Request of_part(Request request, const PartName& name) const {
    return name.part == 0 ? std::move(request) : std::move(request).lying_with(part({name.chunk, 0}));
  }
  Request get(const PartName& name) const { return of_part(Request::get(part(name)), name); }
  Request append(const PartName& name, const std::string& lines) const {
    return of_part(Request::append(part(name), lines), name);
  }
  std::string directory(std::int64_t group) const { return ring_ + ":dir:" + std::to_string(group); }
  std::string conf() const { return log_ + ":conf"; }
  // Names the log and its shape: what a cursor belongs to.
  const std::string& ring() const { return ring_; }

 private:
  std::string log_;
  std::string ring_;
};

// A log as it is kept in one shape.
struct LogRing {
  // Throws InvalidInput for an unusable name.
  LogRing(const Context& of, std::string_view name, const RingShape& in_shape)
      : context(of), shape(in_shape), keys(structure_key(of, "eventlog", name), in_shape) {}

  Context context;
  RingShape shape;
  LogKeys keys;
};

// The shapes among what a log's conf key says is in use, the newest last.
std::vector<RingShape> shapes_in(std::span<const InUse> conf);

// Appends one line, line feed included. Throws Failure(bad_data) if json is required and `data` is not JSON,
// or when the line would not fit into an item.
void append_event_line(std::string& out, const EventId& id, std::string_view data, EventData kind);

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

// A line that means nothing, of `size` bytes: `F <spaces> *<checksum>\n`. It fills a part.
constexpr std::size_t smallest_filler = 16;
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

}  // namespace mcds
