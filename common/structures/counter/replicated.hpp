// One operation on a counter in all its copies, of which there may be one: records that merge (record.hpp),
// by the rule of replication/quorum.hpp. Its contract stands at the end of this file.
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

// Counter, name and replies outlive it.
class CounterCopies {
 public:
  // `window`: of a limit, what follows the counter's key. `first`: one reply per copy, if they were just
  // read: they are not asked for again.
  static std::unique_ptr<CounterCopies> of(const Counter& counter, const std::string& name,
                                           const std::string& window = {}, std::span<const Reply> first = {});
  virtual ~CounterCopies() = default;

  // What a change adds, modulo 2^64, to a counter that exists or not, of this value; nullopt: it is not to be
  // made.
  using Added = std::function<std::optional<std::uint64_t>(bool exists, std::uint64_t now)>;
  struct Counted : CounterAnswer {
    bool made = false;
    std::uint64_t in_all = 0;  // with what was found when the others were told
  };
  // `new_expiry`: one that exists gets the ttl, too.
  virtual Counted count(const Added& added, const IncrOptions& how, bool new_expiry = false) = 0;
  virtual CounterAnswer get() = 0;
  // The same without a trip; nullopt: it takes some.
  virtual std::optional<CounterAnswer> get_at_once() = 0;
  virtual CounterAnswer set(std::uint64_t value, std::optional<Duration> ttl, bool if_absent) = 0;
  virtual CounterAnswer remove() = 0;
};

// Throws InvalidInput for values that some servers misread.
void check_counter_value(std::uint64_t value, std::string_view what, std::uint64_t added = 0);

UnknownOutcome may_be_counted(const std::string& name, const std::string& server);

// What `work` answers, or its failure.
template <typename Answer, typename Work>
void keep_answer(Answer& answer, const Work& work) {
  auto done = attempt(work);
  if (done.failure())
    answer.failure = done.failure();
  else
    answer = std::move(done.value());
}

}  // namespace mcds

//   increments  Read all copies, count in the first one that answers, by cas on what was read there, and
//               write the merged record to every copy that knows less: three trips, with one copy two. An
//               increment is never counted in a second copy unless the first is known not to have counted it:
//               after a lost reply the item is as it was, or the increment's id is looked up there; if that
//               copy is gone meanwhile, or plain and changed, the outcome is unknown. A write that would have
//               begun a new life is told to every copy instead: nobody else counts in that life, so it counts
//               once, whether it is executed, comes late, or is lost again.
//   set         Reads, and writes to all copies what it takes away and a new base: two trips. What it takes
//               away is what its own first reading saw; who set it again after a lost reply would take away
//               what it never saw. With one copy it is a change like any other: its cas is on what it saw.
//   remove,     claim: they write to the first copy that answers by cas on what was read there, then to the
//   set         others. At most one of two at the same time is told that it did it: who finds its own mark on
//   --if-absent a majority. Who was overtaken before that does not know.
//               Who must read again meanwhile brings back nothing but his own increment: a set that he had
//               seen may be lost with its only copy by then, and others may have followed.
//   get         writes what it answers to the copies that know less, and sees that a majority has it.
//   A copy that is missing is written only after a check that the counter does not exist with another copy
//   count (copy_count_guard.hpp).
// A record that ends within seconds, and knows nothing of what was counted in one with a later expiry, is
// nothing: it was left by a counter before. What replaced something is remembered for an hour after its end,
// as a removal is: a copy that missed it does not bring back what was before.
// What it cannot know, with two copies
//   Who reaches only a copy that has forgotten, while the other does not answer, sees what a new counter in a
//   pool with one dead server looks like: it must succeed, and whatever number it gives its base, the silent
//   copy may hold a higher one, of another that was set the same way. Then that one counts when both answer.
