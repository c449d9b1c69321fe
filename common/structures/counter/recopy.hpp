// Putting a counter into another number of copies: the steps of common/primitives/several/recopying.hpp. The
// counter is one piece: it is held in every old copy (held.hpp), merged, named in the mark as the record of a
// counter with several copies, removed from the old keys by compare-and-delete, and begun under the new ones
// with its value. What earlier versions kept in several copies under the key of one is read here, and nowhere
// else.
#pragma once

#include <string>

#include "common/primitives/several/recopying.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

// A change that has begun, or was left by who died, to its end.
void move_counter(Recopying& change, const Context& context, const std::string& name);

// A copy as one of before 0.3.
struct CounterCopyOfBefore {
  std::string value;
  std::uint32_t flags = 0;
};

// What they were together, all that was counted in its base; nullopt: nothing. Throws CorruptData.
std::optional<CounterRecord> record_of_before(const std::string& name,
                                              const std::vector<CounterCopyOfBefore>& copies);

}  // namespace mcds
