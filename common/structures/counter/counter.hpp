// Counters that any memcached client can read and increment.
//
// Key layout
//   counter:<name>                       plain: decimal digits, possibly followed by spaces (left by decr)
//                                        exact: C1 <sequence> <sum> <ids> [@<expiry>] *<checksum>
//   counter:<name>:limit:<period>:sliding   the times of the last uses: sliding.hpp
//   counter:<name>:limit:<period>:<w>    the uses in window w = floor(now / period); period in milliseconds
//   E.g. counter:hits = 42 and, exact, C1 3 42 9f0c6a5be1d27348,51ab22c0de7f1a90,b7c1e0f2a94d4f6e *0b2f1c9e.
//   The ids are those of the last 64 changes, the newest last. The expiry is a UNIX time, because every cas
//   must send it again.
// Invariants
//   acknowledged increments <= value <= acknowledged + those reported as unknown, as long as the item lives.
//   The answers of all takes plus what is left equal the sum of the increments.
//   A counter is plain or exact from its creation until it is removed. Decrements stop at 0.
// Round trips (steady / worst)
//   incr plain 1 / 3 (classic: missing, created by another meanwhile); exact 2 / 2 per rival; incr of an
//   exact counter without `exact` 3; decr 1; get 1; set 2 (1 if if_absent finds one); take 2; limit 1, or 2
//   if denied with a cost above 1, sliding 2, denied 1; remove 1. A batch of plain increments costs as much as one.
//   decr and remove read the counter in the same trip, to see whether it has several copies.
// With several copies (copies.hpp; a trip asks all copies at once)
//   kinds        incr creates an exact counter, unless it is told otherwise or the name is a whole key; set and
//                limit create plain ones.
//   exact        The copies merge and heal (copies.hpp). incr 3, decr 4, set 3, get 1, remove 2; 128 names of a
//                batch cost as much as one. remove leaves in every copy for an hour that the counter was
//                removed, so that no other copy restores it; an increment within that hour makes it an exact
//                counter again, also with `plain`. If a copy does not answer, that is in a new life.
//   plain        Every copy counts, and the largest is the value: right if one copy has lived and been
//                reachable from the start, and never too high. A lost copy starts again low. It is not raised
//                to the others, because that would count increments in flight twice. incr 2, decr 1.
//   lives        set starts a new life of the counter. Its number is the version (versions.hpp), in the
//                flags, which incr does not change. Only copies of the newest life count (lives.hpp); a plain
//                copy that missed the set restarts at 0 at the next read. remove does the same if a copy does
//                not answer: the others keep a 0 that counts as missing until it is incremented. If the copies
//                answer a change with different numbers, it takes 1 trip more; remove takes 2.
//                A decr that a plain copy did not answer would be undone by it, because its number is larger:
//                the others go on in a new life, 2 trips more. (A ttl remains only where the protocol reports it.)
//                A plain copy and an exact one of one life: the exact one counts.
//   take         is refused: copies that lose servers cannot agree who took what.
//   another N    The key does not tell the number of copies, but flags tell one copy that there are others, and
//                a look at the next place, in the same trip, tells several. incr of a plain counter counts in
//                the copies it knows, get reads those, set counts for all. decr and remove go on to the other
//                copies, 1 or 2 trips more each. With one copy, set and take are refused, 1 trip more, and so
//                is everything but remove of an exact counter. More copies than before are made by the next
//                increment, 2 trips more, which puts what one copy began into the first life, so that its flags
//                tell (where the protocol reports its ttl). If the next place does not answer: one copy whose
//                flags tell of others refuses set and take, and the outcome of decr and remove is unknown; several
//                copies take it for empty. Nothing tells of what was created plain before 0.2 and neither
//                incremented nor set with copies since.
// When things fail
//   lost reply   plain: unknown, never repeated. Exact: looked up by id; unknown only if 64 other changes followed.
//   crash        nothing to clean up.
//   eviction, restart, flush   the counter starts again: created is true.
//   skew         limit: clients disagree about the window by their skew; so does the expiry of an exact
//                counter.
//   full server  incr of an existing counter still works; creating one is refused.
//   values       incr wraps at 2^64, as the server does. Servers before 1.6.22 misread some values of 2^63
//                and above, so such values are refused as input.
//   take         keeps the remaining ttl, to a second, only where the protocol reports it (meta).
// Source
//   "incr, or add, or incr again": the atomic counters of memcached's own protocol.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/copies.hpp"
#include "common/primitives/versions.hpp"

