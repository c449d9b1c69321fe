// ElementWatch reports the changes of a table or hash, which it finds by reading it again and again.
//
// Invariants
//   Each read is compared with the one before. A value that changes and changes back in between is not seen.
//   An element is reported as removed only if a complete get finds it missing too, which ends the watch if
//   the structure was created again with another number of copies.
//   Elements on a server that does not answer count as unchanged.
// Round trips
//   The first read as fetch or get. Each later one 1: all known elements, and in the same trip the index if
//   all are watched; 1 more for every 1024 elements or 2 MiB, for elements that are newly listed, and if
//   known elements are missing.
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
  // Watches `names`, or without names all elements, including later ones.
  ElementWatch(const Context& context, std::string_view structure, std::string_view name,
               std::vector<std::string> names);

  struct Change {
    std::string name;
    std::optional<std::string> before, value;  // nullopt: it did not or does not exist
    std::size_t server = 0;
  };
  struct Look {
    std::vector<Change> changes;          // of the first read: all elements
    std::optional<Failure> failure = {};  // of one of the servers that did not answer
  };
  // Reads the elements and returns their changes. The first call throws every failure. Later calls throw only
  // those that end the watch: CorruptData, another number of copies.
  Look look();

 private:
  struct Known {
    std::string value;
    std::size_t server = 0;
  };
  void begin(Look& look);
  std::vector<std::string> next_names(std::size_t& from) const;
  void read_past_index(std::span<const std::string> names, Look& look);
  void compare(std::span<const std::string> names, const std::vector<ElementResult>& results, Look& look);
  void confirm_missing(Look& look);

  bool all_;
  std::vector<std::string> names_;  // to be read
  Elements elements_;
  FiberGroup runs_;
  Elements index_, values_;             // with one run each
  std::map<std::string, Known> known_;  // elements as last read
  std::vector<std::string> missing_;    // known elements that this read missed
  bool begun_ = false;
};

}  // namespace mcds
