// The visible list, in the order of --help.
#include "tools/commands/commands.hpp"

#include <array>

namespace mcds {

namespace {

constexpr std::array entries{
    CommandEntry{"lock", "one at a time in the whole cluster: run a command, or hold a lock by its token",
                 declare_lock},
    CommandEntry{"counter", "count without losing or inventing events", declare_counter},
    CommandEntry{"visitors", "visits or visitors per period, by a double buffer", declare_visitors},
    CommandEntry{"eventlog", "events kept for a while, read by time or from where a reader was",
                 declare_eventlog},
    CommandEntry{"array", "a list that many change at once, each change whole or not at all", declare_array},
    CommandEntry{"table", "a set of strings: one key per member", declare_table},
    CommandEntry{"hash", "a map from fields to values: one key per field", declare_hash},
    CommandEntry{"cache", "a command's output, rebuilt by one caller in the whole cluster", declare_cache},
    CommandEntry{"key", "a cache key from query parameters", declare_key},
    CommandEntry{"item", "an application's own items, where its client keeps them", declare_item},
    CommandEntry{"where", "which server holds a key, for any client", declare_where},
    CommandEntry{"ring", "how keys divide over the servers, and what moves when the pool changes",
                 declare_ring},
    CommandEntry{"servers", "which servers are up, and how they are", declare_servers},
    CommandEntry{"sandbox", "real memcached servers for the life of a command", declare_sandbox},
};

}  // namespace

std::span<const CommandEntry> all_commands() {
  return entries;
}

}  // namespace mcds
