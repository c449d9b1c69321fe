// The forms of mcds servers, and what the servers of a pool say about themselves.
#pragma once

#include <chrono>
#include <map>

#include "common/cluster/cluster.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct Condition {
  bool up = false;
  std::string version;
  std::vector<std::string> stats;  // lines of `name value`, for each of the arguments asked for
  std::optional<std::chrono::microseconds> round_trip;  // of its version; a new connection counts too
  std::string error;                                    // why it is down, or gives no statistics
  bool denied = false;                                  // it wants a login
  bool refused = false;                                 // it is up and gives none of the statistics
};

// Versions and the statistics of all `arguments` ("": the general ones), each in one round trip to all
// servers; who does not answer to the first is not asked for more. A proxy that closes the connection on
// `stats` is up all the same; one that refused `before` is not asked again.
std::vector<Condition> ask_servers(Cluster& cluster, const std::vector<std::string>& arguments,
                                   const std::vector<Condition>& before = {});

// Its address, position and name, and whether it is up.
JsonObject server_line(const Server& server, std::size_t index, const Condition& condition);

// 2: some are down; 69: all of them; 77: all of them want a login.
ExitStatus status_of(const std::vector<Condition>& conditions);

struct ServersOptions {
  std::optional<Duration> every;
  std::optional<std::uint64_t> count;
  std::optional<std::string> argument;
  bool stats = false;
  bool clients = false;
  bool hot = false, find = false;  // with --every
};

// every.cpp
ExitStatus servers_every(Session& session, const ServersOptions& options);
// clients.cpp
ExitStatus servers_clients(Session& session);
// stats.cpp
ExitStatus servers_stats(Session& session, const ServersOptions& options);

// metrics.cpp: by the index of a server, when its certificate ends.
std::string server_metrics(const Pool& pool, const std::vector<Condition>& conditions,
                           const std::map<std::size_t, WallTime>& certificate_ends);

}  // namespace mcds
