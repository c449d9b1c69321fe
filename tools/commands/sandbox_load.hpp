// The small load of `mcds sandbox --load`: so that what watches servers has something to show.
#pragma once

namespace mcds {

class Session;

// Reads a thousand keys a second by a Zipf law, and stores what it misses; returns when the servers are gone.
void run_sandbox_load(Session& session);

}  // namespace mcds
