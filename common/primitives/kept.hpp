// In how many copies a structure is kept, as its keys say it.
//
// Key layout
//   <namespace><structure>:<name>      kept in one copy:               array:jobs
//   <namespace><structure><N>:<name>   kept in N copies, N at least 2:  array2:jobs
//   Before 0.2 the number stood in no key. What was written so in several copies is found where nothing is under the
//   marked keys, and goes on under the keys it has; that it was several copies, and not one, is told by its root being on
//   other servers than the first. How many they were is not told when the last of them are lost: more are then made.
//   With one copy none of this is asked: what stands on the first server is read and changed as the only copy.
// Invariants
//   Who says another number than the structure's finds nothing, never somebody's value: there is nothing under his keys
//   that could be read in part, overwritten or made "whole" again. Before "missing" is told, or anything is created, the
//   roots of the other numbers are looked for, and the command is refused with the right number.
// Round trips
//   None while there is something; one for the first miss or creation of an object.
// When things fail
//   A server that does not answer holds no root: while it is away a second structure of the same name can begin in another
//   number of copies. Nothing of either is lost; each is read with its own number.
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
  // before the servers changed.
  using SameLife = std::function<bool(const std::string& one, const std::string& other)>;

  // `root`: what follows the structure's key in the one that is there as long as the structure is: `:i` of a table.
  // Throws InvalidInput for a name no key can hold.
  Kept(const Context& context, std::string_view structure, std::string_view name, std::string_view root,
       SameLife same_life);

  // The structure's key; every other begins with it.
  const std::string& key() const { return key_; }

  std::string unmarked_key() const { return key_for(1); }

  // To be asked where nothing is under key(), before that is told or acted upon; looks once. True: key() is another from
  // now on, try again. Throws Failure(bad_data) when it is kept in another number of copies.
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
