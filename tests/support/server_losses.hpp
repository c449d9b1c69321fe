// Simulates servers that lose everything one after the other, with read repair between, and the writes that
// must survive.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "common/replication/copies.hpp"
#include "tests/support/simulation.hpp"

namespace mcds {

// The writes of a simulation. A write is due, that is, must not be lost, from its acknowledgement on. It is
// excused if a server was lost while the write was not yet in all copies, either by itself or through a read
// repair that began after it.
class DueWrites {
 public:
  using Id = std::size_t;
  Id begin();
  void acknowledged(Id write, const std::vector<CopyOutcome>& copies);
  // Records that the write failed, or that its outcome is unknown.
  void given_up(Id write) { writes_[write].done = ++now_; }
  bool due(Id write) const { return writes_[write].acknowledged && !writes_[write].excused; }
  // Returns true if the write is due and no single loss can change that.
  bool everywhere(Id write) const { return due(write) && writes_[write].everywhere; }

  // Returns true if the write is due and in all copies, and none has lost data since: any copy shows it.
  bool visible(Id write) const { return whole_ && everywhere(write); }

  // Record a read repair that made all copies whole: its beginning, and its end.
  std::size_t repairing() { return ++now_; }
  void repaired(std::size_t since);
  void server_lost(std::size_t server);
  // Returns true if no server was lost since the last read that made all copies whole.
  bool whole() const { return whole_; }
  const std::vector<std::size_t>& lost_servers() const { return lost_; }
  // Returns the servers lost since then.
  const std::set<std::size_t>& forgetful_servers() const { return forgetful_; }

 private:
  struct Write {
    std::size_t done = 0;
    bool acknowledged = false;
    bool everywhere = false;
    bool interrupted = false;  // a server was lost while it was in flight
    bool excused = false;
  };
  std::vector<Write> writes_;
  std::size_t now_ = 0;
  bool whole_ = true;
  std::vector<std::size_t> lost_;
  std::set<std::size_t> forgetful_;
};

// Returns true if all copies are whole now.
using RepairRun = std::function<bool()>;

// Waits, restarts one of the servers and repairs, `losses` times, or until the repair keeps failing.
void lose_servers(Context& context, SimulatedClient& client, DueWrites& writes, int losses,
                  const RepairRun& repairing);

// Returns true if every copy was written, with no unknown outcome.
bool all_written(const std::vector<CopyOutcome>& copies);

}  // namespace mcds
