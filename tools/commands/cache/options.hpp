// Options that the sources of `mcds cache` share, and the entry's name: a key, or a digest of the inputs.
#pragma once

#include "common/structures/cache/cache.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct CacheOptions {
  // The entry.
  std::optional<std::string> key, key_from;
  std::vector<std::string> command;
  std::vector<std::string> tags;

  // Options of run, which sets the wait, the holder and the tags itself.
  CacheTerms terms{.ttl = std::chrono::seconds(60),
                   .stale = std::chrono::minutes(10),
                   .rebuild_ttl = std::chrono::seconds(30)};
  std::string wait = "3s";
  std::string on_busy = "stale";
  std::string if_down = "run";
  std::string cache_codes = "0";
  std::string max_bytes = "1M";
  std::optional<std::string> report;
};

struct CacheKey {
  std::string name;
  std::optional<std::string> input;  // standard input for the command, if it was read to make the name
};

// Returns KEY itself, `KEY-<digest>` with --key-from, or `<command>-<digest>` without KEY. Throws
// InvalidInput, and Failure(cannot_read) for a file or standard input that cannot be read.
CacheKey cache_key(const CacheOptions& options);

// Returns the tags without duplicates, in the order in which they were given.
std::vector<std::string> distinct_tags(const CacheOptions& options);

ExitStatus run_cached(Session& session, const CacheOptions& options);

}  // namespace mcds
