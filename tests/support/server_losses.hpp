// For simulations of structures with copies: servers that lose everything one after the other, with a healing
// read between, and what the writes of such a history may count on.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "common/replication/copies.hpp"
#include "tests/support/simulation.hpp"

namespace mcds {

// A write is due, that is, must not be lost, from its acknowledgement on; unless a server was lost while the
// write had not reached all copies, neither by itself nor by a healing read begun after it.
class DueWrites {
 public:
  using Id = std::size_t;
  Id begin();
  void acknowledged(Id write, const std::vector<CopyOutcome>& copies);
  // It failed, or nobody knows.
  void given_up(Id write) { writes_[write].done = ++now_; }
  bool due(Id write) const { return writes_[write].acknowledged && !writes_[write].excused; }
  // Due, and no single loss can change that.
  bool everywhere(Id write) const { return due(write) && writes_[write].everywhere; }

  // Due, on all copies, and no copy has lost anything since: any copy alone tells of it.
  bool visible(Id write) const { return whole_ && everywhere(write); }

  // From a healing read's begin to its end, if it made all copies whole.
  std::size_t healing() { return ++now_; }
  void healed(std::size_t since);
  void server_lost(std::size_t server);
  // No server was lost since the last read that made all copies whole.
  bool whole() const { return whole_; }
  const std::vector<std::size_t>& lost_servers() const { return lost_; }
  // Those lost since then.
  const std::set<std::size_t>& forgetful_servers() const { return forgetful_; }

 private:
  struct Write {
    std::size_t done = 0;
    bool acknowledged = false;
    bool everywhere = false;
    bool interrupted = false;  // a server was lost while it was on its way
    bool excused = false;
  };
  std::vector<Write> writes_;
  std::size_t now_ = 0;
  bool whole_ = true;
  std::vector<std::size_t> lost_;
  std::set<std::size_t> forgetful_;
};

// Whether all copies are whole now.
using Healing = std::function<bool()>;

// Up to `losses` times: waits, restarts one of the servers and heals; ends when healing fails for long.
void lose_servers(Context& context, SimulatedClient& client, DueWrites& writes, int losses,
                  const Healing& healing);

// Whether each copy was written, and none only perhaps.
bool all_written(const std::vector<CopyOutcome>& copies);

}  // namespace mcds
