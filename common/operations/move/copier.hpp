// Copier: copies items in overlapping batches. Each is read, then stored by add and read back in one trip.
#pragma once

#include <deque>

#include "common/base/bounds.hpp"
#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/map.hpp"
#include "common/operations/move/move.hpp"
#include "common/operations/move/move_journal.hpp"
#include "common/operations/move/server_starts.hpp"
#include "common/operations/structure_merger.hpp"

namespace mcds::moving {

constexpr WallTime never_ends = WallTime::max();

struct Item {
  SpilledRecord record;
  std::string key = {};  // in the new place
  KeyHash hash = {};
  std::optional<Copied> before = {};  // the journal's record of it
  std::uint64_t digest = 0;           // of the value that was read
  Exptime exptime = Exptime::never();
  WallTime end = never_ends;  // by our clock
  bool only_touched = false;  // only its ttl changed since it was copied; the copy may have expired
};
using Items = std::vector<Item>;

class Tally {
 public:
  Tally(MoveReport& report, const Move::Watch& watch) : report_(report), watch_(watch) {}

  MovedPair& pair_of(const Item& item) { return report_.pairs[{item.record.from, item.record.to}]; }
  // Reports that the item is not copied, with the reason.
  void left(const Item& item, const char* reason, std::string message);
  void left(const Item& item, const Failure& failure);
  // Reports that `count` more items are finished, with any result.
  void done(std::size_t count);

 private:
  MoveReport& report_;
  const Move::Watch& watch_;
};

// Decides what happens to the items of a batch after the new servers have replied, and counts the results.
class ConflictResolver {
 public:
  // `without_cas`: on new servers without cas, an unchanged copy is overwritten.
  ConflictResolver(const Clock& clock, Cluster& to, StructureMerger& roots, Tally& tally, bool without_cas)
      : clock_(clock), to_(to), roots_(roots), tally_(tally), without_cas_(without_cas) {}

  // `batch` has an add_and_get for each item, or a get for an item that was only touched. Returns which items
  // are settled, so that no later run needs to handle them.
  std::vector<bool> settle(Items& items, std::span<const Request> batch, std::span<const Reply> replies);

 private:
  // The state of an item so far.
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
  StructureMerger& roots_;
  Tally& tally_;
  bool without_cas_;
};

class Copier {
 public:
  Copier(const Context& from, Cluster& to, const Map& map, MoveJournal& move_journal,
         const MoveOptions& options, MoveReport& report, const Move::Watch& watch, Clocks new_clocks,
         ValidFrom valid_from);

  // Takes a record, and starts a batch once enough are collected.
  void take(SpilledRecord record);
  // Finishes all records that were taken.
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
    std::uint64_t first = 0;  // journal index of the first item; the others follow
  };
  void doubt(Item& item);
  bool skipped(const Item& item) const;
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
  MoveJournal& move_journal_;
  const MoveOptions& options_;
  const ValidFrom valid_from_;
  MoveReport& report_;
  Tally tally_;
  StructureMerger roots_;
  ConflictResolver resolver_;
  Clocks old_clocks_, new_clocks_;
  RateLimiter limiter_;
  std::size_t largest_batch_;
  Items next_;
  std::size_t next_bytes_ = 0;
  std::deque<Reading> reading_;
  std::deque<Writing> writing_;
};

}  // namespace mcds::moving
