// Counter is a named number that any number of clients can change at the same time without losing an
// increment. Any memcached client can read and increment it. Use it for counts, sums and rate limits. Its
// contract is at the end of this file.
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

// The result for one counter.
struct CounterAnswer {
  bool done = false;        // the counter exists; for set and remove: stored or removed
  std::uint64_t value = 0;  // the value now; for take: the value before it was reset
  bool created = false;
  bool exact = false;
  std::size_t server = 0;
  std::vector<CopyOutcome> copies = {};
  std::optional<Failure> failure = {};  // only in batches; the other fields are then meaningless
};

struct IncrOptions {
  std::optional<Duration> ttl;  // only of a counter that is created
  std::uint64_t initial = 0;    // the value that a missing counter starts from
  bool exact = false;           // create it exact; InvalidInput if it exists and is plain
  // Refuses a plain value that merely begins with a number. Costs one more trip with the classic protocol.
  bool checked = false;
};

struct Increment {
  std::string name;
  std::uint64_t delta = 1;
};

// The result for all lines of a batch with the same name.
struct IncrementResult {
  std::string name;
  std::uint64_t delta = 0;  // the sum over those lines
  CounterAnswer answer = {};
};

struct IncrementResults {
  std::vector<IncrementResult> of_names;  // in the order of their first lines
  std::vector<std::size_t> of_lines;      // for each line of the batch, its index in of_names
};

// The rule for all uses of a batch.
struct LimitRule {
  std::uint64_t max = 0;
  Duration period{};
  bool sliding = false;  // in every window of `period`, wherever it begins; one copy
  bool peek = false;     // report without counting
};

struct LimitUse {
  std::string name;
  std::uint64_t cost = 1;
};

struct LimitResult {
  bool allowed = false;
  std::uint64_t used = 0;   // in this window, including this one
  Duration retry_after{0};  // until the window ends or enough uses have left it
  std::size_t server = 0;
  std::vector<CopyOutcome> copies = {};
  std::optional<Failure> failure = {};  // if set, the other fields are meaningless
};

class Counter {
 public:
  // If whole_keys is set, a name is the complete memcached key of an application's counter, which has one
  // copy.
  enum class Names { counters, whole_keys };

  // How many names of an operation that needs several trips share them: more if the trips, and not the work,
  // take the time, as with distant servers.
  static constexpr std::size_t max_concurrent = 128, max_concurrent_far = 1024;
  static constexpr Duration far = std::chrono::milliseconds(20);

  explicit Counter(const Context& context, Names names = Names::counters);

  // Every operation throws InvalidInput for a bad name or number, CorruptData if the value is not a counter,
  // NotApplied, and UnknownOutcome. Operations on several names store the failure in each answer.
  CounterAnswer incr(const std::string& name, std::uint64_t delta, IncrOptions options = {});
  // Starts a batch and returns a function that waits for the results, to be called once. Other batches may be
  // started before that. All plain counters share one trip. The Counter must outlive the function.
  std::function<IncrementResults()> begin_incr(std::span<const Increment> batch,
                                               const IncrOptions& options = {});
  // Subtracts `delta`, stopping at 0. Does not create a missing counter.
  CounterAnswer decr(const std::string& name, std::uint64_t delta);
  std::vector<CounterAnswer> get(std::span<const std::string> names);
  // Stores `value`. With if_absent, leaves an existing counter alone and returns done == false.
  CounterAnswer set(const std::string& name, std::uint64_t value, std::optional<Duration> ttl,
                    bool if_absent);
  // Returns the value and resets it to 0, so that every increment is in exactly one answer. One copy only.
  CounterAnswer take(const std::string& name);
  std::vector<CounterAnswer> remove(std::span<const std::string> names);
  // Allows at most `max` uses in each window of `period`; denied uses are not counted. Uses of one name are
  // counted in order. Uses of different names share trips, and so do uses of cost 1 of a name that was
  // already counted in this batch.
  std::vector<LimitResult> limit(std::span<const LimitUse> uses, const LimitRule& rule);
  // Throws InvalidInput for a use that the rule cannot count.
  void check_limit(const LimitUse& use, const LimitRule& rule) const;

