// The number of copies in which a structure is kept, as part of its keys. Its contract stands at the end of
// this file.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/primitives/context.hpp"
#include "common/primitives/several/recopying.hpp"

namespace mcds {

class Kept {
 public:
  // Whether the roots of two servers, both under one unmarked key, are copies of one structure; else one is
  // left from before the list of servers changed.
  using SameLife = std::function<bool(const std::string& one, const std::string& other)>;

  // Moves every piece of it by a change that has begun, or was taken over from who died, and ends that change
  // (Recopying::finish). To 0 copies: removes it. Without it such a change is waited for in vain.
  using Move = std::function<void(Recopying& change)>;
  // Whether the roots under one key together say that the structure has left the number of copies in it (1:
  // none is in it). Then they do not count: the structure is where another root is.
  using HasLeft = std::function<bool(std::span<const std::string> roots, std::size_t copies)>;
  // What becomes of several copies under an unmarked key.
  enum class Unmarked { continues, refused };
  // `root`: what follows the structure's key in the one that is there as long as the structure is: `:i` of a
  // table. Throws InvalidInput for a name that no key can contain.
  Kept(const Context& context, std::string_view structure, std::string_view name, std::string_view root,
       SameLife same_life, Move move = {}, HasLeft has_left = {}, Unmarked unmarked = Unmarked::continues);

  // The structure's key; every other begins with it.
  const std::string& key() const { return key_; }

  std::string unmarked_key() const { return key_for(1); }
  // Under a key of before 0.2.
  bool is_unmarked() const { return key_ != key_for(context_.copies); }

  // Call it if key() holds nothing, or one of several copies does not, before that is reported or acted upon;
  // looks once a second. True: key() is another from now on, or the number of copies was being changed: try
  // again. Throws Failure(bad_data) if it is kept in another number of copies, Contention if the number goes
  // on being changed.
  // `certainly`: looks now, whenever it looked last.
  bool elsewhere(bool certainly = false);

  // For who created it after elsewhere(), before that is answered: looks again. If it is there under another
  // number, `take_back` removes what was created, by compare-and-delete, and answers whether none of it is
  // left. Throws Failure(bad_data) if so; UnknownOutcome, which names both, if not, or if a server that
  // answered before does not now; Contention if the other number is being changed.
  void confirm(const std::function<bool()>& take_back);
  // The same for who found by itself in how many other copies it is.
  [[noreturn]] void refuse_created(std::size_t other, const std::function<bool()>& take_back) const;

  // For what changes the number of copies; an unfinished change is completed first.
  using Place = KeptNumber;
  // Everywhere it is. `ours`: the change that is under way is the caller's, and is not waited for: what was
  // found before it began may have been changed since. Throws NotApplied if it is nowhere, and a server that
  // may have it does not answer.
  std::vector<Place> places(bool ours = false);
  // Which of places() it is; nullopt: nowhere. Throws Failure(bad_data) if it was created under several
  // numbers, or if the context's number has the keys that it is under.
  std::optional<Place> only(const std::vector<Place>& places) const;

  // Puts it, wherever it is, into as many copies as the context says; nothing is lost, whatever others do
  // meanwhile: see recopying.hpp. Throws Contention, NotApplied, UnknownOutcome: it can be repeated, by
  // anyone.
  struct Recopied {
    bool found = false;
    std::size_t from = 1;  // as it was; the same: there was nothing to do
  };
  Recopied recopy();
  // From there into `to` copies, 0: nowhere. Throws Contention if it is not where places() said any more.
  void change(const Place& from, std::size_t to, const std::vector<Place>& places);
  // Out of every number. False: it is nowhere.
  bool drop();

  // If the last look found no root that counts: those that have left. Once.
  std::vector<std::string> take_left() { return std::exchange(left_, {}); }
  // Throws Failure(bad_data): it is kept in so many copies.
  [[noreturn]] void refuse(std::size_t copies) const;
  // The same of copies under an unmarked key, which only recopy reads.
  [[noreturn]] void refuse_unmarked() const;
  // From now on key() is the unmarked one.
  void use_unmarked() { key_ = unmarked_key(); }

 private:
  struct Look;
  Look look(bool everywhere = false) const;
  std::optional<Failure> newly_silent(const Look& look) const;
  bool act_upon(const Look& look);
  std::string created() const;
  void expect_taken_back(std::size_t other, const std::function<bool()>& take_back) const;
  std::vector<Place> places_of(const Look& look) const;
  std::pair<Look, bool> settled_look(bool everywhere);
  std::uint32_t wait_for_change(const Recopying::Seen& seen);
  std::string key_for(std::size_t copies) const;
  std::size_t unmarked_copies(const std::vector<std::optional<std::string>>& roots) const;

  Context context_;
  std::string structure_;
  std::string name_;
  std::string root_;
  SameLife same_life_;
  std::string key_;
  Recopying recopying_;
  Move move_;
  HasLeft has_left_;
  Unmarked unmarked_;
  std::vector<std::string> left_;
  std::optional<SteadyTime> looked_at_;
  std::set<std::size_t> silent_;       // servers that did not answer the last look
  std::optional<std::uint32_t> done_;  // the last change that is, as of the last look
};

// What Kept::confirm() needs: removes what is there of `gets`, each by compare-and-delete, as long as
// `is_ours` says that nobody else has put anything there. `in_order`: one after the other. False: something
// is left.
using IsOurs = std::function<bool(std::size_t get, const Reply& there)>;
bool take_back(Cluster& cluster, std::span<const Request> gets, const IsOurs& is_ours, bool in_order = false);

}  // namespace mcds

// Key layout
//   <namespace><structure>:<name>      kept in one copy:                array:jobs
//   <namespace><structure><N>:<name>   kept in N copies, N at least 2:  array2:jobs
//   Before 0.2 no key contained the number. A structure that was then written in several copies is looked for
//   if the new keys do not exist, and continues under its old keys. It is recognised by its root being on
//   servers other than the first. If the last copies were lost, the number that is left counts, and recopy
//   makes more.
//   With one copy nothing is looked for: the first server holds the only copy.
// Invariants
//   A client with a wrong number finds nothing, never another structure's value: its keys hold nothing that
//   could be read in part, overwritten or "healed". Before anything is reported missing or created, the roots
//   of the other numbers are looked for, and the command is refused with the right number.
//   Who creates looks twice: before, and again before it answers (confirm). Of two that create under
//   different numbers one at least sees the other, takes its own back, and is refused. A third client that
//   finds a root before it is taken back may be told yes.
//   The number can be changed while clients go on: recopying.hpp. Whoever finds something missing waits until
//   a change that is under way is done, or completes it if it was left.
// Round trips
//   None while something exists; one for the first miss or creation of an object, and one more for another
//   that comes more than a second later. Two for the first, within an hour of a change of the number.
// When things fail
//   A server that does not answer either look seems to hold no root: meanwhile a second structure of the same
//   name can be created with another number of copies. Nothing of either is lost; each is read with its own
//   number. To answer every such creation with an unknown outcome would be no help: the root of one copy is
//   on the first server of several, so while that server is down nothing could be created in several copies,
//   which are there to survive just that.
