// Which structure a key is of, by its name alone: for lists of what servers hold. A structure's name may have colons, so a
// key that somebody named like a part of ours is taken for one.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace mcds {

struct StructureName {
  std::string_view structure;  // `lock`, `counter`, …
  std::string_view name;       // of the structure
  std::size_t copies = 1;      // as the key says it
  // Whether this is the key by which it is known: one of those that are there while it is.
  bool is_root = false;
};

// `key` without its namespace; nullopt: it is none of ours.
std::optional<StructureName> structure_named(std::string_view key);

}  // namespace mcds
