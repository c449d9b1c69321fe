#include "tests/support/server_losses.hpp"

#include <algorithm>

namespace mcds {

bool all_written(const std::vector<CopyOutcome>& copies) {
  return std::none_of(copies.begin(), copies.end(),
                      [](const CopyOutcome& copy) { return copy.failure.has_value(); });
}

DueWrites::Id DueWrites::begin() {
  writes_.emplace_back();
  return writes_.size() - 1;
}

void DueWrites::acknowledged(Id write, const std::vector<CopyOutcome>& copies) {
  Write& one = writes_[write];
  one.done = ++now_;
  one.acknowledged = true;
  // An interrupted write may have reached the lost server before the loss. Then only others have it.
  one.everywhere = all_written(copies) && !one.interrupted;
  one.excused = one.excused || (one.interrupted && !all_written(copies));
}

void DueWrites::repaired(std::size_t since) {
  whole_ = true;
  forgetful_.clear();
  for (Write& write : writes_) {
    if (write.acknowledged && write.done < since) write.everywhere = true;
  }
}

void DueWrites::server_lost(std::size_t server) {
  lost_.push_back(server);
  forgetful_.insert(server);
  whole_ = false;
  for (Write& write : writes_) {
    const bool on_its_way = write.done == 0;
    if (on_its_way ? write.interrupted : !write.everywhere) write.excused = true;
    if (on_its_way) write.interrupted = true;
  }
}

void lose_servers(Context& context, SimulatedClient& client, DueWrites& writes, int losses,
                  const RepairRun& repairing) {
  constexpr int max_attempts = 8;
  MemoryCluster& servers = client.simulation().servers();
  for (int i = 0; i < losses; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(4000)));
    const std::size_t server = context.random.below(servers.size());
    servers.restart(server);
    writes.server_lost(server);
    for (int attempt = 0;; ++attempt) {
      const std::size_t since = writes.repairing();
      bool whole = false;
      try {
        whole = repairing();
      } catch (const Failure&) {
      }
      if (whole) {
        writes.repaired(since);
        break;
      }
      if (attempt == max_attempts) return;
      client.sleep_for(std::chrono::milliseconds(context.random.below(1500)));
    }
  }
}

}  // namespace mcds
