// The texts of --help, from the program's description.
#pragma once

#include <string>

#include "tools/cli/program.hpp"

namespace mcds {

std::string program_help();
std::string command_help(const Command& command);
// A JSON Schema for each verb.
std::string command_schema(const Command& command);
// Examples come before the options.
std::string verb_help(const Command& command, const Verb& verb);

}  // namespace mcds
