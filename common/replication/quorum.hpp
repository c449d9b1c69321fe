// Decides when a change to N copies is done, and what a reader may answer. A table is at the end of this
// file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "common/base/errors.hpp"

namespace mcds {

// Returns how many copies must have a change: one of two, a majority of three or more.
std::size_t quorum(std::size_t copies);

// The state of one copy.
struct CopyState {
  std::optional<Failure> failure = {};  // it did not answer, or its write failed or may have been applied
  // Valid without a failure. In the reading part: the copy is not empty. In the other parts: it has the value
  // that was written, or a newer one.
  bool has = true;
};

enum class QuorumPhase {
  reading,    // before anything is written or answered
  writing,    // after the change was sent
  answering,  // after the value that was read was written back
};

// Returns the failure that ends an operation, given one state per copy, or nullopt if enough succeeded.
std::optional<Failure> failure_of(QuorumPhase part, std::span<const CopyState> copies);

// Does the same for any type of copy that has a `failure`; `has` is called for copies without one.
template <typename Copies, typename Has>
std::optional<Failure> failure_of(QuorumPhase part, const Copies& copies, const Has& has) {
  const auto failure_in = [](const auto& copy) -> const std::optional<Failure>& {
    if constexpr (requires { copy.failure(); })
      return copy.failure();
    else
      return copy.failure;
  };
  const auto is_well = [&](const auto& copy) {
    return !failure_in(copy) && (part == QuorumPhase::reading || has(copy));
  };
  // This is by far the most frequent case.
  if (copies.size() != 0 && std::all_of(copies.begin(), copies.end(), is_well)) return std::nullopt;
  std::vector<CopyState> states;
  for (const auto& copy : copies)
    states.push_back({.failure = failure_in(copy), .has = !failure_in(copy) && has(copy)});
  return failure_of(part, std::span<const CopyState>(states));
}

// Does the same if every copy that answered has what is required.
std::optional<Failure> failure_of(QuorumPhase part, std::span<const std::optional<Failure>> copies);

// Returns true if an answer comes from only one of two copies. Each copy has a `failure`.
template <typename Copies>
bool is_degraded(const Copies& copies) {
  return copies.size() == 2 && copies[0].failure.has_value() != copies[1].failure.has_value();
}

}  // namespace mcds

//   replicas.hpp           runs a structure's code once per copy, concurrently, as common batches
//   copies.hpp             sends one request to all copies of a key; the caller merges the replies
//   versions.hpp           a value with a version, for an element of a table or hash
//   copy_count_guard.hpp   prevents two structures of the same name with different copy counts
//   quorum.hpp             decides when a change is done and what a reader may answer; all structures use it
//
//   N           a change is done when        otherwise                    a reader answers
//   1           its server has it            69 or 80                     what the server has
//   2           one copy has it; the other   69 or 80                     the newest value that answered,
//               is repaired later                                         after repairing the other copy
//   3 and more  a majority has it            69, with nothing written,    what a majority has, after writing
//                                            if too few can be read; 80   it back if necessary and confirming
//                                            if no majority confirms it   the write; else 69
//                                            majority confirmed it
// Invariants (three and more copies, of which one at a time is lost, cut off or slow)
//   Two majorities share a copy. A reader of a majority sees every change that was acknowledged before, and
//   what one reader has answered, no later reader misses.
//   A server that restarted empty must not vote: a copy that is empty while another is not counts as not
//   answering, unless every copy answered. Suppose two copies got a change, one of them restarted and the
//   other is slow: the third copy, which missed the change, cannot undo it. An empty copy counts again as
//   soon as it has been written.
// Limits
//   If all copies that answer are empty, one of them because it lost its data, and the only other copy with
//   the data does not answer, the data is not seen. That is a failure of two servers at once.
//   With two copies, clients that reach only different servers may undo each other's changes.
//   Concurrent appends may stand in a different order in each copy.
