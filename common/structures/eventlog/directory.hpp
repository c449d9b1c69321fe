// LogDirectory is one directory of a log: the parts that were created, by incarnation.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/structures/eventlog/event.hpp"

namespace mcds {

using NamedPart = std::pair<PartName, std::string>;  // with its incarnation

// The lines of one directory. Parts that were withdrawn do not count.
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

}  // namespace mcds
