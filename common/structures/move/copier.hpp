// Copies items in batches: read, store by add, read back; batches overlap.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/structures/move/ledger.hpp"
#include "common/structures/move/map.hpp"
#include "common/structures/move/move.hpp"
#include "common/structures/move/roots.hpp"
#include "common/structures/move/spool.hpp"

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
  struct Item {
    Spooled record;
    std::string key;  // in the new place
    KeyHash hash;
    std::optional<Copied> before;  // what the journal says of it
    std::uint64_t digest = 0;      // of what was read
    Exptime exptime = Exptime::never();
    bool only_touched = false;           // since it was copied
    std::optional<std::size_t> added{};  // index of its add
  };
  using Items = std::vector<Item>;
  struct Reading {
    Items items;
    std::unique_ptr<Pending> pending;
  };
  struct Writing {
    Items items;
    std::unique_ptr<Pending> pending;
    std::uint64_t first = 0;  // of the journal's records, one for each item
  };
  // What became of an item, so far.
  enum class State { settled, left, changed, touched };

  bool passed_over(const Item& item) const;
  void begin_reading();
  void begin_writing();
  void finish_writing();
  std::optional<Request> read(Item& item, Reply reply);
  bool set_expiry(Item& item, const ItemAge& age) const;
  State judge(const Item& item, const Request* add, const Reply* added, const Reply& seen);
  State judge_other(const Item& item, const Request& add, const Reply& seen);
  void update(Items& items, std::span<const Request> batch, std::vector<State>& states);
  void touch(Items& items, std::vector<State>& states);
  void keep_pace(std::size_t count);
  MovedPair& pair_of(const Item& item);
  State left(const Item& item, const char* reason, std::string message);
  State left(const Item& item, const Failure& failure);
  void done(std::size_t count);

  const Context& from_;
  Cluster& to_;
  const Map& map_;
  Ledger& ledger_;
  const MoveOptions& options_;
  MoveReport& report_;
  const Move::Watch& watch_;
  Roots roots_;
  SteadyTime started_;
  std::uint64_t paced_ = 0;
  std::size_t largest_batch_;
  Items next_;
  std::size_t next_bytes_ = 0;
  std::deque<Reading> reading_;
  std::deque<Writing> writing_;
};

}  // namespace mcds::moving
