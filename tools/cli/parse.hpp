// Turns the command line into an action, and describes the program: help, schemas, completion. Only the given
// command is declared, with only its options.
#pragma once

#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

// Returns the options that every command takes, before or after its name, bound to `into`.
std::vector<OptionSpec> global_options(GlobalOptions& into);

// Returns the verb's options, followed by the global ones. A word that both use (`tail -n 10`, `sandbox
// --tls`) is the verb's. They come first as the likelier meaning of a mistyped word.
std::vector<OptionSpec> options_with(const Verb& verb, std::vector<OptionSpec> globals);

struct Invocation {
  GlobalOptions globals;
  std::unique_ptr<Command> command;
  const Verb* verb = nullptr;       // a verb of `command` whose targets are filled
  std::optional<std::string> text;  // --help, --version: print this instead of running anything
  bool lacks_words = false;         // no command or verb was given, and `text` is an error
};

// Parses the arguments. Throws InvalidInput, possibly with a `did you mean`. Even then `invocation.globals`
// has the options that were understood, so that the error is printed in the requested output mode.
void parse(const std::vector<std::string>& arguments, Invocation& invocation);

// Returns the declared command called `name`, or nullptr.
std::unique_ptr<Command> declared(std::string_view name, std::optional<std::string_view> only = {});

// Known words of memcached's protocol, its tools, Redis and everyday language, and what to type instead.

// Returns the commands to try for `word`, which is not a command, or nothing if the word is unknown.
std::string_view commands_for(std::string_view word);

// Returns what to type in place of `mcds COMMAND WORD`, such as `try mcds table fetch NAME`, or nothing if
// the word is unknown or the command has no such verb. A word that reads never yields a verb that writes.
std::string verb_for(const Command& command, std::string_view word);

// The program's description of itself, for people and for machines. It never touches the network.

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

}  // namespace mcds
