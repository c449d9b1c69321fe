// The lives of a counter with several copies.
#pragma once

#include <cstdint>

#include "common/primitives/versions.hpp"

namespace mcds {

// A counter's life begins with a set, or a removal that did not reach every copy: its number is the copies' version.
// A plain counter that an increment creates is in the first one, before every set.
constexpr std::uint32_t first_life = 1;
std::uint32_t life_of(const VersionedItem& item);

}  // namespace mcds
