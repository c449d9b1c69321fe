// By how much servers' clocks differ from ours: what they list expires by theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds::moving {

// By server of the cluster's pool, in seconds ahead of ours; unset: it does not tell. Clocks that agree as far as can be
// seen are not ahead: what they show is up to a second old, and so is what comes over a network.
std::vector<std::optional<std::int64_t>> clocks_ahead(Cluster& cluster, const Clock& clock);

}  // namespace mcds::moving
