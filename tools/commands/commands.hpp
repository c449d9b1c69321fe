// Includes what a command's source needs, and declares the commands, which commands.cpp lists.
#pragma once

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"
#include "common/cluster/statistics.hpp"
#include "tools/cli/answers.hpp"
#include "tools/cli/batch.hpp"
#include "tools/cli/child.hpp"
#include "tools/cli/live_dump.hpp"
#include "tools/cli/printed_command.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"
#include "tools/cli/where_keys.hpp"

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

// Verbs that have a source file of their own.
void declare_ring_diff(Verb& verb);
void declare_ring_move(Verb& verb);

}  // namespace mcds
