// Turns what was read of a chunk into events in order, each once, and reports what is missing. Used by
// fetch.cpp.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/structures/eventlog/read.hpp"

namespace mcds {

// Hands one chunk's undelivered events to the sink, in order, and what was lost of it before them. False: the
// sink or the limit ended the read.
class ChunkDelivery {
 public:
  // `key_of`: a part's key, for messages.
  using KeyOf = std::function<std::string(const PartName&)>;
  ChunkDelivery(Cluster& cluster, const RingShape& shape, std::size_t copies, KeyOf key_of, WallTime now,
                CursorState& state, LogSink& sink, LogSummary& summary)
      : cluster_(cluster),
        shape_(shape),
        copies_(copies),
        key_of_(std::move(key_of)),
        now_(now),
        state_(state),
        sink_(sink),
        summary_(summary) {}

  // Decreases `left` by the events delivered.
  bool deliver(const ChunkText& chunk, std::optional<std::uint64_t>& left);

 private:
  struct Part;
  std::vector<Part> open_parts(const ChunkText& chunk);
  std::vector<std::pair<PartName, std::string>> expected(const ChunkText& chunk,
                                                         const std::vector<Part>& parts) const;
  bool report_losses(const ChunkText& chunk, const std::vector<Part>& parts);
  std::vector<EventId> consumed_ids(std::int64_t chunk, const std::vector<Part>& parts) const;
  bool collect(Part& part, std::vector<EventLine>& events, std::optional<std::uint64_t>& left,
               std::set<EventId>* seen);
  void drop_repeated(std::int64_t chunk, const std::vector<Part>& parts,
                     std::vector<EventLine>& events) const;
  void note_early(std::int64_t chunk, const std::vector<Part>& parts, const std::vector<EventLine>& events);
  void damage(const Part& part, const std::string& what);

  Cluster& cluster_;
  const RingShape& shape_;
  std::size_t copies_;
  KeyOf key_of_;
  WallTime now_;
  CursorState& state_;
  LogSink& sink_;
  LogSummary& summary_;
};

}  // namespace mcds
