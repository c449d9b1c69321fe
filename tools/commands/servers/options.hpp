// The forms of mcds servers.
#pragma once

#include <map>

#include "tools/commands/servers/condition.hpp"

namespace mcds {

struct ServersOptions {
  std::optional<Duration> every;
  std::optional<std::uint64_t> count;
  std::optional<std::string> argument;
  bool stats = false;
  bool hot = false, find = false;  // with --every
};

// every.cpp
ExitStatus servers_every(Session& session, const ServersOptions& options);
// stats.cpp
ExitStatus servers_stats(Session& session, const ServersOptions& options);

// metrics.cpp: by the index of a server, when its certificate ends.
std::string server_metrics(const Pool& pool, const std::vector<Condition>& conditions,
                           const std::map<std::size_t, WallTime>& certificate_ends);

}  // namespace mcds
