// What may have cost new servers items that they had acknowledged: what their statistics show of the time in
// between.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/cluster/cluster.hpp"
#include "common/structures/move/move.hpp"

namespace mcds::moving {

class Incidents {
 public:
  // From now on.
  explicit Incidents(Cluster& cluster);
  // Until now, by server of the pool; unset: it was or is silent, or tells nothing of the kind.
  std::vector<std::optional<ServerIncidents>> look() const;

 private:
  struct Counters {
    std::uint64_t evicted = 0, flushes = 0, pid = 0, uptime_s = 0;
  };
  std::vector<std::optional<Counters>> counters() const;

  Cluster& cluster_;
  std::vector<std::optional<Counters>> before_;
};

}  // namespace mcds::moving
