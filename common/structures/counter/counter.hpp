// Counters that any memcached client can read and increment. For counts, sums and rate limits. Its contract
// stands at the end of this file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/key_names.hpp"
#include "common/replication/copies.hpp"
#include "common/replication/copy_count_guard.hpp"
#include "common/replication/replicas.hpp"

namespace mcds {

struct CounterRecord;  // record.hpp

// What is said of one counter.
struct CounterAnswer {
  bool done = false;        // it is there; of set and remove: it was stored, or removed
  std::uint64_t value = 0;  // what it is now; of take: what it was
  bool created = false;
  bool exact = false;
  std::size_t server = 0;
  std::vector<CopyOutcome> copies = {};
  std::optional<Failure> failure = {};  // in an answer about several; then the rest says nothing
};

struct IncrOptions {
  std::optional<Duration> ttl;  // of a counter that is created; an existing one keeps its own
  std::uint64_t initial = 0;    // what a missing counter counts from
  bool exact = false;           // create it exact; InvalidInput if it exists and is plain
  // A plain one never counts on a text that begins with a number; a trip more with the classic protocol.
  bool checked = false;
};

struct Increment {
  std::string name;
  std::uint64_t delta = 1;
};

// The result for all lines of a batch with the same name.
struct IncrementResult {
  std::string name;
  std::uint64_t delta = 0;  // their sum
  CounterAnswer answer = {};
};

struct IncrementResults {
  std::vector<IncrementResult> of_names;  // in the order of their first lines
  std::vector<std::size_t> of_lines;      // for each line of the batch, which of of_names is its own
};

// What a limit allows, for all uses of a batch.
struct LimitRule {
  std::uint64_t max = 0;
  Duration period{};
  bool sliding = false;  // in any window of `period`, wherever it begins; one copy only
  bool peek = false;     // counts nothing
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
  std::optional<Failure> failure = {};  // then the rest says nothing
};

class Counter {
 public:
  // whole_keys: NAME is the memcached key of an application's counter, which has one copy.
  enum class Names { counters, whole_keys };

  static constexpr std::size_t most_side_by_side = 128;  // names whose verbs need several trips

  explicit Counter(const Context& context, Names names = Names::counters);

  // All throw InvalidInput for a bad name or number, NotApplied, UnknownOutcome, and CorruptData for a value
  // that is not a counter; those for several names keep it in each answer.
  CounterAnswer incr(const std::string& name, std::uint64_t delta, IncrOptions options = {});
  // One trip for all plain ones, in flight: other batches may be begun before what it returns is called,
  // once, for the results. The counter outlives it.
  std::function<IncrementResults()> begin_incr(std::span<const Increment> batch,
                                               const IncrOptions& options = {});
  // Stops at 0.
  CounterAnswer decr(const std::string& name, std::uint64_t delta);
  std::vector<CounterAnswer> get(std::span<const std::string> names);
  // Not done: if_absent, and there is one.
  CounterAnswer set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                    bool if_absent);
  // Resets to 0: every increment is in exactly one answer. One copy only.
  CounterAnswer take(const std::string& name);
  std::vector<CounterAnswer> remove(std::span<const std::string> names);
  // Counts at most `max` uses in each window of `period`; what was denied is not counted. Uses of one name
  // are counted one after the other, in their order; those of different names share their trips, and so do
  // all of one name that cost 1 once it was counted in this batch.
  std::vector<LimitResult> limit(std::span<const LimitUse> uses, const LimitRule& rule);
  // Throws InvalidInput for a use that the rule cannot count.
  void check_limit(const LimitUse& use, const LimitRule& rule) const;

  std::string key_of(const std::string& name) const {
    return names_ == Names::whole_keys ? whole_key(context_.key_prefix, name)
                                       : copied_key(context_, "counter", name);
  }
  const Context& context() const { return context_; }
  // Returns what checks the copy count of a counter, or of a limit's window: what follows the counter's key.
  static CopyCountGuard guard(const Context& context, const std::string& name, const std::string& window);
  // Returns false for whole keys, and where a single server holds one copy of everything.
  bool has_copy_counts() const {
    return names_ == Names::counters && context_.cluster.placement().pool().size() > 1;
  }
  // An only copy may be digits, which its server counts by itself in one trip.
  bool server_counts() const { return is_only(context_.copies); }
  // What a copy holds; nullopt: no counter in so many copies.
  std::optional<CounterRecord> record_in(std::string_view value) const;

