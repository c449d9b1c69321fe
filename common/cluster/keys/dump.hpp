// Lists the keys of each server, over a separate connection.
//
// Before 1.6.19 memcached holds locks while it writes a dump to its client. If another dump runs or the hash
// table grows meanwhile, the whole server can hang. The server's statistics are therefore read first. Below
// 1.6.19 a dump starts only if no other is running and the table is neither growing nor about to grow. A busy
// server is queried again, soon and then every second, for LiveKeysOptions::patience.
#pragma once

#include "common/cluster/keys/live.hpp"

namespace mcds {

// The state of a server before its dump, as its `stats` report it.
struct DumpState {
  std::uint32_t release = 0;  // 10618 for 1.6.18; 0 if not reported, or in another form
  std::uint64_t items = 0;
  std::uint64_t max_keys = 0;  // a longer list is treated as endless
  std::uint64_t table = 0;     // slots of the hash table
  bool crawling = false, growing = false;

  static DumpState of(std::string_view statistics);
  // Returns why a dump must not start now, or an empty string. `before` is the state one second earlier.
  std::string_view objection(const std::optional<DumpState>& before) const;
};

// Lists the keys of all servers at once, and passes each to `take`. `goes_on` is called several times a
// second; the lists end early when it returns false.
std::vector<LiveKeysOfServer> read_dumps(const Pool& pool, const LiveKeysOptions& options, tls::Contexts& tls,
                                         const Clock& clock, const TakeLiveKey& take,
                                         const std::function<bool()>& goes_on);

}  // namespace mcds
