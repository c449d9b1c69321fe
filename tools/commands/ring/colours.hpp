// The colours of a ring's servers.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace mcds {

using Colour = std::array<int, 3>;  // red, green and blue, 0…255

// Each server's own; of many servers, neighbours differ in brightness as well.
Colour colour_of(std::size_t server, std::size_t servers);
// Whether what is written on it has to be dark.
bool is_light(const Colour& colour);
std::string hex(const Colour& colour);

}  // namespace mcds
