// Copies items in batches: read, then store by add and read back in one trip; batches overlap.
#pragma once

#include <deque>

#include "common/base/bounds.hpp"
#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/map.hpp"
#include "common/operations/move/ledger.hpp"
#include "common/operations/move/lives.hpp"
#include "common/operations/move/move.hpp"
#include "common/operations/roots.hpp"

namespace mcds::moving {

// What becomes of the items of a batch once the new servers have answered: stored, there before, united,
// replaced because they changed on the old servers alone, or left. All are counted.

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

class Copier {
 public:
  Copier(const Context& from, Cluster& to, const Map& map, Ledger& ledger, const MoveOptions& options,
         MoveReport& report, const Move::Watch& watch, Clocks new_clocks, Since since);

  // Takes a record, and begins a batch when it is enough.
  void take(Spooled record);
  // Everything that was taken is done.
  void finish();

 private:
  struct Reading {
    Items items;
    WallTime asked;
    std::unique_ptr<Pending> pending;
  };
  struct Writing {
    Items items;
    std::unique_ptr<Pending> pending;
    std::uint64_t first = 0;  // of the journal's records, one for each item
  };
  void doubt(Item& item);
  bool passed_over(const Item& item) const;
  void begin_reading();
  void begin_writing();
  void finish_writing();
  std::optional<Request> read(Item& item, Reply reply);
  WallTime end_of(std::uint32_t expires_s, std::size_t old_server) const;
  bool set_end(Item& item) const;
  bool copy_has_ended(const Item& item) const;

  const Context& from_;
  Cluster& to_;
  const Map& map_;
  Ledger& ledger_;
  const MoveOptions& options_;
  const Since since_;
  MoveReport& report_;
  Tally tally_;
  Roots roots_;
  Settler settler_;
  Clocks old_clocks_, new_clocks_;
  Pace pace_;
  std::size_t largest_batch_;
  Items next_;
  std::size_t next_bytes_ = 0;
  std::deque<Reading> reading_;
  std::deque<Writing> writing_;
};

}  // namespace mcds::moving
