// Prints the program's description of itself, for people and for machines: `mcds __describe` and `mcds
// __complete`. Never touches the network.
#pragma once

#include "tools/cli/program.hpp"

namespace mcds {

// Runs `__describe` or `__complete WORD…` and returns the exit code.
int run_hidden(const std::vector<std::string>& arguments);

// Returns the command line as JSON: global_options, commands with verbs, options and arguments, exit_codes.
std::string description();

// Returns the candidates for the last of `words`, each as `word<TAB>help`. That word is what precedes the
// cursor and may be empty; the program's own name is not among `words`. A line `!files` asks the shell for
// file names, `!command N` for the completion of the command line that starts at word N (from 0) of `words`.
std::vector<std::string> completions(const std::vector<std::string>& words);

// Return the texts of --help, made from the program's description.
std::string program_help();
std::string command_help(const Command& command);
// Returns a JSON Schema for each verb.
std::string command_schema(const Command& command);
// Returns the help of one verb. Examples precede the options.
std::string verb_help(const Command& command, const Verb& verb);

// The program's version.

// The version as text, from meson.build's project version.
extern const std::string_view program_version;

// Returns the output of --version on one line: the version, the commit if it is known, and the build.
std::string version_text();

}  // namespace mcds
