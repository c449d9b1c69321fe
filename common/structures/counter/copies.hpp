// An exact counter with several copies: counts on one, then tells the others.
//
// An increment reads all copies, merges them (record.hpp says why records merge), counts in the first copy
// that answers by cas on what it read there, and writes the merged record to every other copy that knows less: three
// trips, two when there is nobody left to tell. A copy that was lost is thereby made whole, by the next increment or by a
// read. An increment is never counted in a second copy unless the first is known not to have counted it: after a lost
// reply its id is looked up there; if that copy is gone meanwhile, the outcome is unknown. Where the write without reply
// would have created the copy, its increment is the only one of a life that nobody else counts in: every copy is told of
// that life, which counts it once, whether that creation is seen, comes late, or was lost again. (Only not when it holds
// the counter's first value, which another's creation may hold too: then a copy that is missing leaves it unknown.)
//
// A removal ends the lives it finds and writes that to every copy, where it stays for an hour: who merges a copy that it has
// not reached yet with one that it has reached, now or as long as it is remembered, finds nothing to restore, and a request
// that comes late finds an item that it did not read. What is counted after the first copy was told is in a life of its own,
// and stays.
// What only this client knows any more, because the copies were lost between two of its trips, it writes again.
//
// A copy whose version (the counter's life in counter.hpp) is older than another's does not count and is written anew. A
// set writes the next version to every copy it reaches, of a counter that has counted nothing but its value.
//
// A decrement is counted like an increment, in one copy, by cas on it: it subtracts at most what all copies that answer have
// together. Who does not see a copy may so subtract less, or what another subtracts from that copy at the same time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/primitives/cas_update.hpp"
#include "common/primitives/copies.hpp"
#include "common/primitives/versions.hpp"
#include "common/structures/counter/lives.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

struct CounterCopiesValue {
  std::uint64_t value = 0;
  bool created = false;
  std::size_t server = 0;
  std::vector<CopyOutcome> copies;
  bool exists = true;
};

class CounterCopies {
 public:
  // `name` is for messages only.
  CounterCopies(const Context& context, std::string name, std::string key);

  // `initial`: what a missing counter counts from; `ttl`: of one that is created. nullopt: it is plain, or to be created
  // plain, and nothing is done. Throws NotApplied, UnknownOutcome, Contention, CorruptData.
  std::optional<CounterCopiesValue> incr(std::uint64_t delta, std::uint64_t initial,
                                         std::optional<Duration> ttl, bool create);
  // What was read then: the flags of a plain copy that is created, and whether one is missing for certain.
  std::uint32_t flags_of_plain() const;
  bool is_missing(std::size_t copy) const { return !copies_[copy].found && !copies_[copy].failure; }
  // Of plain copies that tell nothing of the others.
  std::vector<std::size_t> servers_of_any_life() const;

  // Not below 0. The same; nullopt also: there is none.
  std::optional<CounterCopiesValue> decr(std::uint64_t delta);

  // Merges what a read found and makes lost copies whole as far as they answer. nullopt: none of those that count is exact.
  std::optional<CounterCopiesValue> heal(const VersionedItem& item);

  // Begins a life with `value`. Leaves in `item`, what was read of it, what failed.
  CounterCopiesValue set(VersionedItem& item, std::uint64_t value, std::optional<Duration> ttl);

  // False: there was none, or another client removed it. Leaves in `item` what failed. nullopt: as above, nothing is done.
  std::optional<bool> remove(VersionedItem& item);

 private:
  // One copy as last read.
  struct Copy {
    std::size_t server = 0;
    bool found = false;
    std::uint32_t version = 0;
    CasUnique cas;
    std::optional<CounterRecord> record;  // found, and exact
    std::optional<std::uint64_t> plain;   // found, and plain
    std::optional<Failure> failure;       // it did not answer
    bool in_doubt = false;                // a write to it had no reply, and it was not read since
  };
  struct Removal {
    std::uint64_t mark;
    CounterRecord record = {};
    std::set<std::string> ended = {};  // lives in which something was counted
    bool written = false;              // perhaps
    bool in_new_life = false;
  };
  // A write that got no reply, and may yet be executed: what follows it must be a cas on the same item, so that only one
  // of them can count.
  struct Doubt {
    std::size_t server;
    std::string life, id;
    std::uint64_t changes;  // of that life, before
    CounterRecord written;
    bool counter_created;
    bool repeatable;  // it creates the copy, and no other creation can hold the same
    std::uint32_t version;
  };

  // What a change adds, modulo 2^64, to a counter that exists or not, of this value; nullopt: it is not to be made.
  using Added = std::function<std::optional<std::uint64_t>(bool exists, std::uint64_t now)>;
  enum class Counted { yes, no, nothing };

  std::optional<CounterCopiesValue> change(const Added& added, std::optional<Duration> ttl);
  void forget();
  void read();
  void take(const VersionedItem& item);
  void take(Copy& copy, const VersionedCopy& found);
  void end_lives();
  void outlive_silent();
  bool has_removed() const;
  bool counts(const VersionedCopy& found) const;
  bool all_answer() const;
  std::uint32_t flags() const;
  bool any_exact() const;
  bool is_plain() const;
  bool lacks(const Copy& copy) const;
  Copy* leader();
  bool settle_doubts();
  bool was_counted(const Doubt& doubt, const Copy& copy) const;
  bool told() const;
  Counted count_on(Copy& copy, const Added& added, std::optional<Duration> ttl);
  void spread();
  NotApplied no_cas(std::size_t server) const;
  Request write(const Copy& copy, const CounterRecord& record) const;
  CounterRecord base_for(const Copy& copy) const;
  CounterCopiesValue result() const;
  [[noreturn]] void fail() const;
  [[noreturn]] void give_up() const;

  const Context& context_;
  std::string name_;
  std::string key_;
  std::vector<std::size_t> servers_;
  std::vector<Copy> copies_;
  std::uint32_t version_ = any_life;  // of the copies that count; what is known is of this one
  bool sets_ = false;                 // it is ours
  bool plain_ = false;                // a copy of it is
  std::uint64_t initial_ = 0;
  std::map<std::size_t, Failure> refused_;  // servers that cannot be counted on, and why
  CounterRecord known_;                     // all copies merged, and what was counted
  std::optional<Removal> removal_;
  std::vector<Doubt> doubts_;  // all on one server
  bool created_ = false;
  std::size_t counted_on_ = 0;
  std::uint64_t counted_ = 0;  // the value then
};

}  // namespace mcds
