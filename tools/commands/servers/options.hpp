// The forms of mcds servers.
#pragma once

#include <optional>
#include <string>

#include "tools/cli/session.hpp"

namespace mcds {

struct ServersOptions {
  std::optional<Duration> every;
  std::optional<std::uint64_t> count;
  std::optional<std::string> argument;
  bool stats = false;
};

// every.cpp
ExitStatus servers_every(Session& session, const ServersOptions& options);
// stats.cpp
ExitStatus servers_stats(Session& session, const ServersOptions& options);

}  // namespace mcds
