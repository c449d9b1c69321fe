// Reads chunks: from the items of a ring and its directories to its chunks, and from these to events and
// gaps. fetch.cpp uses it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/structures/eventlog/eventlog.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds {

using NamedPart = std::pair<PartName, std::string>;  // with its incarnation

// The lines of one directory of a log: the parts that were created, by incarnation. Parts that were withdrawn
// do not count.
class LogDirectory {
 public:
  bool unreachable = false;
  // Adds the lines of `value`. Foreign lines are skipped and counted.
  void add(std::string_view value);
  // Returns the incarnations named for each part of this chunk, up to `until`.
  std::vector<NamedPart> named(std::int64_t chunk, WallTime until = WallTime::max()) const;
  bool knows(const PartName& name, std::string_view incarnation) const {
    return named_.contains({name, std::string(incarnation)});
  }
  // Returns the last part that was named, withdrawn or not, or -1.
  std::int64_t last_part_of(std::int64_t chunk) const;
  std::size_t damaged_lines() const { return damaged_; }
  // Returns the number of whole lines in a form that this version does not know.
  std::size_t unknown_lines() const { return unknown_; }
  // Returns true if the value has lines but none that this version knows: it is another program's.
  bool is_foreign() const { return damaged_ + unknown_ != 0 && named_.empty() && withdrawn_.empty(); }

 private:
  std::map<NamedPart, WallTime> named_;
  std::set<NamedPart> withdrawn_;
  std::size_t damaged_ = 0, unknown_ = 0;
};

struct LogReading {
  LogSink& sink;
  bool tolerant = false;  // skip servers that do not answer
  LogSummary found = {};
  bool flood = false;  // the chunks of one read exceed the memory limit
};

struct PartText {
  std::string value;
  std::size_t server = 0;
  bool unreachable = false;  // its contents are unknown
};

struct ChunkText {
  std::int64_t chunk = 0;
  std::map<PartName, PartText> parts = {};  // existing or unreachable ones
  bool directory_lost = false;              // a part exists that no directory names
  std::vector<NamedPart> named = {};        // except the newest, which may not be created yet
  bool goes_on = false;                     // there may be parts after the window
};

// The parts whose contents are read. Other parts count as unreachable.
struct PartWindow {
  std::int64_t first = 0;
  std::int64_t count = max_parts;
  std::int64_t end() const { return std::min(first + count, max_parts); }
};

// Reads the chunks, in the order given, in one round trip, and in more only for third and further parts and
// for parts in no directory. Returns nothing and sets `flood` if the chunks exceed the memory limit.
std::vector<ChunkText> read_chunks(const LogRing& ring, std::span<const std::int64_t> chunks,
                                   LogReading& reading, PartWindow window = {});

// Returns the newest shape that the conf key names, or nullopt, also if its server does not answer.
std::optional<RingShape> newest_in_use(const LogRing& ring);

// Returns the time before which a part must have been listed for its absence to count as a loss.
WallTime listed_long_ago(const LogRing& ring);

// Passes one chunk's undelivered events to the sink, in order, after the losses; decreases `left` by the
// events delivered. Returns false if the sink or the limit ended the read.
bool deliver_chunk(const LogRing& ring, const ChunkText& chunk, CursorState& state, LogReading& reading,
                   std::optional<std::uint64_t>& left);

}  // namespace mcds
