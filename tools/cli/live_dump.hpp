// All live keys of the session's pool, read for a verb: servers that cannot list theirs are named, and the
// others' are read.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

// Lists the keys and shows the progress. One result per server of the pool; what keeps servers from listing
// all their keys is not reported.
std::vector<LiveKeysOfServer> list_keys(Session& session, const Pool& pool, const TakeLiveKey& take);
// Of the session's pool only this server; unset: all. LiveKey::server is an index into the pool.
std::vector<LiveKeysOfServer> list_keys_on(Session& session, std::optional<std::size_t> server,
                                           const TakeLiveKey& take);

// Reports each server that did not list all its keys, as an error, and warns of lists that may be short;
// returns the worst.
ExitStatus report_unlisted(Session& session, const Pool& pool, const std::vector<LiveKeysOfServer>& results);

// What `result` says of a server that did not list all its keys.
Failure unlisted(const LiveKeysOfServer& result, const Server& server);

}  // namespace mcds