namespace mcds {

struct CounterValue {
  std::uint64_t value = 0;
  bool created = false;
  bool exact = false;
  std::size_t server = 0;
  std::vector<CopyOutcome> copies = {};  // when there are several
};

struct IncrOptions {
  std::optional<Duration> ttl;  // of a counter that is created; an existing one keeps its own
  std::uint64_t initial = 0;    // what a missing counter counts from
  bool exact = false;           // create it exact; InvalidInput if it exists and is plain
  bool plain = false;  // create it plain; without either, exact in several copies, but for whole keys
};

struct Increment {
  std::string name;
  std::uint64_t delta = 1;
};

// The result for all lines of a batch with the same name.
struct IncrementResult {
  std::string name;
  std::uint64_t delta = 0;  // their sum
  std::optional<CounterValue> value;
  std::optional<Failure> failure;  // set exactly when value is not
};

struct IncrementResults {
  std::vector<IncrementResult> of_names;  // in the order of their first lines
  std::vector<std::size_t> of_lines;      // for each line of the batch, which of of_names is its own
};

struct CounterReading {
  std::optional<CounterValue> value;  // nullopt: missing
  std::optional<Failure> failure;     // then value says nothing
  std::size_t server = 0;
};

struct SetResult {
  bool stored = false;      // false: if_absent, and there was one
  std::uint64_t value = 0;  // what it is now
  std::size_t server = 0;
  std::vector<CopyOutcome> copies = {};
};

// What a limit allows, for all uses of a batch.
struct LimitRule {
  std::uint64_t max = 0;
  Duration period{};
  bool sliding = false, peek = false;
};

struct LimitUse {
  std::string name;
  std::uint64_t cost = 1;
};

struct LimitResult {
  bool allowed = false;
  std::uint64_t used = 0;   // in this window, with this one
  Duration retry_after{0};  // until the window ends, or enough uses have left it
  std::size_t server = 0;
  std::vector<CopyOutcome> copies = {};
  std::optional<Failure> failure = {};  // in a batch; then the rest says nothing
};

struct CounterRemoval {
  bool removed = false;            // false: there was none
  std::optional<Failure> failure;  // then `removed` says nothing
  std::size_t server = 0;
  std::vector<CopyOutcome> copies = {};
};

class CounterCopies;

class Counter {
 public:
  enum class Names {
    counters,
    whole_keys
  };  // whole_keys: NAME is the memcached key of an application's counter

  static constexpr std::size_t most_side_by_side = 128;  // names whose verbs need several trips

  explicit Counter(const Context& context, Names names = Names::counters)
      : context_(context), names_(names) {}

  // All throw InvalidInput for a bad name or number, NotApplied, UnknownOutcome, and CorruptData for a value that is
  // not a counter.
  CounterValue incr(const std::string& name, std::uint64_t delta, const IncrOptions& options = {});
  // One trip for all plain ones. Never throws for a single name: each result has its own failure.
  IncrementResults incr(std::span<const Increment> batch, const IncrOptions& options = {});
  // The same, in flight: other batches may be begun before its results are waited for. The counter outlives it.
  class Incrementing;
  Incrementing begin_incr(std::span<const Increment> batch, const IncrOptions& options = {});
  // Stops at 0; nullopt if there is no such counter.
  std::optional<CounterValue> decr(const std::string& name, std::uint64_t delta);
  std::vector<CounterReading> get(std::span<const std::string> names);
  SetResult set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl, bool if_absent);
  // Resets to 0 and returns the old value: every increment is in exactly one answer.
  std::optional<CounterValue> take(const std::string& name);
  // Counts `cost` uses of at most `max` in each window of `period`. What was denied is not counted.
  LimitResult limit(const std::string& name, std::uint64_t max, Duration period, std::uint64_t cost = 1);
  // The same without counting: what limit() would say now.
  LimitResult peek_limit(const std::string& name, std::uint64_t max, Duration period, std::uint64_t cost = 1);
  // At most `max` uses in any window of `period`, wherever it begins. One copy only. Throws Contention too.
  LimitResult limit_sliding(const std::string& name, std::uint64_t max, Duration period,
                            std::uint64_t cost = 1, bool peek = false);
  // Many uses, each with its own failure. Uses of one name are counted one after the other, in their order; those of
  // different names share their trips, and so do all of one name that cost 1 once it was counted in this batch.
  std::vector<LimitResult> limit(std::span<const LimitUse> uses, const LimitRule& rule);
  // Throws InvalidInput for a use that the rule cannot count.
  void check_limit(const LimitUse& use, const LimitRule& rule) const;
  std::vector<CounterRemoval> remove(std::span<const std::string> names);

