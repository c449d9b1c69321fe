// From the words of the command line to an action. Only the given command is declared, and only its options
// are built.
#pragma once

#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

// The options that every command takes, before and after it, bound to `into`.
std::vector<OptionSpec> global_options(GlobalOptions& into);

// This verb's options, and the global ones beside them: a word that the verb uses itself (`tail -n 10`,
// `sandbox --tls`) is the verb's. Its own in front: of two that a mistyped word may mean, they are the
// likelier.
std::vector<OptionSpec> options_with(const Verb& verb, std::vector<OptionSpec> globals);

struct Invocation {
  GlobalOptions globals;
  std::unique_ptr<Command> command;
  const Verb* verb = nullptr;       // of `command`; its targets are filled
  std::optional<std::string> text;  // --help, --version: print this instead of running anything
  bool lacks_words = false;         // no command or no verb was given: `text` is an error
};

// Throws InvalidInput with a `did you mean` where there is one. `invocation.globals` is filled even then as
// far as it was understood, so that the error comes out in the mode asked for.
void parse(const std::vector<std::string>& arguments, Invocation& invocation);

// The command entry called `name`, declared; nullptr if there is none.
std::unique_ptr<Command> declared(std::string_view name, std::optional<std::string_view> only = {});

// Words of memcached's protocol, of its tools, of Redis and of everyday language, and what to type instead.

// Returns the commands to try for `word`, which is not a command, or nothing if the word is unknown.
std::string_view commands_for(std::string_view word);

// Returns what to type in place of `mcds COMMAND WORD`, such as `try mcds table fetch NAME`, or nothing if
// the word is unknown or the command has no such verb. A word that reads never yields a verb that writes.
std::string verb_for(const Command& command, std::string_view word);

}  // namespace mcds
