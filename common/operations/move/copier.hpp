// Copies items in batches: read, then store by add and read back in one trip; batches overlap.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "common/base/pace.hpp"
#include "common/operations/move/expiry.hpp"
#include "common/operations/move/lives.hpp"
#include "common/operations/move/map.hpp"
#include "common/operations/move/roots.hpp"
#include "common/operations/move/settler.hpp"

namespace mcds::moving {

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
