// The number of copies in which a structure is kept, as part of its keys.
//
// Key layout
//   <namespace><structure>:<name>      kept in one copy:                array:jobs
//   <namespace><structure><N>:<name>   kept in N copies, N at least 2:  array2:jobs
//   Before 0.2 no key contained the number. A structure that was then written in several copies is looked for
//   if the new keys do not exist, and continues under its old keys. It is recognised by its root being on
//   servers other than the first. If the last copies were lost, their number is unknown, and more are made.
//   With one copy nothing is looked for: the first server holds the only copy.
// Invariants
//   A client with a wrong number finds nothing, never another structure's value: its keys hold nothing that
//   could be read in part, overwritten or "healed". Before anything is reported missing or created, the roots
//   of the other numbers are looked for, and the command is refused with the right number.
// Round trips
//   None while something exists; one for the first miss or creation of an object.
// When things fail
//   A server that does not answer seems to hold no root: meanwhile a second structure of the same name can be
//   created with another number of copies. Nothing of either is lost; each is read with its own number.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/context.hpp"

namespace mcds {

class Kept {
 public:
  // Whether the roots of two servers, both under one unmarked key, are copies of one structure; else one is left from
  // before the list of servers changed.
  using SameLife = std::function<bool(const std::string& one, const std::string& other)>;

  // `root`: what follows the structure's key in the one that is there as long as the structure is: `:i` of a table.
  // Throws InvalidInput for a name that no key can contain.
  Kept(const Context& context, std::string_view structure, std::string_view name, std::string_view root,
       SameLife same_life);

  // The structure's key; every other begins with it.
  const std::string& key() const { return key_; }

  std::string unmarked_key() const { return key_for(1); }

  // Call it if key() holds nothing, before that is reported or acted upon; looks once. True: key() is another from
  // now on, try again. Throws Failure(bad_data) if it is kept in another number of copies.
  bool elsewhere();

 private:
  std::string key_for(std::size_t copies) const;
  std::size_t unmarked_copies(const std::vector<const std::string*>& roots) const;
  [[noreturn]] void refuse(std::size_t copies) const;

  Context context_;
  std::string structure_;
  std::string name_;
  std::string root_;
  SameLife same_life_;
  std::string key_;
  bool asked_ = false;
};

}  // namespace mcds
