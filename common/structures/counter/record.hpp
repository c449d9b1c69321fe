// The value of a counter: plain digits, or a record; with several copies records that merge in any order. Its
// contract stands at the end of this file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"
#include "common/base/random.hpp"
#include "common/cluster/request.hpp"

namespace mcds {

struct CounterRecord {
  // The number of changes among which a lost reply can be looked up.
  static constexpr std::size_t kept_ids = 64;
  static constexpr std::uint64_t most_bases = std::uint64_t{1} << 62;
  // What replaced something, or removed it, after its end: a copy that missed it may have what was before.
  static constexpr std::chrono::hours remembered_for{1};
  static constexpr std::chrono::seconds most_late{5};  // of servers' clocks and of writes on their way

  struct Count {
    std::uint64_t changes = 0;
    std::uint64_t sum = 0;
    void learn(const Count& other) {
      if (other.changes > changes) *this = other;
    }
    bool operator==(const Count&) const = default;
  };
  struct Life {
    Count made, taken;  // away
    bool covers(const Life& other) const {
      return made.changes >= other.made.changes && taken.changes >= other.taken.changes;
    }
  };
  struct Base {
    enum class Kind { removed, begun, set };
    std::uint64_t number = 0;  // 0: there is nothing yet
    Kind kind = Kind::removed;
    std::uint64_t value = 0;
    std::string mark = {};
    std::optional<std::int64_t> expires_at = {};  // UNIX seconds; of a removal: what the counter had
    bool plain = false;                           // digits, which say neither expiry nor changes
    std::chrono::seconds ahead{0};                // of ours, by which its times are to be read; not stored
    bool beats(const Base& other) const;
  };

  std::string life;  // this copy's own
  Base base;
  std::map<std::string, Life> lives;
  std::vector<std::string> ids;  // of the last changes, the newest last

  // In which nothing was counted yet; `single`: of an only copy.
  static CounterRecord of_new_life(bool single, Random& random);

  // As it is stored.
  std::string text() const;
  // nullopt: no counter, or damaged.
  static std::optional<CounterRecord> parse(std::string_view text);
  // The only copy, which leaves nothing when it is removed.
  bool is_single() const;
  std::uint64_t sum() const;
  // Of its own life.
  std::uint64_t changes() const { return lives.at(life).made.changes; }
  // Whether a change that was sent when `life` had `changes` was made: nullopt if this record cannot tell.
  std::optional<bool> tells(std::string_view id, const std::string& life, std::uint64_t changes) const;
  void learn(const CounterRecord& other);
  // Whether there is nothing in `other` to learn; and in this one.
  bool covers(const CounterRecord& other) const;
  bool says_nothing() const { return base.number == 0 && lives.empty(); }
  bool exists() const;
  // Of the item that holds it.
  Exptime exptime(WallTime now) const;
  // What the server says is left of its item tells the time by the clock that its end was written by: one
  // that is not ours is followed.
  void read_clock(std::chrono::seconds left, WallTime now);
  bool has_expired(WallTime now) const;
  // What is left of it now: what has expired is a removal as long as that is remembered. False: nothing.
  bool age(WallTime now);
  // Whether it was begun without `other`, which has counted something.
  bool is_strange_to(const CounterRecord& other) const;
  // Anew, from this base: as the first of an only copy, which alone may be plain.
  void begin(Base from);
  // One more change of its own life: `delta` is added, modulo 2^64.
  void count(std::uint64_t delta, std::string id);

  // It is remembered after its end, so its item does not end with it.
  bool replaced() const { return base.number > 1; }

 private:
  // When its item ends; nullopt: never.
  std::optional<std::int64_t> end() const;
};

// When an expiry ends that begins now.
std::optional<std::int64_t> expiry_second(std::optional<Duration> ttl, WallTime now);

// The error for a value that is not a counter.
std::string no_counter_message(const std::string& name, std::string_view value);

}  // namespace mcds

// The value of a counter:
//   42                                                         plain, in one copy; decr leaves spaces
//   C1 <changes> <sum> <ids> [@<expiry>] *<checksum>           with one copy
//   C3 <life> <base> <lives> <ids> [@<expiry>] *<checksum>     of one of several copies
//   C3 9f0c6a5be1d27348 3s100:b7c1e0f2a94d4f6e 51ab22c0de7f1a90:17:40-12:31,9f0c6a5be1d27348:2:2 51ab…,b7c1…
//   *0b2f1c9e
// A life is one copy's item from its creation to its loss. A copy counts what was counted through it in its
// own life, by cas on the very item: the changes of a life are in one order, and of two records the one with
// more changes of a life knows more of it. The ids are those of the last 64 changes of the copy's own life;
// `-` if there are none. The expiry is a UNIX time, because every cas must send it again.
//
// The counter is its base and all that was counted since, in all lives. A base is what a creation (b), a set
// (s) or a removal (r) left: a number, one more than that of the base it found, what the counter begins with
// (r: until when the removal is remembered, in UNIX seconds), and the mark of who wrote it. Of two bases the
// one with the higher number counts; of one number a set before a creation before a removal, then the larger
// value, then the later expiry. Two removals of one number are alike: none replaces the other.
// What a set or removal takes away is what it saw: `-<changes>:<sum>` behind a life is how far that was
// counted then. So an increment that it did not see counts after it, whenever either arrives.
// Records merge: the base that counts, and of each life the most of what was counted and of what was taken
// away. That is a join: whoever writes what, in any order and any number of times, leaves the same.
//
// A decrement is a change like any other: it adds to the sum of its life, modulo 2^64, what makes the counter
// smaller. Of clients that do not see each other's copies each may subtract what is left; a counter below 0
// counts as 0.
