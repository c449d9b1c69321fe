// The value of an exact counter:
//   C1 <changes> <sum> <ids> [@<expiry>] *<checksum>                       with one copy
//   C2 <life> <life>:<changes>:<sum>[,…] <ids> [@<expiry>] *<checksum>     of one of several copies
//   C2 9f0c6a5be1d27348 51ab22c0de7f1a90:17:40,9f0c6a5be1d27348:2:2 51ab22c0…,b7c1e0f2… *0b2f1c9e
// A life is one copy's item from its creation to its loss. A copy counts what was counted through it in its own life, by
// cas on the very item: the changes of a life are in one order, and of two records the one with more changes of a life is
// the newer one as to that life. So records merge by taking the newer of each life, and the counter is the sum of all.
// The ids are those of the last 64 changes of the copy's own life; `-` if there are none. C1 is a record of one life, which
// needs no name: who reads it among several copies gives it always the same one.
//
// A removal ends the lives it finds. One that is over has 2^63 plus the UNIX time of its end as its number of changes, newer
// than all that was counted in it in every merge, and the removal's mark, a random number, as its sum: of two removals the
// one with the larger time, or mark, is known in the end. After an hour it is forgotten. A record in which every life that
// counted is over is that of a counter that was removed.
//
// A decrement is a change like any other: it adds to the sum of its life, modulo 2^64, what makes the counter smaller. Of
// clients that do not see each other's copies each may subtract what is left; a counter below 0 counts as 0.
// The value that a set begins with is a life of its own, of the same name in every copy and with one change: of two sets at
// the same time the larger value counts. No copy counts anything in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"
#include "common/cluster/request.hpp"

namespace mcds {

struct CounterRecord {
  // The number of changes among which a lost reply can be looked up.
  static constexpr std::size_t kept_ids = 64;

  struct Life {
    std::uint64_t changes = 0;
    std::uint64_t sum = 0;
    bool is_over() const { return changes >= over; }
    bool newer_than(const Life& other) const {
      return changes != other.changes ? changes > other.changes : sum > other.sum;
    }
    bool operator==(const Life&) const = default;
  };
  static constexpr std::uint64_t over = std::uint64_t{1} << 63;

  std::string life;  // this copy's own
  std::map<std::string, Life> lives;
  std::vector<std::string> ids;            // of the last changes, the newest last
  std::optional<std::int64_t> expires_at;  // UNIX seconds

  // Of a counter with one copy, in which nothing was counted yet.
  static CounterRecord single();
  // Of what a set begins with, to learn from: it is no copy's own.
  static CounterRecord of_set(std::uint64_t value);

  // As it is stored in one of so many copies.
  std::string text(std::size_t copies) const;
  // nullopt: not one, or damaged; or, with one copy, that of one of several.
  static std::optional<CounterRecord> parse(std::string_view text, std::size_t copies);

  std::uint64_t sum() const;
  // Of its own life.
  std::uint64_t changes() const;
  bool has(std::string_view id) const;
  // Whether a change that was sent when `life` had `changes` was made: nullopt if this record cannot tell.
  std::optional<bool> tells(std::string_view id, const std::string& life, std::uint64_t changes) const;
  // Takes over what is newer in `other`; the expiry of one of them that counts.
  void learn(const CounterRecord& other);
  // Whether it contains everything in `other`.
  bool covers(const CounterRecord& other) const;
  // Whether anything was counted that no removal ended.
  bool exists() const;
  bool own_life_is_over() const;
  void end_lives(WallTime now, std::uint64_t mark);
  // Of more than an hour ago.
  void forget_removals(WallTime now);
  // Of the item that holds it: one that was removed must be remembered for an hour.
  Exptime exptime(WallTime now) const;
  void expire_in(std::optional<Duration> ttl, WallTime now);
  // One more change of its own life, which is not over: `delta` is added, modulo 2^64.
  void count(std::uint64_t delta, std::string id);
};

// The error for a value that is not a counter.
std::string no_counter_message(const std::string& name, std::string_view value);

// The number in a plain counter's value, decr's trailing spaces allowed; nullopt for anything else.
std::optional<std::uint64_t> plain_number(std::string_view value);

}  // namespace mcds
