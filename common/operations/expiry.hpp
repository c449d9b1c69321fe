// When items end, by the clocks of the servers that keep them: seconds that each server counts for itself, 0:
// never.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/operations/spool.hpp"

namespace mcds::moving {

// A server's clock against ours.
struct ClockLook {
  Duration ahead{};  // its second is taken for half over
  Duration doubt{};  // half of the time that looking took

  // `shown`: its second, by an answer that came between these times.
  static ClockLook of(std::int64_t shown, WallTime before, WallTime after);
};

// By how many seconds `to` is ahead of `from`. Clocks that agree as far as can be seen are not ahead: what
// they show is up to a second old, and older if the server is short of processor time.
std::int64_t seconds_ahead(const ClockLook& from, const ClockLook& to);

// What is known of an item's end.
struct SeenEnd {
  std::int64_t listed = 0;                    // by its server's clock, when its key was listed
  std::optional<std::chrono::seconds> ttl{};  // when it was read; -1: never; unset: its server does not say
  WallTime asked{}, answered{};               // by our clock: it was read in between
};
// False: it was touched since, or its server's clock stood still, as it does while the server is stopped.
bool agrees(const SeenEnd& seen, const ClockLook& clock);

// Reads those anew whose ttl does not agree with their end, as listed, and puts both right: they were touched
// since. `replies`: of their probes, one for each; `asked` and `answered`: when, the whole batch.
using Clocks = std::vector<std::optional<ClockLook>>;
void read_touched_again(Cluster& cluster, const Clocks& clocks, std::span<Spooled* const> items,
                        std::vector<Reply>& replies, WallTime asked, WallTime answered);

// Of the servers of a cluster's pool that store items themselves: a proxy shows its own clock and none of its
// servers' evictions.
std::vector<Reply> statistics_of_keepers(Cluster& cluster);

// Of all servers of a cluster's pool. unset: that one tells no time, or is another's voice.
Clocks look_at_clocks(Cluster& cluster, const Clock& clock);

}  // namespace mcds::moving
