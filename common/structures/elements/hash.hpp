// Hash is a map from fields to values: a table whose members have values.
//
// Key layout
//   hash:<name>:v:<field>        the bytes of the value
//   hash:<name>:i, …:i:<shard>   the index that lists fields; see common/structures/elements/index.hpp
//   E.g. hash:cfg:v:color = blue
// Invariants
//   A field exists exactly while its key exists, with the value last set, so any memcached client can read
//   and overwrite it. fetch lists every acknowledged field; common/structures/elements/elements.hpp says why.
//   A field with a ttl expires by its server's clock, as if removed then. One copy only.
// Round trips, for any number of fields
//   get, remove 1; set of existing ones 1, of new ones 3 (4 with a new shard); fetch 2, one more per window.
// When things fail
//   crash, lost reply, skew   as in elements.hpp: a field has its old or its new value, nothing in between.
//   eviction, restart, flush  of a field: missing, as if removed; of the index: complete: false.
//   full item                 a value of more than max_value_size is refused before anything is sent.
// Source
//   The article's hash: a table with values.
#pragma once

#include "common/structures/elements/elements.hpp"

namespace mcds {

// A map from fields to values. set() sets `yes` if the field was missing, get() if it exists.
class Hash : public Elements {
 public:
  // Throws InvalidInput for a name that no key can contain.
  Hash(const Context& context, std::string_view name) : Elements(context, "hash", name) {}
};

}  // namespace mcds
