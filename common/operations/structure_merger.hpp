// StructureMerger: moves keys that name other keys (journals with segments), and merges journals, event logs
// and directories that changed in both places.
#pragma once

#include "common/operations/map.hpp"
#include "common/primitives/context.hpp"

namespace mcds::moving {

class StructureMerger {
 public:
  StructureMerger(const Context& from, Cluster& to) : from_(from), to_(to) {}

  struct Place {
    const std::string& key;
    std::size_t from, to;
  };
  // Returns true if `value` is a journal root that names segments.
  static bool has_segments(std::string_view value);
  // Returns true if `value` has the format of this kind; otherwise it is treated as a plain item.
  static bool is_of(Kind kind, std::string_view value);

  // Copies all segments that the root names to the new place. Returns the root, which may be newer than
  // `root`. Throws Failure if a segment is missing.
  Reply with_segments(const Place& place, Reply root) const;
  // Adds the lines that only the old place has to the new one. Withdraws the old incarnation of a log's part,
  // or of a table's or hash's shard, from what names it in the new place. Throws Failure.
  void merge(const Place& place, Kind kind, std::string_view old_value) const;

  // Returns true if the new place has every line of the old one.
  bool has_all(const Place& place, Kind kind, std::string_view old_value) const;

 private:
  bool copy_segments(const Place& place, std::string_view root) const;
  void merge_journals(const Place& place) const;
  void merge_lines(const Place& place, Kind kind, std::string_view old_value) const;
  void withdraw(const Place& place, std::string_view incarnation) const;
  void withdraw_shard(const Place& place, const std::string& incarnation, const std::string& there) const;

  const Context& from_;
  Cluster& to_;
};

}  // namespace mcds::moving
