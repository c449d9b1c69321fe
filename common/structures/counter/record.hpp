// CounterRecord is the value of a counter: plain digits or a record. With several copies, records merge in
// any order. The formats are at the end of this file.
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
  static constexpr std::uint64_t max_epochs = std::uint64_t{1} << 62;
  // The time for which a base that replaced or removed something is kept after its expiry, because a copy
  // that missed it may have the value before it.
  static constexpr std::chrono::hours remembered_for{1};
  static constexpr std::chrono::seconds max_late{5};  // maximum lag of clocks and of writes in flight

  struct Count {
    std::uint64_t changes = 0;
    std::uint64_t sum = 0;
    void merge(const Count& other) {
      if (other.changes > changes) *this = other;
    }
    bool operator==(const Count&) const = default;
  };
  struct Life {
    Count made, taken;  // counted, and taken away by sets and removals
    bool covers(const Life& other) const {
      return made.changes >= other.made.changes && taken.changes >= other.taken.changes;
    }
  };
  struct Epoch {
    enum class Kind { removed, begun, set };
    std::uint64_t number = 0;  // 0: there is no base yet
    Kind kind = Kind::removed;
    std::uint64_t value = 0;
    std::string mark = {};
    std::optional<std::int64_t> expires_at = {};  // UNIX seconds; of a removal: that of the counter
    bool plain = false;                           // digits, without expiry and changes
    std::chrono::seconds ahead{0};                // of our clock: the clock for its times; not stored
    bool beats(const Epoch& other) const;
  };

  std::string incarnation;  // the incarnation of this copy
  Epoch base;
  std::map<std::string, Life> incarnations;
  std::vector<std::string> ids;  // of this copy's last changes, the newest last

  // Returns a record of a new incarnation in which nothing was counted; `single`: for a single copy.
  static CounterRecord of_new_incarnation(bool single, Random& random);

  // Returns the record as it is stored.
  std::string text() const;
  // Returns nullopt if `text` is not a counter or is damaged.
  static std::optional<CounterRecord> parse(std::string_view text);
  // Returns true for a single copy, which leaves no tombstone when it is removed.
  bool is_single() const;
  std::uint64_t sum() const;
  // Returns the number of changes of its own incarnation.
  std::uint64_t changes() const { return incarnations.at(incarnation).made.changes; }
  // Returns whether change `id`, sent when `incarnation` had `changes` changes, was made;
  // nullopt if the record cannot show it.
  std::optional<bool> tells(std::string_view id, const std::string& incarnation, std::uint64_t changes) const;
  void merge(const CounterRecord& other);
  // Returns true if merging `other` would change nothing. is_empty(): true if this record is empty.
  bool covers(const CounterRecord& other) const;
  bool is_empty() const { return base.number == 0 && incarnations.empty(); }
  bool exists() const;
  // Returns the exptime of the item that holds the record.
  Exptime exptime(WallTime now) const;
  // Sets base.ahead from the remaining ttl of the item: the record's expiry minus that ttl is the present
  // time by the clock that wrote the expiry. If that clock differs from ours, it decides.
  void read_clock(std::chrono::seconds left, WallTime now);
  bool has_expired(WallTime now) const;
  // Turns an expired record that is still remembered into a removal. Returns false if nothing is left of it.
  bool age(WallTime now);
  // Returns true if `other` has counted in an incarnation that this record does not have.
  bool is_unrelated_to(const CounterRecord& other) const;
  // Starts again from this base. Only a single copy may be plain.
  void begin(Epoch from);
  // Makes one more change of its own incarnation: adds `delta`, modulo 2^64.
  void count(std::uint64_t delta, std::string id);

  // Returns true if the record is remembered after its expiry, so that its item must outlive it.
  bool replaced() const { return base.number > 1; }

 private:
  // Returns when its item expires, or nullopt for never.
  std::optional<std::int64_t> end() const;
};

// Returns the UNIX second at which a ttl that begins now expires.
std::optional<std::int64_t> expiry_second(std::optional<Duration> ttl, WallTime now);

// Returns the error message for a value that is not a counter.
std::string no_counter_message(const std::string& name, std::string_view value);

}  // namespace mcds

// The value of a counter:
//   42                                                         plain, in one copy; decr leaves spaces
//   C1 <changes> <sum> <ids> [@<expiry>] *<checksum>           with one copy
//   C3 <incarnation> <base> <incarnations> <ids> [@<expiry>] *<checksum>     in one of several copies
//   C3 9f0c6a5be1d27348 3s100:b7c1e0f2a94d4f6e 51ab22c0de7f1a90:17:40-12:31,9f0c6a5be1d27348:2:2 51ab…,b7c1…
//   *0b2f1c9e
// An incarnation (a life in the code) is one copy's item from its creation to its loss. A copy counts changes
// in its own incarnation, by cas on that item. So the changes of an incarnation have one order, and of two
// records the one with more changes of it is newer. The ids are those of the last 64 changes of the copy's
// own incarnation, or `-`. The expiry is a UNIX time, because every cas must send it again.
//
// The counter is its base plus everything counted since, in all incarnations. A base is left by a creation
// (b), a set (s) or a removal (r): its number, one more than that of the base it found; the initial value (r:
// until when the removal is remembered, in UNIX seconds); and the mark of its writer. The base with the
// higher number counts; of one number a set before a creation before a removal, then the larger value, then
// the later expiry. Two removals of one number are equal: neither replaces the other.
// A set or removal takes away what it saw: `-<changes>:<sum>` after an incarnation is how far that was
// counted then. So an increment that it did not see counts after it, whenever either arrives.
// Records merge into the base that counts, and for each incarnation the most that was counted and the most
// that was taken away. That is a join: writes in any order and any number of times lead to the same result.
//
// A decrement is a change that adds a negative number to the sum of its incarnation, modulo 2^64. Several
// clients that do not see each other's copies may each subtract the remaining value; a counter below 0 counts
// as 0.
