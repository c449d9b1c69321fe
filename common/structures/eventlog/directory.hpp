// What one directory of a log says: which parts were created, by incarnation.
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

using NamedPart = std::pair<PartName, std::string>;  // and its incarnation

// One directory's lines. Names that were withdrawn do not count.
class LogDirectory {
 public:
  bool unreachable = false;
  // Foreign lines are skipped and counted.
  void add(std::string_view value);
  // The incarnations named for each part of this chunk, up to `until`.
  std::vector<NamedPart> named(std::int64_t chunk, WallTime until = WallTime::max()) const;
  bool knows(const PartName& name, std::string_view incarnation) const {
    return named_.contains({name, std::string(incarnation)});
  }
  // Of those that were named, withdrawn or not; -1: there is none.
  std::int64_t last_part_of(std::int64_t chunk) const;
  std::size_t damaged_lines() const { return damaged_; }
  // Whether it is another program's value.
  bool is_foreign() const { return damaged_ != 0 && named_.empty() && withdrawn_.empty(); }

 private:
  std::map<NamedPart, WallTime> named_;
  std::set<NamedPart> withdrawn_;
  std::size_t damaged_ = 0;
};

}  // namespace mcds
