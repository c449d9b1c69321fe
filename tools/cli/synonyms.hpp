// Words of memcached's protocol, of its tools, of Redis and of everyday language, and what to type instead.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/program.hpp"

namespace mcds {

// Returns the commands to try for `word`, which is not a command, or nothing if the word is unknown.
std::string_view commands_for(std::string_view word);

// Returns what to type in place of `mcds COMMAND WORD`, such as `try mcds table fetch NAME`, or nothing if
// the word is unknown or the command has no such verb. A word that reads never yields a verb that writes.
std::string verb_for(const Command& command, std::string_view word);

}  // namespace mcds
