// Table is a set of strings with one key per member.
//
// Key layout
//   table:<name>:v:<member>       1
//   table:<name>:i, …:i:<shard>   the index that lists members; see common/structures/elements/index.hpp
//   E.g. table:blocked:v:10.1.2.3 = 1
// Invariants
//   A member is in the table exactly while its key exists, so any memcached client can check it. fetch lists
//   every acknowledged member; common/structures/elements/elements.hpp says why. A member with a ttl expires
//   by its server's clock, as if removed then. One copy only.
// Round trips, for any number of members
//   has, remove 1; add of existing ones 1, of new ones 3 (4 with a new shard); fetch 2, one more per window.
// When things fail
//   crash, lost reply, skew   as in elements.hpp: nothing acknowledged is missing, nothing removed comes
//                             back.
//   eviction, restart, flush  of a member: missing, as if removed; of the index: complete: false.
// Source
//   The article's table, whose index was one list that readers and writers locked.
#pragma once

#include "common/structures/elements/elements.hpp"

namespace mcds {

// A table, whose get() sets `yes` if the name is a member.
class Table : public Elements {
 public:
  // Throws InvalidInput for a name that no key can contain.
  Table(const Context& context, std::string_view name) : Elements(context, "table", name) {}

  static Element member(std::string name) { return {std::move(name), "1"}; }
  // Adds the members, and sets `yes` for each that was missing before.
  std::vector<ElementResult> add(std::span<const std::string> names) {
    std::vector<Element> members;
    for (const std::string& name : names) members.push_back(member(name));
    return set(members);
  }
};

}  // namespace mcds
