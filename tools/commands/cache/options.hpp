// What the sources of `mcds cache` share: the options, and which entry they mean: a key given by name, or one
// made of what the command's output depends on.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

struct CacheOptions {
  // Which entry.
  std::optional<std::string> key, key_from;
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

struct CacheKey {
  std::string name;
  std::optional<std::string> input;  // standard input, if it was read for the name: for the command
};

// KEY itself; `KEY-<digest>` with --key-from; without KEY `<command>-<digest>`. Throws InvalidInput, and
// Failure(cannot_read) for a file or standard input that cannot be read.
CacheKey cache_key(const CacheOptions& options);

// Each once, in the order they were given.
std::vector<std::string> distinct_tags(const CacheOptions& options);

ExitStatus run_cached(Session& session, const CacheOptions& options);

}  // namespace mcds
