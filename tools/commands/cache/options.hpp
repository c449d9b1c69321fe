// What the sources of `mcds cache` share.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

struct CacheOptions {
  // Which entry.
  std::optional<std::string> key_argument, key_option, key_from;
  std::vector<std::string> command;
  std::vector<std::string> tags;

  Duration ttl = std::chrono::seconds(60);
  Duration stale = std::chrono::minutes(10);
  Duration rebuild_ttl = std::chrono::seconds(30);
  std::string wait = "3s";
  std::string on_busy = "stale";
  std::string if_down = "run";
  std::string cache_codes = "0";
  std::string max_bytes = "1M";
  bool refresh = false;
  std::optional<std::string> report;
};

ExitStatus run_cached(Session& session, const CacheOptions& options);

}  // namespace mcds
