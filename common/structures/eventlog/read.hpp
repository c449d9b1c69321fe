// Reading chunks: from the items of a ring to events in order, and what is missing. Used by eventlog.cpp's
// reads.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/primitives/several/quorum.hpp"
#include "common/structures/eventlog/eventlog.hpp"

namespace mcds {

// One directory's lines. Names that were withdrawn do not count.
class LogDirectory {
 public:
  enum class State { missing, present, unreachable } state = State::missing;
  // Foreign lines are skipped and counted.
  void add(std::string_view value);
  // The incarnations named for each part of this chunk, up to `until`.
  std::vector<std::pair<PartName, std::string>> named(std::int64_t chunk, WallTime until) const;
  bool knows(const PartName& name, std::string_view incarnation) const;
  std::int64_t last_part_of(std::int64_t chunk) const;
  std::size_t damaged_lines() const { return damaged_; }
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

// Of which copy of the log, and which part; a copy's own text has copy 0 only.
struct CopyPart {
  std::int64_t copy = 0;
  std::int64_t part = 0;
  auto operator<=>(const CopyPart&) const = default;
};

struct ChunkText {
  std::int64_t chunk = 0;
  std::map<CopyPart, PartText> parts;  // those that are there, or unreachable
  std::vector<std::pair<PartName, std::string>> all_named =
      {};  // also the newest, which may not be created yet
  std::vector<std::pair<PartName, std::string>> unnamed =
      {};                        // parts that are there and not in the directory
  std::int64_t last_named = -1;  // the last part its directory names; any, if the directory does not answer
  bool whole = false;            // one of several copies has all its parts: nothing is lost
  bool directory_lost = false;   // a part is there that no directory knows
  std::set<std::int64_t> formers = {};  // numbers of the former rings that were read too
  std::set<std::int64_t> whole_formers =
      {};  // numbers of former rings of which nothing is lost: PartName::ring
  std::vector<std::pair<PartName, std::string>> named;
};

// The merged contents of one chunk's copies. `blocked`: data that no answering server has may be on one that
// does not answer.
struct UnitedChunk {
  ChunkText text;
  bool blocked = false;
  std::vector<CopyState> states = {};  // of each copy
};
UnitedChunk unite(std::span<const ChunkText* const> copies);

// A ring's chunks as its copies have them, and united.
struct RingText {
  std::vector<LogSummary> summaries = {};           // of each copy
  std::vector<std::vector<ChunkText>> copies = {};  // of each, the chunks
  std::vector<UnitedChunk> chunks = {};             // none: the copies are too large to be held together
  std::vector<std::vector<std::string>> missing =
      {};  // of each chunk, the lines each copy lacks; none: repair nothing
  ConfCopies confs = {};

  bool any_missing() const;
  bool lacks(std::size_t copy) const;
  // Why something of it is in too few copies to be answered; `unrefilled`: copies that did not get what they
  // lack.
  std::optional<Failure> unconfirmed(std::span<const std::optional<Failure>> unrefilled) const;
  // An event's id says when it was put.
  static bool may_be_late() { return false; }
};

// The lines of events that each copy lacks and another has; nothing for a copy that does not answer, nor when
// all that is missing is younger than `young` and may be in transit.
std::vector<std::string> missing_lines(std::span<const ChunkText* const> copies, WallTime young);

// The parts that the copy's directory lists and the copy lacks.
std::vector<std::pair<PartName, std::string>> lost_parts(const ChunkText& copy);

// Parts whose contents are read; those before and behind are as if their server did not answer.
struct PartWindow {
  std::int64_t first = 0;
  std::int64_t count = most_parts;
  std::int64_t end() const { return std::min(first + count, most_parts); }
};

class ChunkReader {
 public:
  // `alone`: there is no other copy, whose parts lie under the same keys on other servers.
  ChunkReader(Context& context, const RingShape& shape, const LogKeys& keys, bool alone, bool tolerant,
              LogSink& sink, LogSummary& summary)
      : context_(context),
        shape_(shape),
        keys_(keys),
        alone_(alone),
        tolerant_(tolerant),
        sink_(sink),
        summary_(summary) {}

  // In the order given. One round trip, more only for third and further parts and for parts in no directory.
  // Nothing, and `summary.flood`, when it is more than is held at a time.
  std::vector<ChunkText> read(std::span<const std::int64_t> chunks, PartWindow window = {});
  // After a read of one chunk: there may be parts behind the window.
  bool goes_on() const { return goes_on_; }

 private:
  struct Asked {
    std::size_t position;  // in chunks_
    PartName name;
  };
  void ask_first(std::span<const std::int64_t> chunks);
  bool ask_further();
  void leave_out_the_rest();
  void ask_holes();
  void ask_misplaced();
  void execute(std::vector<Request>& batch, const std::vector<Asked>& asked,
               std::span<const std::int64_t> groups);
  void take_part(const Asked& asked, Reply reply);
  void take_directory(std::int64_t group, const Reply& reply);
  void take_conf(const Reply& reply);
  void ask_these(std::vector<Request>& batch, std::vector<Asked>& asked);
  bool usable(const Reply& reply);
  void hold(const Reply& reply);
  void find_lost_directories();
  std::set<std::int64_t> groups_without_their_parts() const;

  Context& context_;
  const RingShape& shape_;
  const LogKeys& keys_;
  bool alone_;
  bool tolerant_;
  LogSink& sink_;
  LogSummary& summary_;
  std::vector<ChunkText> chunks_;
  std::vector<std::int64_t> next_part_;
  PartWindow window_;
  bool goes_on_ = false;
  std::size_t bytes_ = 0;
  std::map<std::int64_t, LogDirectory> directories_;
};

}  // namespace mcds
