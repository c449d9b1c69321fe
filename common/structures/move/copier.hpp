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
         std::vector<std::optional<std::int64_t>> new_clocks_ahead_s, MoveReport& report,
         const Move::Watch& watch);

  // Takes a record, and begins a batch when it is enough.
  void take(Spooled record);
  // Everything that was taken is done.
  void finish();

 private:
  struct Reading {
    Items items;
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
  std::optional<Request> read(Item& item, Reply reply);
  std::optional<std::int64_t> end_of(const Item& item, const ItemAge& age) const;
  bool set_expiry(Item& item, const ItemAge& age) const;
  void keep_pace(std::size_t count);

  const Context& from_;
  Cluster& to_;
  const Map& map_;
  Ledger& ledger_;
  const MoveOptions& options_;
  std::vector<std::optional<std::int64_t>> ahead_s_;
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
