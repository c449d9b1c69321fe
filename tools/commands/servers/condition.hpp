// Declares the forms of mcds servers, and reads what the servers of a pool report about themselves.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

struct Condition {
  bool up = false;
  std::string version;
  std::vector<std::string> stats;  // lines `name value`, for each requested argument
  std::optional<std::chrono::microseconds>
      round_trip;        // of `version`, on an open connection if there was time
  std::string error;     // why it is down, or has no statistics
  bool denied = false;   // it requires a login
  bool refused = false;  // it is up but gives no statistics
  bool cut = false;      // the deadline passed before all its replies came
};

// Returns the versions and the statistics of all `arguments` ("" for the general ones), in one trip to all
// servers, so that one that is silent until the deadline costs nobody else's answer. A second trip measures
// the round trip, and finds that a proxy which closes the connection on `stats` is up.
std::vector<Condition> ask_servers(Session& session, Cluster& cluster,
                                   const std::vector<std::string>& arguments);

// Returns its address, position and name, and whether it is up.
JsonObject server_line(const Server& server, std::size_t index, const Condition& condition);

// Returns 75 if the deadline passed, 2 if some servers are down, 69 if all are, 77 if all require a login.
ExitStatus status_of(const std::vector<Condition>& conditions);
// Returns the same, or 76 if a server refuses its statistics.
ExitStatus status_of_statistics(const std::vector<Condition>& conditions);

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

// metrics.cpp. `certificate_ends` has the expiry of each server's certificate, by the server's index.
std::string server_metrics(const Pool& pool, const std::vector<Condition>& conditions,
                           const std::map<std::size_t, WallTime>& certificate_ends);

}  // namespace mcds
