// Which entry a command line means: a key given by name, or one made of what the command's output depends on.
#pragma once

#include "tools/commands/cache/options.hpp"

namespace mcds {

struct CacheKey {
  std::string name;
  std::optional<std::string> input;  // standard input, if it was read for the name: for the command
};

// KEY itself; `KEY-<digest>` with --key-from; without KEY `<command>-<digest>`. Throws InvalidInput, and
// Failure(cannot_read) for a file or standard input that cannot be read.
CacheKey cache_key(const CacheOptions& options);

// Each once, in the order they were given.
std::vector<std::string> distinct_tags(const CacheOptions& options);

}  // namespace mcds
