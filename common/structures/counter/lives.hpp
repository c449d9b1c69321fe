// The lives of a counter with several copies.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/primitives/versions.hpp"

namespace mcds {

// A counter's life begins with its creation, a set, or a removal that did not reach every copy. Its number is the version of
// the copies, in their flags.
constexpr std::uint32_t first_life = 1;
// Of a copy that was created while others did not answer, before version 0.2, or by one that knows no other. An exact one
// belongs to the life that the others are in, a plain one to the first.
constexpr std::uint32_t any_life = 0;

// The newest of the copies that answered; any_life if none tells.
std::uint32_t life_of(const VersionedItem& item);
// After all of them. Throws CorruptData if the flags are another program's.
std::uint32_t next_life(const VersionedItem& item);
// What several copies have, or another program's flags; a counter of one copy has none.
bool is_of_several(const Reply& reply);
// What a removal leaves in one of several copies.
bool tells_of_removal(std::string_view value, std::uint32_t flags);
// Whether a plain copy counts in a life.
bool is_plain_of(const VersionedCopy& copy, std::uint32_t life);

}  // namespace mcds
