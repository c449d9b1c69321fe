// Expiry times of items, in seconds by the clock of the server that stores them; 0: never.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/operations/spill_file.hpp"

namespace mcds::moving {

// The difference between a server's clock and ours.
struct ClockLook {
  Duration ahead{};  // the server's second is assumed to be half over
  Duration doubt{};  // half of the round trip that read the clock

  // `shown` is the server's second, from a reply that came between these times.
  static ClockLook of(std::int64_t shown, WallTime before, WallTime after);
};

// Returns how many seconds `to` is ahead of `from`. Returns 0 if the clocks agree within the accuracy: the
// second that a server reports is up to a second old, or more if it is short of processor time.
std::int64_t seconds_ahead(const ClockLook& from, const ClockLook& to);

// The expiry of an item, as listed and as read later.
struct SeenEnd {
  std::int64_t listed = 0;                    // expiry by its server's clock, when the key was listed
  std::optional<std::chrono::seconds> ttl{};  // when it was read; -1: never; unset: not reported
  WallTime asked{}, answered{};               // the item was read between these, by our clock
};
// Returns false if the item was touched, or its server's clock stood still while it was stopped.
bool agrees(const SeenEnd& seen, const ClockLook& clock);

// Reads items again whose ttl contradicts their listed expiry, and corrects both: they were touched since.
// `replies` are the replies to their probes, read as one batch between `asked` and `answered`.
using Clocks = std::vector<std::optional<ClockLook>>;
void read_touched_again(Cluster& cluster, const Clocks& clocks, std::span<SpilledRecord* const> items,
                        std::vector<Reply>& replies, WallTime asked, WallTime answered);

// Returns the statistics of the servers that store items themselves. Proxies are left out: they report their
// own clock, and no evictions of their servers.
std::vector<Reply> statistics_of_keepers(Cluster& cluster);

// Reads the clocks of all servers of the pool; unset for a server without a clock, or behind a proxy.
Clocks read_clocks(Cluster& cluster, const Clock& clock);

}  // namespace mcds::moving
