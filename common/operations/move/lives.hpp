// What servers' statistics tell of the time in which items were copied: whether they are still those that a
// journal speaks of, and what may have cost them items that they had acknowledged.
#pragma once

#include "common/cluster/cluster.hpp"
#include "common/cluster/statistics.hpp"
#include "common/operations/move/ledger.hpp"
#include "common/operations/move/move.hpp"

namespace mcds::moving {

// For each server: from which of the journal's records on it has been as it is now: one that was restarted
// has lost what was copied to it, and counts its cas uniques anew. Writes down how it is.
struct Since {
  std::vector<std::uint64_t> old_servers, new_servers;

  Since(Ledger& ledger, Cluster& from, Cluster& to);
};

class Incidents {
 public:
  // From now on.
  explicit Incidents(Cluster& cluster);
  // Until now, by server of the pool; unset: it was or is silent, or tells nothing of the kind.
  std::vector<std::optional<ServerIncidents>> look() const;

 private:
  struct Counters {
    std::uint64_t evicted = 0, flushes = 0;
    std::optional<ServerLife> life;
  };
  std::vector<std::optional<Counters>> counters() const;

  Cluster& cluster_;
  std::vector<std::optional<Counters>> before_;
};

}  // namespace mcds::moving
