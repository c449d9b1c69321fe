// CounterCopies makes one operation on a counter in all its copies, of which there may be one: it merges
// records (record.hpp) by the rules of replication/quorum.hpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/errors.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

// The counter, the name and the replies must outlive this object.
class CounterCopies {
 public:
  // `window` is what follows the counter's key if this is a limit. `first` has one reply per copy if the
  // copies were just read; they are then not read again.
  static std::unique_ptr<CounterCopies> of(const Counter& counter, const std::string& name,
                                           const std::string& window = {}, std::span<const Reply> first = {});
  virtual ~CounterCopies() = default;

  // Returns what a change adds, modulo 2^64, to a counter of this value, or nullopt if it must not be made.
  using Added = std::function<std::optional<std::uint64_t>(bool exists, std::uint64_t now)>;
  struct Counted : CounterAnswer {
    bool made = false;
    std::uint64_t in_all = 0;  // the value after this and concurrent changes
  };
  // If `new_expiry` is set, an existing counter gets the ttl too.
  virtual Counted count(const Added& added, const IncrOptions& how, bool new_expiry = false) = 0;
  virtual CounterAnswer get() = 0;
  // Returns the answer of get() without a trip, or nullopt if it takes one.
  virtual std::optional<CounterAnswer> get_at_once() = 0;
  virtual CounterAnswer set(std::uint64_t value, std::optional<Duration> ttl, bool if_absent) = 0;
  virtual CounterAnswer remove() = 0;
};

// Throws InvalidInput for values that some servers misread.
void check_counter_value(std::uint64_t value, std::string_view what, std::uint64_t added = 0);

UnknownOutcome may_be_counted(const std::string& name, const std::string& server);

// Stores the result of `work`, or its failure, in `answer`.
template <typename Answer, typename Work>
void capture_failure(Answer& answer, const Work& work) {
  auto done = attempt(work);
  if (done.failure())
    answer.failure = done.failure();
  else
    answer = std::move(done.value());
}

}  // namespace mcds

// replicated.cpp explains each operation. A missing copy is written only after a check that the counter does
// not exist with another copy count (copy_count_guard.hpp).
// With two copies
//   A client that reaches only a copy that has lost its data, while the other does not answer, sees the same
//   as with a new counter in a pool with one dead server, and must succeed. Whatever number it gives its
//   base, the silent copy may hold a higher one that was set in the same way. That base counts when both
//   copies answer.
