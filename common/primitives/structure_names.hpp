// The structure to which a key belongs, by its name alone: for lists of live keys. A structure's name may
// have colons, so a key of another program with such a name is mistaken for one.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "common/primitives/several/number.hpp"

namespace mcds {

struct StructureName {
  std::string_view structure;  // `lock`, `counter`, …
  std::string_view name;       // of the structure
  std::size_t copies = 1;      // as the key says it
  bool in_several() const { return !is_only(copies); }
  // Returns the number of copies: a lock's key says none, so a lock has as many as are configured.
  std::size_t copies_or(std::size_t configured) const { return structure == "lock" ? configured : copies; }
  // Whether this is the key by which it is known: one of those that are there while it is.
  bool is_root = false;
};

// `key` without its namespace; nullopt if it is not ours.
std::optional<StructureName> structure_named(std::string_view key);

struct NameInNamespace {
  std::string_view key_prefix;
  StructureName name;
};
// The same of a whole key; where `key_prefix` is empty, in any namespace.
std::optional<NameInNamespace> structure_in(std::string_view key, std::string_view key_prefix);

// Whether it is one that every server has, with another value: which votes it may give on locks.
bool is_vote(std::string_view key);
// Returns whether `key` names a lock with its fence, or a vote. Removed by somebody else than who uses it, it
// would give a lock two holders.
bool is_relied_on(std::string_view key, std::string_view key_prefix);

// Whether this is what a lock's key holds while somebody has it.
bool is_lock_value(std::string_view value);

}  // namespace mcds
