// The one maker of the commands that the program prints for people to run: they ask the same servers as this
// one, as the same client, with the same certificates and login.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/session.hpp"

namespace mcds {

// Returns `mcds`, the global options that were given, and `words`, each value quoted for the shell. What the
// environment and the configuration say stays theirs to say. `profile`: what --as is to name; empty: as given
// to this command.
std::string printed_command(Session& session, std::string_view words, std::string_view profile = {});

// Returns the same for one server of the list: `-s SERVER` with its scheme, and what it is shown of the
// list's certificates and login. A list whose login cannot be given as options is asked as a whole.
std::string printed_command_on(Session& session, const Server& server, std::string_view words);

}  // namespace mcds
