// The program's description of itself, for people and for machines: `mcds __describe` and `mcds __complete`.
// Never touches the network.
#pragma once

#include "tools/cli/program.hpp"

namespace mcds {

// Runs `__describe` or `__complete WORD…`; the exit code.
int run_hidden(const std::vector<std::string>& arguments);

// The whole command line as one JSON object: global_options, commands with verbs, options and arguments,
// exit_codes.
std::string description();

// Candidates for the last of `words` (what stands before the cursor, which may be empty; the program's own
// name is not among them), each `word<TAB>help`. A line `!files` asks the shell for file names, `!command N`
// for the completion of the command line that starts at word N (from 0) of `words`.
std::vector<std::string> completions(const std::vector<std::string>& words);

// The texts of --help, from the program's description.
std::string program_help();
std::string command_help(const Command& command);
// A JSON Schema for each verb.
std::string command_schema(const Command& command);
// Examples come before the options.
std::string verb_help(const Command& command, const Verb& verb);

// Which version this program is.

// From meson.build's project version.
extern const std::string_view program_version;

// What --version prints: the version, the commit where it is known, how it was built. One line.
std::string version_text();

}  // namespace mcds
