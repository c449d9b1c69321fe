// Turns the command line into an action. Only the given command is declared, with only its options.
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

}  // namespace mcds
