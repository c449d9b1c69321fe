#include "common/replication/quorum.hpp"

#include "common/primitives/context.hpp"

namespace mcds {

namespace {

bool has(const CopyState& copy) {
  return !copy.failure && copy.has;
}

// Returns the failure that represents all copies: an unknown outcome if there is one, else the first failure.
const Failure* representative_failure(std::span<const CopyState> copies) {
  const Failure* reported = nullptr;
  for (const CopyState& copy : copies) {
    if (copy.failure && (reported == nullptr || copy.failure->code() == ErrorCode::unknown_outcome))
      reported = &*copy.failure;
  }
  return reported;
}

// Returns how many copies count as having answered. With three or more copies, an empty one does not count
// while another has a value, unless all answered.
std::size_t answered(std::span<const CopyState> copies) {
  const auto silent = [](const CopyState& copy) { return copy.failure.has_value(); };
  const auto answers = copies.size() - static_cast<std::size_t>(std::ranges::count_if(copies, silent));
  const auto full = static_cast<std::size_t>(std::ranges::count_if(copies, has));
  return answers == copies.size() || full == 0 || copies.size() < 3 ? answers : full;
}

std::string of_copies(std::size_t count, std::size_t copies) {
  return "only " + std::to_string(count) + " of " + std::to_string(copies) + " copies ";
}

}  // namespace

std::size_t quorum(std::size_t copies) {
  return copies < 3 ? 1 : copies / 2 + 1;
}

std::optional<Failure> failure_of(QuorumPhase part, std::span<const CopyState> copies) {
  const std::size_t count = part == QuorumPhase::reading
                                ? answered(copies)
                                : static_cast<std::size_t>(std::ranges::count_if(copies, has));
  if (count >= quorum(copies.size())) return std::nullopt;
  const Failure* reported = representative_failure(copies);
  // No copy failed if other clients kept changing them.
  const Failure again = Contention("other clients kept changing the item; try again");
  if (reported == nullptr) reported = &again;
  const bool unknown = reported->code() == ErrorCode::unknown_outcome;
  if (part == QuorumPhase::writing && count != 0) {
    return UnknownOutcome(of_copies(count, copies.size()) +
                              "could be written; try again when more servers answer: " + reported->what(),
                          reported->server());
  }
  if (part == QuorumPhase::writing) return *reported;
  // The outcome of a read is never unknown.
  const ErrorCode code = unknown ? ErrorCode::unavailable : reported->code();
  if (count == 0) return Failure(code, reported->what(), reported->server());
  const std::string what = part == QuorumPhase::reading
                               ? "could be read, and " + std::to_string(quorum(copies.size())) +
                                     " are needed; try again when more servers answer: "
                               : "have the value that was read; try again when more servers answer: ";
  return Failure(code, of_copies(count, copies.size()) + what + reported->what(), reported->server());
}

std::optional<Failure> failure_of(QuorumPhase part, std::span<const std::optional<Failure>> copies) {
  std::vector<CopyState> states;
  for (const auto& failure : copies) states.push_back({.failure = failure});
  return failure_of(part, states);
}

}  // namespace mcds
