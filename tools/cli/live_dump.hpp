// Lists all live keys of the session's pool for a verb, and reports servers that cannot list theirs.
#pragma once

#include "common/cluster/keys/live.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

// Lists the keys and shows the progress. Returns one result per server of the pool; servers that could not
// list all their keys are not reported here.
std::vector<LiveKeysOfServer> list_keys(Session& session, const Pool& pool, const TakeLiveKey& take);
// Lists the keys of one server of the session's pool, or of all. LiveKey::server is an index into the pool.
std::vector<LiveKeysOfServer> list_keys_on(Session& session, std::optional<std::size_t> server,
                                           const TakeLiveKey& take);

// Reports servers that did not list all keys, warns of possibly short lists, and returns the worst status.
ExitStatus report_unlisted(Session& session, const Pool& pool, const std::vector<LiveKeysOfServer>& results);

// Returns the failure for a server that did not list all its keys.
Failure unlisted(const LiveKeysOfServer& result, const Server& server);

}  // namespace mcds
