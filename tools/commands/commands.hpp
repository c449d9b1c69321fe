// The commands' declarations; tools/commands/commands.cpp lists them.
#pragma once

#include "tools/cli/program.hpp"

namespace mcds {

void declare_array(Command& command);
void declare_cache(Command& command);
void declare_capacity(Command& command);
void declare_config(Command& command);
void declare_counter(Command& command);
void declare_doctor(Command& command);
void declare_where(Command& command);
void declare_eventlog(Command& command);
void declare_table(Command& command);
void declare_hash(Command& command);
void declare_item(Command& command);
void declare_key(Command& command);
void declare_lock(Command& command);
void declare_ring(Command& command);
void declare_sandbox(Command& command);
void declare_servers(Command& command);
void declare_visitors(Command& command);

}  // namespace mcds
