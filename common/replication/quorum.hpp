// The room of what is kept in several copies. Which to use when is said at the end of this file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "common/base/errors.hpp"

namespace mcds {

// How many of so many copies must have a change: one of two, most of three and more.
std::size_t quorum(std::size_t copies);

// What is known of one copy.
struct CopyState {
  std::optional<Failure> failure = {};  // it did not answer, or perhaps has the change
  // Without a failure. Reading: it has something; changing, answering: it has what is to be there, or
  // something newer.
  bool has = true;
};

enum class Part {
  reading,    // before anything is written, or answered
  changing,   // after the change was sent
  answering,  // after what was read was written back
};

// Why an operation ends here, one state per copy; nullopt: it goes on after reading, and is done after the
// others.
std::optional<Failure> failure_of(Part part, std::span<const CopyState> copies);

// The same of what was read of each copy: its `failure`, and what `has` says of one without.
template <typename Copies, typename Has>
std::optional<Failure> failure_of(Part part, const Copies& copies, const Has& has) {
  const auto failure_in = [](const auto& copy) -> const std::optional<Failure>& {
    if constexpr (requires { copy.failure(); })
      return copy.failure();
    else
      return copy.failure;
  };
  const auto is_well = [&](const auto& copy) {
    return !failure_in(copy) && (part == Part::reading || has(copy));
  };
  // As it nearly always is.
  if (copies.size() != 0 && std::all_of(copies.begin(), copies.end(), is_well)) return std::nullopt;
  std::vector<CopyState> states;
  for (const auto& copy : copies)
    states.push_back({.failure = failure_in(copy), .has = !failure_in(copy) && has(copy)});
  return failure_of(part, std::span<const CopyState>(states));
}

// The same where every copy that answered has what it is asked for.
std::optional<Failure> failure_of(Part part, std::span<const std::optional<Failure>> copies);

// Whether an answer rests on one copy of two, each with its `failure`.
template <typename Copies>
bool is_degraded(const Copies& copies) {
  return copies.size() == 2 && copies[0].failure.has_value() != copies[1].failure.has_value();
}

}  // namespace mcds

//   replicas.hpp      a structure's code, once per copy, side by side; and the one loop that reads, merges
//                     and repairs; and what runs it, so that all requests leave as one batch
//   copies.hpp        one request to all copies of one key, whose replies the caller merges
//   versions.hpp      a value with a version: an element of a table or hash
//   copy_count_guard.hpp   prevents two structures of one name in different numbers of copies
//   quorum.hpp        when a change is done, and what a reader may answer:
//
// When a change to something that is kept in N copies is done, and what a reader of them may answer. Every
// structure asks here.
//
//   N           a change is done when        otherwise                      a reader answers
//   1           its server has it            69 or 80                       what the server has
//   2           one copy has it; the other   69 or 80                       the newest of what answers,
//               gets it when it answers                                     after making the others equal
//   3 and more  most copies have it          too few answered the reading   what most copies have, if
//                                            part: nothing is written, 69;  necessary after writing it back
//                                            it was sent, and most did      and seeing that it was written;
//                                            not confirm it: 80             else 69
// Invariants (three and more copies, of which one at a time is lost, cut off or slow)
//   Two majorities share a copy: who reads most copies meets every change that was acknowledged before, and
//   what one reader has answered no later reader misses.
//   A server that restarted empty must not vote: a copy that has nothing where another has something counts
//   as not answering, unless every copy answered. So a change that two copies got, of which one has restarted
//   since and the other is slow, is not undone by the third, which missed it. A copy counts again as soon as
//   it has been written.
// What it cannot know
//   Copies that all have nothing, of which one forgot, while the only other that had it does not answer: that
//   is two servers at once. With two copies, clients that reach only different servers may undo each other.
//   Appends made at once, in which order most copies have them: array.hpp says how far that is decided.
