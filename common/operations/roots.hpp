// What names other keys: journals with segments, and journals, event logs and directories that changed in
// both places.
#pragma once

#include "common/operations/map.hpp"
#include "common/primitives/context.hpp"

namespace mcds::moving {

class Roots {
 public:
  Roots(const Context& from, Cluster& to) : from_(from), to_(to) {}

  struct Place {
    const std::string& key;
    std::size_t from, to;
  };
  // Whether `value` is a journal's root that names segments.
  static bool has_segments(std::string_view value);
  // Whether `value` is what this kind is made of; else it is an item like others.
  static bool is_of(Kind kind, std::string_view value);

  // Sees to it that all segments which the root names are in the new place; returns that root, which may be a
  // newer one than `value`. Throws Failure with what is missing.
  Reply with_segments(const Place& place, Reply root) const;
  // Adds what the old place has and the new one lacks. Throws Failure.
  void unite(const Place& place, Kind kind, std::string_view old_value) const;

  // Whether the new place has every line that the old one has.
  bool has_all(const Place& place, Kind kind, std::string_view old_value) const;

 private:
  bool copy_segments(const Place& place, std::string_view root) const;
  void unite_journals(const Place& place) const;
  void unite_lines(const Place& place, Kind kind, std::string_view old_value) const;
  void withdraw(const Place& place, std::string_view incarnation) const;

  const Context& from_;
  Cluster& to_;
};

}  // namespace mcds::moving
