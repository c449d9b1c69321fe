// What becomes of the items of a batch once the new servers have answered: stored, there before, united,
// replaced because they changed on the old servers alone, or left. All are counted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/operations/move/ledger.hpp"
#include "common/operations/move/move.hpp"
#include "common/operations/move/roots.hpp"

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

class Settler {
 public:
  // `without_cas`: where the new server has none, what is as it was copied is stored over.
  Settler(const Clock& clock, Cluster& to, Roots& roots, Tally& tally, bool without_cas)
      : clock_(clock), to_(to), roots_(roots), tally_(tally), without_cas_(without_cas) {}

  // `batch` and `replies`: for each item an add_and_get; of those that were only touched a get. Returns which
  // are settled: nothing has to be done for them by another run.
  std::vector<bool> settle(Items& items, std::span<const Request> batch, std::span<const Reply> replies);

 private:
  // What became of an item, so far.
  enum class State { settled, left, missing, changed, touched };

  template <typename... Why>
  State left(const Item& item, Why&&... why) {
    tally_.left(item, std::forward<Why>(why)...);
    return State::left;
  }
  State judge(const Item& item, const Request& request, const Reply& seen);
  State judge_added(const Item& item, const Request& add, const Reply& added, const Reply& seen);
  State judge_found(const Item& item, const Request& add, const Reply& seen);
  State judge_other(const Item& item, const Request& add, const Reply& seen);
  State judge_update(const Item& item, const Request& add, const Reply& now, const Reply& changed);
  State judge_touch(const Item& item, const Reply& touched);
  Request update_of(const Item& item, const Request& add, const Reply& now) const;

  bool has_ended(const Item& item) const;

  const Clock& clock_;
  Cluster& to_;
  Roots& roots_;
  Tally& tally_;
  bool without_cas_;
};

}  // namespace mcds::moving
