// The change of the number of copies in which a structure is kept, while clients use it. Its contract stands
// at the end of this file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/versions.hpp"

namespace mcds {

struct RecopyMark {
  KeptNumber from;
  std::size_t to = 1;       // 0: it is being dropped
  std::string mover = {};   // another for every one
  std::string moving = {};  // what is on its way
};

std::string encode(const RecopyMark& mark);
// nullopt: not one.
std::optional<RecopyMark> decode_recopy_mark(std::string_view value);

// A client trusts its last look for the mark for so long; the mover waits for twice that.
constexpr auto look_holds = std::chrono::seconds(1);
constexpr auto recopy_settling = std::chrono::seconds(2);
constexpr auto recopy_lease = std::chrono::seconds(3);

// What was changed before it could be removed is read again: one round after another, until `round` says that
// nothing is left. Throws Contention after so many that others must be changing `what` all the time.
template <typename Round>
void in_rounds(const std::string& what, const Round& round) {
  constexpr int most = 100;
  for (int rounds = 0; !round(); ++rounds) {
    if (rounds == most) throw Contention("other clients keep changing " + what + "; try again");
  }
}

// The mark of one structure.
class Recopying {
 public:
  // Throws InvalidInput for a name that no key can contain.
  Recopying(const Context& context, std::string_view structure, std::string_view name);

  // For clients: what asks for it, and what the replies say. A copy that missed its removal counts too.
  // Throws NotApplied if nobody answers who would have it.
  std::vector<Request> asks() const;
  struct Seen {
    RecopyMark mark;
    std::uint32_t number = 0;  // another for every change
  };
  struct Told {
    std::optional<Seen> change;         // that is under way
    std::optional<std::uint32_t> done;  // another number for every change that is; none within an hour
  };
  Told told(std::span<const Reply> replies) const;
  // Of all copies; removes what missed its removal.
  std::optional<Seen> look() const;

  // For movers. Each throws Contention if another mover was faster, and NotApplied or UnknownOutcome if a
  // server does not answer; then nothing may be removed from the old keys.
  void begin(const KeptNumber& from, std::size_t to);
  // Goes on with the change that another left, unless somebody else does by now.
  void take_over(const Seen& left);
  void write(std::string moving);
  // Throws if another mover has taken over: before what was not certainly removed by this one is stored.
  void check() { write(mark_.moving); }
  // So that nobody takes this mover for dead: to be called about once a second.
  void keep_alive() {
    if (context_.clock.steady() - put_at_ > recopy_lease / 3) check();
  }
  void finish() { put(mark_, Writing::removal); }
  // Until those that looked before begin() have ended.
  void settle() const;

  const RecopyMark& mark() const { return mark_; }
  bool taken_over() const { return taken_over_; }
  // Where nobody looks, each mover elsewhere.
  std::string staging_key(std::string_view mover) const { return key_ + ":" + std::string(mover); }
  // In as many copies as the mark.
  Context safe_context() const {
    return context_.in_copies(std::max({mark_.from.copies, mark_.to, asked_copies()}));
  }
  Context old_context() const { return context_.in_copies(mark_.from.copies); }
  Context new_context() const { return context_.in_copies(mark_.to); }

 private:
  // It is in two copies at least, if there are two servers.
  std::size_t asked_copies() const {
    return std::min<std::size_t>(context_.cluster.placement().pool().size(), 2);
  }
  static std::optional<Seen> seen(const VersionedCopy& copy);
  Versions versions_of(const Context& context) const {
    return Versions(context, Versions::Single::versioned);
  }
  enum class Writing { first, next, removal };
  void put(const RecopyMark& next, Writing writing);

  Context context_;
  std::string key_;
  RecopyMark mark_;
  bool taken_over_ = false;
  std::optional<SteadyTime> settled_at_;
  SteadyTime put_at_{};
  std::optional<std::string> written_;  // what the mark says as far as we know; nullopt: there is none
};

}  // namespace mcds

// Key layout
//   <namespace><structure>0:<name>   the mark `M1 <from> <to> <mover> *<checksum>` and, behind a line feed,
//                                    what is on its way; in as many copies as the larger number, and in two
//                                    at least if there are two servers, as in versions.hpp; gone when the
//                                    change is done. <from> is a number, with `u` behind it for keys of
//                                    before 0.2.
// The protocol
//   1 The mover writes the mark, and waits for 2 s: every client that looked for the mark earlier and did not
//     find it has ended what it looked for.
//   2 Piece by piece (a journal, some elements): it reads the piece under the old keys; stores it where
//     nobody looks; names it in the mark, in every copy of the mark; removes it from the old keys by
//     compare-and-delete; stores it under the new keys; then the next piece. What was changed before it could
//     be removed is read again.
//   3 It removes the mark. What it leaves, as versions.hpp does for an hour, tells that a change was done.
//   To drop a structure is a change to no copies: the same mark, with 0 for <to>, and the same wait; then
//   every piece is removed from the old keys, and nothing is stored. Under the old keys nothing remains, not
//   even a word that it was removed: a word that expires would take later appends with it. So a request that
//   is executed more than an hour late may leave something that nobody names.
//   A client that finds something missing, be it the structure, an element or one of several copies, looks
//   for the mark before it reports, creates or restores anything (Kept::elsewhere). If there is one, it waits
//   until it is gone, then looks again: who gives the new number goes on, who gives the old one is refused
//   with the new. A mark that has not changed for 3 s was left by a mover that died: the client that waits
//   completes the change itself. One that is done since the client's last look counts like one that is under
//   way: what was asked for beside the mark may have been asked for before.
// Invariants
//   A piece is under the old keys, or else named in the mark, or else under the new keys. So a change that is
//   made under the old keys is either seen by the mover, because its compare-and-delete fails, or it finds
//   the piece missing and waits.
//   Only who wrote the mark last goes on: another mover finds it changed, and stops before it removes
//   anything more, and before it stores what it may not have removed itself.
//   Clocks decide nothing but when to wait and when to take over.
// Round trips: none for clients while nothing is missing; what they ask when something is asks for the mark
//   too. Within an hour of a change, they ask once more.
// What memcached cannot promise
//   A client that stands still for more than 2 s between its look and its write may create the structure, or
//   an element, under the old number. Both are kept, each under its number; the next recopy says so.
//   With one copy a removal leaves nothing behind. If a mover dies, or gets no reply, in the very trip in
//   which it removes an element of a table or hash from a single copy, or stores it in one, who takes over
//   cannot know whether a client removed it meanwhile, and keeps the element: it may come back.
//   If a mover stands still for more than 3 s in the midst of storing a piece, or a server executes a request
//   seconds after its sender gave up, something old may remain under a number that is no longer used; clients
//   with that number are not refused then. The next recopy removes an index that lists nothing, and says so
//   if there is more. What is stored late in a single copy, of an element that the next mover has just
//   removed there, is kept instead of the value of that mover, if it dies before it has stored it.
//   Elements that the index does not list stay behind.
//   A server that does not answer stops the change: nothing is lost, but clients that miss something are told
//   to try again until it answers, or is taken out of the pool.
