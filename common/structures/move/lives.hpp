// Whether servers are still those that a journal speaks of: one that was restarted has lost what was copied
// to it, and counts its cas uniques anew.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/cluster/cluster.hpp"
#include "common/structures/move/ledger.hpp"

namespace mcds::moving {

// Of all servers of a cluster's pool. unset: it does not tell, or is a proxy.
std::vector<std::optional<Life>> look_at_lives(Cluster& cluster);

// For each server: from which of the journal's records on it has been as it is now. Writes down how it is.
struct Since {
  std::vector<std::uint64_t> old_servers, new_servers;

  Since(Ledger& ledger, Cluster& from, Cluster& to);
};

}  // namespace mcds::moving
