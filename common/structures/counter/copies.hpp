// A counter with several copies: records that merge (record.hpp), kept by the rule of
// primitives/several/quorum.hpp. Its contract stands at the end of this file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/primitives/several/kept.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/held.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

class CounterCopies {
 public:
  // `window`: of a limit, what follows the counter's key.
  CounterCopies(const Context& context, std::string name, const std::string& window = {});

  // What a change adds, modulo 2^64, to a counter that exists or not, of this value; nullopt: it is not to be
  // made.
  using Added = std::function<std::optional<std::uint64_t>(bool exists, std::uint64_t now)>;
  struct Creation {
    std::uint64_t initial;
    std::optional<std::int64_t> expires_at;
  };
  struct Counted {
    bool made = false;
    bool exists = false;
    CounterValue value;  // of what exists
  };
  Counted count(const Added& added, const Creation& creation = {0, {}});
  CounterReading get();
  SetResult set(std::uint64_t value, std::optional<Duration> ttl, bool if_absent);
  CounterRemoval remove();

 private:
  // One copy as last read, or written since.
  struct Copy {
    std::size_t server = 0;
    bool found = false;
    std::optional<HeldCounter> held = {};
    CasUnique cas = {};
    std::optional<CounterRecord> record = {};
    std::optional<Failure> failure = {};  // it did not answer, or a write to it is in doubt
  };
  // A write that got no reply, and may yet be executed: what follows it must be a cas on the same item, so
  // that only one of them can count.
  struct Doubt {
    std::size_t server;
    std::string life, id;
    std::uint64_t changes;  // of that life, before
    CounterRecord written;
    bool created;
    bool of_new_life;
  };
  using Making = std::function<std::optional<CounterRecord>()>;

  void read();
  void take(Copy& copy, const Reply& reply);
  void end_those_before();
  void look();
  void look_and_rely();
  void thaw();
  bool is_elsewhere();
  Copy* leader();
  bool settle_doubts();
  void count_on(Copy& copy, std::uint64_t delta, const Creation& creation);
  Counted spread_count();
  void set_anyway(const Making& make);
  bool claim(const Making& make);
  bool claim_on(Copy& copy, const CounterRecord& mine);
  void spread();
  void answer_unchanged();
  void expect(Part part, const CounterRecord& wanted) const;
  void expect_claimed(const CounterRecord& mine) const;
  void confirm_creation(const CounterRecord& ours);
  bool take_back(const CounterRecord& ours);
  bool lacks(const Copy& copy) const;
  CounterRecord base_for(const Copy& copy) const;
  Request write(const Copy& copy, const CounterRecord& record) const;
  std::uint64_t next_base() const;
  template <typename Test>
  bool any(const Test& test) const;
  std::vector<CopyOutcome> outcomes() const;
  CounterValue answer(std::uint64_t value) const;
  [[noreturn]] void give_up() const;

  const Context& context_;
  std::string name_;
  Kept kept_;
  std::string key_;
  std::vector<Copy> copies_;
  std::map<std::size_t, Failure> refused_;  // servers that cannot be counted on, and why
  CounterRecord known_;                     // all copies merged, and what was changed
  std::vector<Doubt> doubts_;               // all on one server
  bool was_nowhere_ = false;                // when it was read first
  bool sent_ = false;                       // a copy was written, or perhaps
  bool created_ = false;
  std::optional<std::size_t> counted_on_;
  std::uint64_t counted_ = 0;  // the value then
};

}  // namespace mcds

//   increments  Read all copies, count in the first one that answers, by cas on what was read there, and
//               write the merged record to every copy that knows less: three trips. An increment is never
//               counted in a second copy unless the first is known not to have counted it: after a lost reply
//               its id is looked up there; if that copy is gone meanwhile, the outcome is unknown. A write
//               that would have begun a new life is told to every copy instead: nobody else counts in that
//               life, so it counts once, whether it is executed, comes late, or is lost again.
//   set         Reads, and writes to all copies what it takes away and a new base: two trips. What it takes
//               away is what its own first reading saw; who set it again after a lost reply would take away
//               what it never saw.
//   remove,     claim: they write to the first copy that answers by cas on what was read there, then to the
//               others. At most one
//   set         of two at the same time is told that it did it: who finds its own mark on a majority. Who was
//               overtaken
//   --if-absent   before that does not know.
//   get         writes what it answers to the copies that know less, and sees that a majority has it.
// A copy that is missing is written only after a look whether the counter is elsewhere (kept.hpp). Where a
// copy is held, because it is being put elsewhere, everybody waits; what a held copy has goes along.
// Of records that end soon those of a counter with a later expiry are nothing: they were left by the one
// before.
