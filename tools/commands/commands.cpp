// The visible list, in the order of --help.
#include "tools/commands/commands.hpp"

#include <array>

namespace mcds {

namespace {

constexpr std::array entries{
    CommandEntry{"counter", "count without losing or inventing events", declare_counter},
    CommandEntry{"visitors", "visits or visitors per period, by a double buffer", declare_visitors},
    CommandEntry{"key", "a cache key from query parameters", declare_key},
};

}  // namespace

std::span<const CommandEntry> all_commands() { return entries; }

}  // namespace mcds
