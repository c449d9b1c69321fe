// The visible commands, in the order of --help.
#include "tools/commands/commands.hpp"

#include <array>

namespace mcds {

namespace {

constexpr std::array entries{
    CommandEntry{"lock", "let one process in the whole cluster run at a time", declare_lock, "Structures"},
    CommandEntry{"counter", "counters that neither lose nor invent events", declare_counter},
    CommandEntry{"visitors", "visits or visitors per period", declare_visitors},
    CommandEntry{"eventlog", "a log of events that expire, read by time or by cursor", declare_eventlog},
    CommandEntry{"array", "a list with atomic changes", declare_array},
    CommandEntry{"table", "a set of strings: one key per member", declare_table},
    CommandEntry{"hash", "a map from fields to values: one key per field", declare_hash},
    CommandEntry{"cache", "a command's output, rebuilt by one caller in the whole cluster", declare_cache},
    CommandEntry{"key", "make a cache key from query parameters", declare_key},
    CommandEntry{"where", "which server holds a key, for any client", declare_where, "Where keys are"},
    CommandEntry{"ring", "how keys are distributed over the servers, and what a change moves", declare_ring},
    CommandEntry{"servers", "which servers are up, with version, memory and latency", declare_servers,
                 "Servers and items"},
    CommandEntry{"capacity", "what more or less memory would give: hit ratios, estimated", declare_capacity},
    CommandEntry{"doctor", "what is wrong with a pool, and what to do about it", declare_doctor},
    CommandEntry{"item", "an application's own items, placed as its client places them", declare_item},
    CommandEntry{"config", "print the settings in use, and where each comes from", declare_config, "Tools"},
    CommandEntry{"sandbox", "run a command with temporary memcached servers", declare_sandbox},
};

}  // namespace

std::span<const CommandEntry> all_commands() {
  return entries;
}

}  // namespace mcds
