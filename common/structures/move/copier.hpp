// Copies items in batches: read, store by add, read back; batches overlap.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "common/structures/move/map.hpp"
#include "common/structures/move/roots.hpp"
#include "common/structures/move/settler.hpp"
#include "common/structures/move/tally.hpp"

namespace mcds::moving {

class Copier {
 public:
  Copier(const Context& from, Cluster& to, const Map& map, Ledger& ledger, const MoveOptions& options,
         MoveReport& report, const Move::Watch& watch);

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
  bool passed_over(const Item& item) const;
  void begin_reading();
  void begin_writing();
  void finish_writing();
  std::optional<Request> read(Item& item, Reply reply, WallTime asked);
  std::optional<WallTime> end_of(const Item& item, const ItemAge& age, WallTime asked) const;
  void keep_pace(std::size_t count);

  const Context& from_;
  Cluster& to_;
  const Map& map_;
  Ledger& ledger_;
  const MoveOptions& options_;
  Tally tally_;
  Roots roots_;
  Settler settler_;
  SteadyTime started_;
  std::uint64_t paced_ = 0;
  std::size_t largest_batch_;
  Items next_;
  std::size_t next_bytes_ = 0;
  std::deque<Reading> reading_;
  std::deque<Writing> writing_;
};

}  // namespace mcds::moving
