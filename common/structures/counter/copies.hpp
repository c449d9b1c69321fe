// One operation on a counter in all its copies, of which there may be one: records that merge (record.hpp),
// by the rule of primitives/several/quorum.hpp. Its contract stands at the end of this file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/kept.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

class CounterCopies {
 public:
  // `window`: of a limit, what follows the counter's key. `first`: what was read just now, one reply per copy,
  // which is not asked for again. Counter and replies outlive this.
  CounterCopies(const Counter& counter, std::string name, std::string window = {},
                std::span<const Reply> first = {});

  // What a change adds, modulo 2^64, to a counter that exists or not, of this value; nullopt: it is not to be
  // made.
  using Added = std::function<std::optional<std::uint64_t>(bool exists, std::uint64_t now)>;
  struct How {
    std::uint64_t initial = 0;         // of one that is created
    std::optional<Duration> ttl = {};  // the same
    bool exact = false;                // the same; InvalidInput if there is a plain one
    bool new_expiry = false;           // `ttl` also replaces that of an existing counter
  };
  struct Counted {
    bool made = false;
    CounterAnswer answer;
    std::uint64_t before = 0;  // the value, until it was made
    std::uint64_t in_all = 0;  // the same, with what was found when the others were told
  };
  Counted count(const Added& added, const How& how);
  CounterAnswer get();
  // The same without a trip; nullopt: it takes some.
  std::optional<CounterAnswer> get_at_once();
  CounterAnswer set(std::uint64_t value, std::optional<Duration> ttl, bool if_absent);
  CounterAnswer remove();

 private:
  // One copy as last read, or written since.
  struct Copy {
    std::size_t server = 0;
    bool found = false;
    CasUnique cas = {};
    std::uint32_t flags = 0;
    std::optional<std::chrono::seconds> ttl = {};  // of its item, if the protocol tells and it has one
    std::optional<HeldCounter> held = {};
    std::optional<CounterRecord> record = {};
    std::optional<Failure> failure = {};  // it did not answer, or a write to it is in doubt

    bool is_missing() const { return !failure && !found; }
    bool is_as(const Copy& other) const { return found == other.found && cas == other.cas; }
  };
  // What is to be stored in one copy, and then told to the others. One that got no reply may yet be executed:
  // what follows it must be a cas on the same item, so that only one of them can count.
  struct Change {
    CounterRecord next;
    std::string id = {};                           // of what is counted; empty: it resets the counter
    std::optional<std::chrono::seconds> ttl = {};  // of the item, which a plain one keeps
    Copy copy = {};                                // as it was before
    bool may_be_spread = false;                    // it counts once, whether it is executed or told by others
  };
  // nullopt: nothing is to be made.
  using Making = std::function<std::optional<Change>(const Copy& first)>;
  using MakingBase = std::function<std::optional<CounterRecord::Base>()>;

  void read();
  void take(Copy& copy, const Reply& reply);
  void end_those_before();
  void look();
  void rely() const;
  void thaw();
  Kept* kept();
  bool elsewhere(bool certainly = false);
  bool is_elsewhere();
  Copy* leader();
  bool change(const Making& make);
  bool store(Copy& copy, Change change);
  bool settle_doubt();
  bool set_anyway(const MakingBase& make);
  bool claim(const MakingBase& make);
  CounterRecord::Base next_base(CounterRecord::Base::Kind kind, std::uint64_t value) const;
  void spread();
  bool spread_once();
  void answer_unchanged();
  void expect(Part part, const CounterRecord& wanted) const;
  void confirm_creation(const CounterRecord& ours);
  bool take_back(const CounterRecord& ours);
  bool lacks(const Copy& copy) const;
  CounterRecord base_for(const Copy& copy) const;
  Request write(const Copy& copy, const CounterRecord& record,
                std::optional<std::chrono::seconds> ttl = {}) const;
  template <typename Test>
  bool any(const Test& test) const;
  CounterAnswer answer(bool done, std::uint64_t value) const;
  [[noreturn]] void give_up() const;

  const Counter& counter_;
  const Context& context_;
  std::string name_, window_, key_;
  std::optional<Kept> kept_;
  std::span<const Reply> first_;  // what was read, and not looked at
  std::vector<Copy> copies_;
  std::map<std::size_t, Failure> refused_;  // servers that cannot be counted on, and why
  CounterRecord known_;                     // all copies merged, and what was changed
  std::optional<Change> doubt_;
  std::optional<Change> made_;
  bool was_nowhere_ = false;  // when it was read first
  bool sent_ = false;         // a copy was written, or perhaps
  Rejections rejections_;
};

// Puts a counter elsewhere by a change that has begun, or was left by who died, to its end.
void move_counter(Recopying& change, const Context& context, const std::string& name);

// Throws InvalidInput for values that some servers misread.
void check_counter_value(std::uint64_t value, std::string_view what);

// Throws what `reply`, which is no answer, means for a change of a counter.
[[noreturn]] void fail_counter(const Context& context, const std::string& name, const Reply& reply);

UnknownOutcome may_be_counted(const std::string& name, const std::string& server);

// Runs `work` and keeps its failure, if any, in the answer.
template <typename Answer, typename Work>
void keep_failure(Answer& answer, const Work& work) {
  const Result<void> done = attempt(work);
  if (done.failure()) answer.failure = done.failure();
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
//   get         writes what it answers to the copies that know less, and sees that a majority has it.
// A copy that is missing is written only after a look whether the counter is elsewhere (kept.hpp). Where a
// copy is held, because it is being put elsewhere, everybody waits; what a held copy has goes along.
// A record that ends within seconds, and knows nothing of what was counted in one with a later expiry, is
// nothing: it was left by a counter before. What replaced something is remembered for an hour after its end,
// as a removal is: a copy that missed it does not bring back what was before.
// What it cannot know, with two copies
//   Who reaches only a copy that has forgotten, while the other does not answer, sees what a new counter in a
//   pool with one dead server looks like: it must succeed, and whatever number it gives its base, the silent
//   copy may hold a higher one, of another that was set the same way. Then that one counts when both answer.
