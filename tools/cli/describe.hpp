// The program's description of itself for machines: `mcds __describe` and `mcds __complete`. Never touches
// the network.
#pragma once

#include <string>
#include <vector>

namespace mcds {

// Runs `__describe` or `__complete WORD…`; the exit code.
int run_hidden(const std::vector<std::string>& arguments);

// The whole command line as one JSON object: global_options, commands with verbs, options and arguments,
// exit_codes.
std::string description();

}  // namespace mcds
