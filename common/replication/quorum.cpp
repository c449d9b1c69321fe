#include "common/replication/quorum.hpp"

#include "common/primitives/context.hpp"

namespace mcds {

namespace {

bool has(const CopyState& copy) {
  return !copy.failure && copy.has;
}

// The failure that stands for all: of one that may have been applied, before that of one that was not.
const Failure* telling(std::span<const CopyState> copies) {
  const Failure* told = nullptr;
  for (const CopyState& copy : copies) {
    if (copy.failure && (told == nullptr || copy.failure->code() == ErrorCode::unknown_outcome))
      told = &*copy.failure;
  }
  return told;
}

// How many count as having answered.
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

std::optional<Failure> failure_of(Part part, std::span<const CopyState> copies) {
  const std::size_t count =
      part == Part::reading ? answered(copies) : static_cast<std::size_t>(std::ranges::count_if(copies, has));
  if (count >= quorum(copies.size())) return std::nullopt;
  const Failure* told = telling(copies);
  // Copies that other clients keep changing.
  const Failure again = Contention("other clients kept changing it; try again");
  if (told == nullptr) told = &again;
  const bool unknown = told->code() == ErrorCode::unknown_outcome;
  if (part == Part::changing && count != 0) {
    return UnknownOutcome(of_copies(count, copies.size()) +
                              "could be written; try again when more servers answer: " + told->what(),
                          told->server());
  }
  if (part == Part::changing) return *told;
  // What was only read is not in doubt.
  const ErrorCode code = unknown ? ErrorCode::unavailable : told->code();
  if (count == 0) return Failure(code, told->what(), told->server());
  const char* what = part == Part::reading ? "can be relied upon; try again when more servers answer: "
                                           : "have what was read; try again when more servers answer: ";
  return Failure(code, of_copies(count, copies.size()) + what + told->what(), told->server());
}

std::optional<Failure> failure_of(Part part, std::span<const std::optional<Failure>> copies) {
  std::vector<CopyState> states;
  for (const auto& failure : copies) states.push_back({.failure = failure});
  return failure_of(part, states);
}

}  // namespace mcds
