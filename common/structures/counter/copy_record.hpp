// One copy of an exact counter that has several:
//   C2 <life> <life>:<changes>:<sum>[,…] <ids> [@<expiry>] *<checksum>
//   C2 9f0c6a5be1d27348 51ab22c0de7f1a90:17:40,9f0c6a5be1d27348:2:2 51ab22c0…,b7c1e0f2… *0b2f1c9e
// A life is one copy's item from its creation to its loss. A copy counts what was counted through it in its own life, by
// cas on the very item: the changes of a life are in one order, and of two records the one with more changes of a life is
// the newer one as to that life. So records merge by taking the newer of each life, and the counter is the sum of all.
// The ids are those of the last 64 changes of the copy's own life; `-` if there are none.
//
// A removal ends the lives it finds. One that is over has 2^63 plus the UNIX time of its end as its number of changes, newer
// than all that was counted in it in every merge, and the removal's mark, a random number, as its sum: of two removals the
// one with the larger time, or mark, is known in the end. After an hour it is forgotten. A record in which every life that
// counted is over is that of a counter that was removed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"

namespace mcds {

struct CounterCopyRecord {
  static constexpr std::size_t kept_ids = 64;

  struct Life {
    std::uint64_t changes = 0;
    std::uint64_t sum = 0;
    bool is_over() const { return changes >= over; }
    bool newer_than(const Life& other) const {
      return changes != other.changes ? changes > other.changes : is_over() && sum > other.sum;
    }
    bool operator==(const Life&) const = default;
  };
  static constexpr std::uint64_t over = std::uint64_t{1} << 63;

  std::string life;  // this copy's own
  std::map<std::string, Life> lives;
  std::vector<std::string> ids;
  std::optional<std::int64_t> expires_at;  // UNIX seconds

  std::string text() const;
  // nullopt: not one, or damaged. The record of a counter that had one copy (C1) is read as a life of its own.
  static std::optional<CounterCopyRecord> parse(std::string_view text);

  std::uint64_t sum() const;
  bool has(std::string_view id) const;
  // Takes over what is newer in `other`; the expiry of one of them that counts.
  void learn(const CounterCopyRecord& other);
  // Whether it contains everything in `other`.
  bool covers(const CounterCopyRecord& other) const;
  // Whether anything was counted that no removal ended.
  bool exists() const;
  bool own_life_is_over() const;
  void end_lives(WallTime now, std::uint64_t mark);
  // Of more than an hour ago.
  void forget_removals(WallTime now);
  // Until when one that was removed must be remembered.
  WallTime remembered_until() const;
  // Counts `delta` in its own life, which is not over.
  void count(std::uint64_t delta, std::string id);
};

}  // namespace mcds