 private:
  class Limiting;

  std::optional<Request> first_request(const IncrementResult& increment, const IncrOptions& options) const;
  std::optional<CounterAnswer> counted(const std::string& name, const Reply& reply) const;
  [[noreturn]] void fail(const std::string& name, const Reply& reply) const;
  [[noreturn]] void put_back(const std::string& name, const Reply& text, std::uint64_t counted) const;

  // Each name's `work`, by a Counter of its own, with many names' requests in one trip.
  template <typename Work>
  void side_by_side(std::size_t count, const Work& work) const;

  Context context_;
  Names names_;
};

template <typename Work>
void Counter::side_by_side(std::size_t count, const Work& work) const {
  for (std::size_t from = 0; from < count; from += most_side_by_side) {
    const SideBySide runs(context_, std::min(count - from, most_side_by_side));
    runs.each([&](std::size_t i) {
      Counter counter(runs.at(i), names_);
      work(from + i, counter);
    });
  }
}

}  // namespace mcds

// Key layout
//   counter:<name>                       plain: decimal digits, possibly followed by spaces (left by decr);
//                                        exact: C1 <changes> <sum> <ids> [@<expiry>] *<checksum>
//   counter<N>:<name>                    in N copies, N at least 2: C3 …
//   counter:<name>:limit:<period>:<w>    the uses in window w = floor(now / period), period in milliseconds:
//                                        digits; with copies counter<N>:…, a record
//   counter:<name>:limit:<period>:sliding   the times of the last uses: sliding.hpp
//   E.g. counter:hits = 42 and, exact, C1 3 42 9f0c6a5be1d27348,51ab22c0de7f1a90,b7c1e0f2a94d4f6e *0b2f1c9e.
//   The records are described in record.hpp; in how many copies it is:
//   common/replication/copy_count_guard.hpp.
// Invariants
//   acknowledged increments <= value <= acknowledged + those reported as unknown, as long as the item lives.
//   The answers of all takes plus what is left equal the sum of the increments.
//   A counter is plain or exact from its creation until it is removed. Decrements stop at 0.
// Round trips (steady / worst)
//   incr plain 1; exact 2 / 2 per rival; incr of an exact counter without `exact` 3; decr 1; get 1; set 2 (1
//   if if_absent finds one); take 2; limit 1, or 2 if denied with a cost above 1, 1 more in a new window;
//   sliding 2, denied 1; remove 2, 1 if there is one server. A batch of plain increments costs as much as
//   one. Where there are several servers, a counter that is missing, or a window that is peeked at, is looked
//   for under other numbers of copies: 1 more, and to create it 3.
// With several copies (replicated.hpp; a trip asks all copies at once)
//   Always exact. incr, decr 3, set 2, get 1, remove and set with if_absent 3; 128 names of a batch cost as
//   much as one.
//   set and remove take away what they saw: an increment at the same moment may be counted after them, and so
//   may everything, by a set whose outcome is unknown and that arrives late.
//   take and sliding limits have one copy, whatever the context says: their answers depend on the value, on
//   which copies cannot agree.
// When things fail
//   lost reply   plain: unknown, never repeated. Exact: looked up by id; unknown only if 64 other changes
//                followed.
//   crash        nothing to clean up.
//   eviction, restart, flush   the counter starts again: created is true. With copies: of one server at a
//                time nothing is lost that was read or changed after it.
//   slow server  limit: an answer that comes half a period after the end of its window, or later, allows
//                nothing (Contention); the use may have been counted.
//   skew         limit: clients disagree about the window by their skew. The end of an exact counter is in
//                its record, by its writer's clock; what the server says is left of the item (meta) tells
//                others how far theirs is off. Each change of such a client may prolong it by a second. With
//                classic commands a clock that is ahead by what is left takes the counter for ended.
//   full server  incr of an existing counter still works; creating one is refused.
//   values       incr wraps at 2^64, as the server does. Servers before 1.6.22 misread some values of 2^63
//                and above, so such values are refused as input.
//   decr         counts text down that begins with a number, until it is put back; without a ttl where the
//                protocol tells none, and not if somebody was faster.
//   take         keeps the remaining ttl, to a second, only where the protocol reports it (meta).
// Source
//   "incr, or add, or incr again": the atomic counters of memcached's own protocol.txt.
