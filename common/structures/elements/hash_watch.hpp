// What changes in a table or hash, seen by looking again and again.
//
// Invariants
//   Each look compares with the one before. What changes and changes back in between is not seen. An element
//   is reported as removed only if a whole get finds it missing too, which ends the watch if the name was
//   begun anew in another number of copies.
//   What a server that does not answer has is taken to be unchanged.
// Round trips
//   The first look as fetch, or get. Each further one 1: all elements that are known, and beside them the
//   index if all are watched; 1 more for every 1024 elements or 2 MiB, for elements that the index did not
//   list before, and if some are missing that were there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/replication/replicas.hpp"
#include "common/structures/elements/elements.hpp"

namespace mcds {

class ElementWatch {
 public:
  // Without names: all elements, those too that come later.
  ElementWatch(const Context& context, std::string_view structure, std::string_view name,
               std::vector<std::string> names);

  struct Change {
    std::string name;
    std::optional<std::string> before, value;  // nullopt: it was, or is, not there
    std::size_t server = 0;
  };
  struct Look {
    std::vector<Change> changes;          // at the first look: what is there
    std::optional<Failure> failure = {};  // one of those that left something unknown
  };
  // Throws what the first look meets, and later what shows that there is nothing more to see: CorruptData,
  // another number of copies.
  Look look();

 private:
  struct Known {
    std::string value;
    std::size_t server = 0;
  };
  void begin(Look& look);
  std::vector<std::string> next_names(std::size_t& from) const;
  void look_beside_index(std::span<const std::string> names, Look& look);
  void compare(std::span<const std::string> names, const std::vector<ElementResult>& results, Look& look);
  void confirm_missing(Look& look);

  bool all_;
  std::vector<std::string> names_;  // what is looked for
  Elements elements_;
  SideBySide runs_;
  Elements index_, values_;             // in their own runs
  std::map<std::string, Known> known_;  // what is there
  std::vector<std::string> missing_;    // of it, by this look
  bool begun_ = false;
};

}  // namespace mcds
