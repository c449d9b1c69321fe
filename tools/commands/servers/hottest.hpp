// What servers --every shows below its rates: the hottest keys and prefixes of an interval.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

struct HotLine {
  std::string key;  // or a prefix
  bool is_prefix = false;
  std::uint64_t events = 0;
  double per_s = 0;
  std::string server;  // of a key
};

// Watches all servers for so long, or until `goes_on` says false; keys first, then prefixes, the hottest
// first. A prefix ends with the first of : / . | in a key. Servers that cannot be watched are left out.
std::vector<HotLine> watch_hottest(Session& session, Duration longest, std::size_t count,
                                   const std::function<bool()>& goes_on);

}  // namespace mcds
