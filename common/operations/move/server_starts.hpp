// Reads from the servers' statistics whether they are still the runs that a journal refers to, and which
// events may have cost them acknowledged items.
#pragma once

#include <set>

#include "common/cluster/cluster.hpp"
#include "common/cluster/statistics.hpp"
#include "common/operations/move/move.hpp"
#include "common/operations/move/move_journal.hpp"

namespace mcds::moving {

// For each server, the first journal record since which it has not restarted or been flushed. A restarted
// server has lost the copies, and issues new cas tokens. The constructor also records the current run.
struct ValidFrom {
  std::vector<std::uint64_t> old_servers, new_servers;

  ValidFrom(MoveJournal& move_journal, Cluster& from, Cluster& to);
};

// Returns the pairs of an old and a new server that are known to be different, because their statistics show
// two processes. One server may have two names, or be behind a proxy, which shows none.
using OldAndNew = std::set<std::pair<std::size_t, std::size_t>>;
OldAndNew different_servers(Cluster& old_ones, Cluster& new_ones);

class ServerRestarts {
 public:
  // Starts to count.
  explicit ServerRestarts(Cluster& cluster);
  // Returns the events so far, by server of the pool; unset if the server did not report them.
  std::vector<std::optional<ServerEvents>> look() const;

 private:
  struct Counters {
    std::uint64_t evicted = 0, flushes = 0;
    std::optional<ServerStart> start;
  };
  std::vector<std::optional<Counters>> counters() const;

  Cluster& cluster_;
  std::vector<std::optional<Counters>> before_;
};

}  // namespace mcds::moving
