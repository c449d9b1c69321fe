// Around a transport: a server that does not answer costs one timeout per run, not one per batch.
//
// After a timeout or a failed connection a server is sick. Requests to it fail at once, unsent, with the
// original cause, until it answers a trial on a separate connection. In batches (Sick::hold) they are first
// held back for at most one timeout from the beginning of the sickness, so a short pause fails none. A server
// that answers trials and nothing else is tried less and less often.
//
// A connection that failed before the timeout leaves the server in doubt for one more request: what comes
// next may be the look that settles whether a change was applied, and another connection shows it at once.
// Only when that fails too is the server sick. Not in batches: those are held instead, until a trial
// succeeds, and lose nothing by it.
//
// Requests that provably had no effect are tried once more on a new connection: reads, and changes of which
// nothing was sent. Never after a request for the same key whose outcome is unknown, never for what sickness
// failed, and after a timeout only once a trial has succeeded. Of batches that were begun, only reads, for
// later batches may have overtaken their changes; a begun batch of nothing but increments is tried again too,
// since increments give the same sum in any order.
#pragma once

#include <memory>

#include "common/cluster/cluster.hpp"

namespace mcds {

// `options.run` must be set.
std::unique_ptr<Cluster> guarded(std::unique_ptr<Cluster> inner, const ConnectOptions& options);

}  // namespace mcds
