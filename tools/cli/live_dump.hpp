// All live keys of the session's pool, read for a verb: servers that cannot list theirs are named, and the
// others' are read.
#pragma once

#include <vector>

#include "common/cluster/keys/live.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

class LiveDump {
 public:
  // `servers`: only these; empty: all. `shows_progress`: unless something else is written to the terminal
  // meanwhile.
  explicit LiveDump(Session& session, std::vector<std::size_t> servers = {}, bool shows_progress = true)
      : session_(session), servers_(std::move(servers)), shows_progress_(shows_progress) {}

  // LiveKey::server is an index into the session's pool. The worst of what kept servers from listing all
  // their keys, each of which is reported on standard error.
  ExitStatus read(const TakeLiveKey& take) const;
  // The same, one result per server of the pool, and nothing is reported.
  std::vector<LiveKeysOfServer> results(const TakeLiveKey& take) const;
  // Of another pool, with the session's limits and logins.
  static std::vector<LiveKeysOfServer> results(Session& session, const Pool& pool, const TakeLiveKey& take,
                                               bool shows_progress = true);

 private:
  Session& session_;
  std::vector<std::size_t> servers_;
  bool shows_progress_;
};

// Reports each server that did not list all its keys, as an error, and warns of lists that may be short;
// returns the worst.
ExitStatus report_unlisted(Session& session, const Pool& pool, const std::vector<LiveKeysOfServer>& results);

// What `result` says of a server that did not list all its keys.
Failure unlisted(const LiveKeysOfServer& result, const Server& server);

}  // namespace mcds
