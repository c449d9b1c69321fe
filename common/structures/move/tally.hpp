// An item on its way, and the count of what became of all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.hpp"
#include "common/base/result.hpp"
#include "common/cluster/cluster.hpp"
#include "common/structures/move/ledger.hpp"
#include "common/structures/move/move.hpp"
#include "common/structures/move/spool.hpp"

namespace mcds::moving {

constexpr WallTime never_ends = WallTime::max();

struct Item {
  Spooled record;
  std::string key = {};  // in the new place
  KeyHash hash = {};
  std::optional<Copied> before = {};  // what the journal says of it
  std::uint64_t digest = 0;           // of what was read
  Exptime exptime = Exptime::never();
  WallTime end = never_ends;  // by our clock
  bool only_touched = false;  // since it was copied; the copy may have ended
};
using Items = std::vector<Item>;

class Tally {
 public:
  Tally(MoveReport& report, const Move::Watch& watch) : report_(report), watch_(watch) {}

  MovedPair& pair_of(const Item& item) { return report_.pairs[{item.record.from, item.record.to}]; }
  // It is not copied, and is told with the reason.
  void left(const Item& item, const char* reason, std::string message);
  void left(const Item& item, const Failure& failure);
  // So many more items are through, whatever became of them.
  void done(std::size_t count);

 private:
  MoveReport& report_;
  const Move::Watch& watch_;
};

// Of a reply that failed.
Failure failure_of(const Cluster& cluster, const Reply& reply);

}  // namespace mcds::moving