  std::string key_of(const std::string& name) const;
  const Context& context() const { return context_; }
  // Returns the guard of a counter, or of a limit's window: `window` is what follows the counter's key.
  static CopyCountGuard guard(const Context& context, const std::string& name, const std::string& window);
  // Returns true if the counter could exist with another copy count: not for whole keys or a single server.
  bool has_copy_counts() const {
    return names_ == Names::counters && context_.cluster.placement().pool().size() > 1;
  }
  // Returns true if the server itself can count, in one trip, because a single copy may be plain digits.
  bool server_counts() const { return has_single_copy(context_.copies); }
  // Parses the value of one copy. Returns nullopt if it is not a counter with this number of copies.
  std::optional<CounterRecord> record_in(std::string_view value) const;

 private:
  class Limiting;

  std::optional<Request> first_request(const IncrementResult& increment, const IncrOptions& options) const;
  std::optional<CounterAnswer> counted(const std::string& name, const Reply& reply) const;
  void expect_not_counted(const std::string& name, Reply& reply) const;
  [[noreturn]] void fail(const std::string& name, const Reply& reply) const;
  [[noreturn]] void put_back(const std::string& name, const Reply& text, std::uint64_t counted) const;

  // Calls work(i, counter) for each name, with a Counter of its own. Many names' requests share their trips.
  template <typename Work>
  void fibers(std::size_t count, const Work& work) const;

  Context context_;
  Names names_;
  mutable std::size_t concurrent_ = max_concurrent;
};

template <typename Work>
void Counter::fibers(std::size_t count, const Work& work) const {
  for (std::size_t from = 0, these = 0; from < count; from += these) {
    these = std::min(count - from, concurrent_);
    const SteadyTime began = context_.clock.steady();
    const FiberGroup runs(context_, these);
    runs.each([&](std::size_t i) {
      Counter counter(runs.at(i), names_);
      work(from + i, counter);
    });
    if (context_.clock.steady() - began > far) concurrent_ = max_concurrent_far;
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
//   record.hpp describes the records, common/replication/copy_count_guard.hpp the number of copies.
// Invariants
//   acknowledged increments <= value <= acknowledged + unknown outcomes, as long as the item lives. The sum
//   of all take() answers plus the remaining value equals the sum of the increments. A counter is plain or
//   exact from its creation to its removal. Decrements stop at 0.
// Round trips (steady / worst)
//   incr plain 1; exact 2 / 2 per conflicting write; incr of an exact counter without `exact` 3; decr 1; get
//   1; set 2 (1 if if_absent finds one); take 2; limit 1, or 2 if a use is denied, 1 more in a new
//   window; sliding 2, denied 1; remove 2, 1 if there is one server. A batch of plain increments costs as
//   much as one. In a pool of several servers, the copy-count guard adds 1 to a missing counter or a peek,
//   and 3 to a creation.
// With several copies (replicated.hpp; a trip asks all copies at once)
//   Always exact. incr, decr 3, set 2, get 1, remove and set with if_absent 3; 128 names of a batch cost as
//   much as one, and as many as 1,024 after the first if servers are distant.
//   set and remove take away what they saw: a concurrent increment may be counted after them, and so may
//   every increment, by a set whose outcome is unknown and that arrives late.
//   take and sliding limits use one copy, whatever the context says: their answers depend on the value, on
//   which copies cannot agree.
// When things fail
//   lost reply   plain: unknown, never retried. Exact: looked up by id; unknown only if 64 other changes
//                followed. Without `exact`: the key is read, and an exact counter shows that nothing was
//                counted; if it is removed, the lost request may then begin a plain one.
//   crash        leaves nothing to clean up.
//   eviction, restart, flush   the counter starts again: created is true. With copies, nothing that was read
//                              or changed after the loss of one server is lost.
//   slow server  limit: an answer that comes half a period after the end of its window, or later, allows
//                nothing (Contention); the use may have been counted.
//   skew         limit: clients disagree about the window by their skew. An exact counter's expiry is in its
//                record, by its writer's clock; the item's remaining ttl (meta) shows others how far theirs
//                is off. Each change by such a client may prolong it by a second. With classic commands, a
//                clock that is ahead by the remaining ttl treats the counter as expired.
//   full server  incr of an existing counter still works; creating one is refused.
//   values       incr wraps at 2^64, as the server does. Servers before 1.6.22 misread some values of 2^63
//                and above, so such values are refused as input.
//   decr         subtracts from text that begins with a number until the text is restored: without a ttl if
//                the protocol reports none, and not after a conflicting write.
//   take         keeps the remaining ttl, to a second, only if the protocol reports it (meta).
// Source
//   "incr, or add, or incr again": the atomic counters of memcached's own protocol.txt.
