// Makes the commands that the program prints for people to run. They contact the same servers as this run, as
// the same client, with the same certificates and login.
#pragma once

#include "tools/cli/session.hpp"

namespace mcds {

// Returns a blank, the option and its value, if it has one, quoted for the shell.
std::string printed_option(std::string_view name, const std::string& value);

// Returns `mcds`, the given global options, and `words`, quoted for the shell. Settings of the environment
// and the configuration are not repeated. `profile`, if not empty, replaces the value of --as.
std::string printed_command(Session& session, std::string_view words, std::string_view profile = {});

// Returns the same for one server of the list: `-s SERVER` with its scheme, certificates and login. If the
// login cannot be given as options, the command addresses the whole list.
std::string printed_command_on(Session& session, const Server& server, std::string_view words);

}  // namespace mcds
