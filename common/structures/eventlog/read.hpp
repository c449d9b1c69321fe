// Reading chunks: from the items of a ring to its chunks, and from these to events and gaps. Used by
// fetch.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/structures/eventlog/directory.hpp"
#include "common/structures/eventlog/eventlog.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds {

struct LogReading {
  LogSink& sink;
  bool tolerant = false;  // of servers that do not answer
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
  std::map<PartName, PartText> parts = {};  // those that are there, or unreachable
  bool directory_lost = false;              // a part is there that no directory knows
  std::vector<NamedPart> named = {};        // but for the newest, which may not be created yet
  bool goes_on = false;                     // there may be parts behind the window
};

// Parts whose contents are read; those before and behind are as if their server did not answer.
struct PartWindow {
  std::int64_t first = 0;
  std::int64_t count = most_parts;
  std::int64_t end() const { return std::min(first + count, most_parts); }
};

// Reads the chunks, in the order given. One round trip, more only for third and further parts and for parts
// in no directory. Returns nothing, and `flood`, when it is more than is held at a time.
std::vector<ChunkText> read_chunks(const LogRing& ring, std::span<const std::int64_t> chunks,
                                   LogReading& reading, PartWindow window = {});

// Returns the newest shape that the conf key names; none if that does not answer.
std::optional<RingShape> newest_in_use(const LogRing& ring);

// Returns until when a part must have been listed for its absence to count as a loss.
WallTime listed_long_ago(const LogRing& ring);

// Hands one chunk's undelivered events to the sink, in order, and what was lost of it before them; decreases
// `left` by the events delivered. False: the sink or the limit ended the read.
bool deliver_chunk(const LogRing& ring, const ChunkText& chunk, CursorState& state, LogReading& reading,
                   std::optional<std::uint64_t>& left);

}  // namespace mcds
