// Reading chunks: from the items of a ring to what its copies have together, and what each of them lacks.
// Used by put.cpp and fetch.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/structures/eventlog/eventlog.hpp"
#include "common/structures/eventlog/place.hpp"

namespace mcds {

// What a read found, and what it says of other places.
struct LogFound : LogSummary {
  bool flood = false;  // the chunks of one read exceed the memory limit
  // What the conf key says, of all copies that answered.
  bool conf_answered = false;
  bool conf_silent = false;  // a copy of it did not answer
  std::vector<InUse> conf;

  // Another copy, or a conf key of another number, may say more: one that was begun while others were silent
  // says little.
  bool conf_may_lack() const { return conf_answered && (conf_silent || conf.empty()); }
};

struct LogReading {
  LogSink& sink;
  bool tolerant = false;  // of servers that do not answer
  bool refills = true;    // copies get what they lack
  LogFound found = {};
};

using NamedPart = std::pair<PartName, std::string>;  // and its incarnation

// One directory's lines. Names that were withdrawn do not count.
class LogDirectory {
 public:
  bool unreachable = false;
  // Foreign lines are skipped and counted.
  void add(std::string_view value);
  // The incarnations named for each part of this chunk, up to `until`.
  std::vector<NamedPart> named(std::int64_t chunk, WallTime until) const;
  bool knows(const PartName& name, std::string_view incarnation) const {
    return named_.contains({name, std::string(incarnation)});
  }
  std::int64_t last_part_of(std::int64_t chunk) const;
  std::size_t damaged_lines() const { return damaged_; }
  bool is_foreign() const { return damaged_ != 0 && damaged_ == lines(); }
  std::size_t lines() const { return named_.size() + withdrawn_.size() + damaged_; }

 private:
  std::map<std::pair<PartName, std::string>, WallTime> named_;
  std::set<std::pair<PartName, std::string>> withdrawn_;
  std::size_t damaged_ = 0;
};

struct PartText {
  std::string value;
  std::size_t server = 0;
  bool unreachable = false;  // its contents are unknown
};

struct ChunkText {
  std::int64_t chunk = 0;
  std::map<PartName, PartText> parts;     // those that are there, or unreachable; of one copy: copy 0 only
  std::vector<NamedPart> all_named = {};  // also the newest, which may not be created yet
  std::vector<NamedPart> unnamed = {};    // parts that are there and not in the directory
  std::int64_t last_named = -1;  // the last part its directory names; any, if the directory does not answer
  bool whole = false;            // one of several copies has all its parts: nothing is lost
  bool directory_lost = false;   // a part is there that no directory knows
  bool foreign = false;          // a part or the directory is another program's: nothing is written there
  std::set<std::int64_t> formers = {};        // numbers of the former rings that were read too
  std::set<std::int64_t> whole_formers = {};  // those of which nothing is lost: PartName::ring
  std::vector<NamedPart> named;
  bool goes_on = false;  // there may be parts behind the window
};

// Parts whose contents are read; those before and behind are as if their server did not answer.
struct PartWindow {
  std::int64_t first = 0;
  std::int64_t count = most_parts;
  std::int64_t end() const { return std::min(first + count, most_parts); }
};

// The chunks of one copy, in the order given. One round trip, more only for third and further parts and for
// parts in no directory. Nothing, and `flood`, when it is more than is held at a time.
struct OneCopy {
  Context& context;
  const RingShape& shape;
  const LogKeys& keys;
};
std::vector<ChunkText> read_copy(const OneCopy& copy, std::span<const std::int64_t> chunks,
                                 LogReading& reading, PartWindow window = {});

// Of the log's ring, and of those that it had under other numbers of copies, as one. Nothing, and `flood`, as
// above.
std::vector<ChunkText> read_chunks(LogPlace& place, std::span<const std::int64_t> chunks,
                                   LogReading& reading);

// Hands one chunk's undelivered events to the sink, in order, and what was lost of it before them; decreases
// `left` by the events delivered. False: the sink or the limit ended the read.
bool deliver_chunk(const LogPlace& place, const ChunkText& chunk, CursorState& state, LogReading& reading,
                   std::optional<std::uint64_t>& left);

}  // namespace mcds