  std::string key_of(const std::string& name) const;

 private:
  CounterValue finish_incr(const std::string& name, const std::string& key, std::uint64_t delta,
                           const IncrOptions& options, std::span<const Reply> replies);
  // Whether it must be read before it is known what to do.
  bool by_update(const IncrOptions& options) const;
  CounterValue incr_plain(const std::string& name, const std::string& key, std::uint64_t delta,
                          const IncrOptions& options, const CounterCopies& seen);
  CounterValue incr_by_update(const std::string& name, const std::string& key, std::uint64_t delta,
                              const IncrOptions& options);
  void incr_side_by_side(std::span<IncrementResult* const> results, const IncrOptions& options) const;

  // One aligned window of a limit.
  struct LimitWindow {
    std::string suffix;  // of a name's key
    WallTime end, now;
    std::chrono::milliseconds period;
  };
  LimitWindow limit_window(Duration period) const;
  // One trip; those of one name must not depend on each other's refusal.
  std::vector<LimitResult> count_uses(std::span<const LimitUse> uses, const LimitRule& rule);
  std::vector<LimitResult> ask_side_by_side(std::span<const LimitUse> uses, const LimitRule& rule) const;
  LimitResult use_result(const LimitUse& use, const LimitRule& rule, const LimitWindow& window,
                         std::span<const Reply> replies) const;

  CounterReading merge(const std::string& name, const std::string& key, std::span<const Reply> replies);
  CounterValue best_of(std::span<const Reply> replies) const;
  std::optional<CounterValue> checked(const std::string& name, const std::string& key, CounterValue value,
                                      std::span<const Reply> replies);
  std::size_t begin_life(const std::string& key, std::span<const std::size_t> servers,
                         std::optional<std::uint32_t> life) const;
  void leave_behind(const std::string& key, std::span<const Reply> decreased) const;
  static void begin_again(const Versions& versions, VersionedItem& item, std::uint32_t life, bool removed);
  // `left`: of which of them there is another copy than the context's.
  std::vector<CounterRemoval> remove_single(std::span<const std::string> names,
                                            std::vector<bool>& left) const;
  std::vector<CounterRemoval> remove_copies(std::span<const std::string> names,
                                            std::vector<bool>& left) const;
  void remove_plain(const Versions& versions, std::span<VersionedItem* const> items) const;
  SetResult set_copies(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                       bool if_absent);
  void refuse_with_copies(const char* what) const;
  void expect_only_copy(const std::string& name, const std::string& key) const;
  std::optional<Request> look_at(const std::string& key, std::size_t copy) const;
  std::vector<Reply> decr_all(const std::string& key, std::uint64_t delta) const;

  Context context_;
  Names names_;
};

class Counter::Incrementing {
 public:
  // Once.
  IncrementResults finish();

 private:
  friend class Counter;
  Incrementing(Counter& counter, const IncrOptions& options) : counter_(&counter), options_(options) {}

  Counter* counter_;
  IncrOptions options_;
  IncrementResults results_;
  struct Sent {
    std::size_t result;
    std::string key;
  };
  std::vector<Sent> sent_;
  std::optional<CopiesOnTheWay> replies_;  // of those in sent_
};

}  // namespace mcds
