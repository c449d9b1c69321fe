#include "common/replication/quorum.hpp"

#include <doctest/doctest.h>

namespace mcds::quorum_test {

namespace {

const CopyState full{};
const CopyState empty{.has = false};
const CopyState silent{.failure = NotApplied(ErrorCode::unavailable, "no answer", "s1")};
const CopyState uncertain{.failure = UnknownOutcome("no reply", "s2")};
const CopyState refusing{.failure = NotApplied(ErrorCode::refused, "no memory", "s3")};

// Returns the failure's code, or 0 if the operation may continue or is done.
ErrorCode code_of(QuorumPhase part, const std::vector<CopyState>& copies) {
  const auto failure = failure_of(part, copies);
  return failure ? failure->code() : ErrorCode{};
}
const ErrorCode fine{};

}  // namespace

TEST_CASE("quorum: one copy is what it says") {
  CHECK(code_of(QuorumPhase::reading, {full}) == fine);
  CHECK(code_of(QuorumPhase::reading, {empty}) == fine);
  CHECK(code_of(QuorumPhase::reading, {silent}) == ErrorCode::unavailable);
  CHECK(code_of(QuorumPhase::writing, {uncertain}) == ErrorCode::unknown_outcome);
  CHECK(code_of(QuorumPhase::writing, {refusing}) == ErrorCode::refused);
}

TEST_CASE("quorum: of two copies one is enough, and an answer that rests on it is degraded") {
  CHECK(code_of(QuorumPhase::reading, {full, silent}) == fine);
  CHECK(code_of(QuorumPhase::reading, {empty, silent}) == fine);
  CHECK(code_of(QuorumPhase::writing, {uncertain, full}) == fine);
  CHECK(code_of(QuorumPhase::writing, {uncertain, refusing}) == ErrorCode::unknown_outcome);
  CHECK(code_of(QuorumPhase::writing, {silent, refusing}) == ErrorCode::unavailable);
  CHECK(code_of(QuorumPhase::answering, {full, silent}) == fine);
  using Copies = std::vector<CopyState>;
  CHECK(is_degraded(Copies{full, silent}));
  CHECK_FALSE(is_degraded(Copies{full, full}));
  CHECK_FALSE(is_degraded(Copies{full, full, silent}));
}

TEST_CASE(
    "quorum: with fewer than most of three copies nothing is written, and afterwards the outcome is "
    "unknown") {
  CHECK(code_of(QuorumPhase::reading, {full, silent, silent}) == ErrorCode::unavailable);
  CHECK(code_of(QuorumPhase::reading, {full, full, silent}) == fine);
  CHECK(code_of(QuorumPhase::writing, {full, full, uncertain}) == fine);
  CHECK(code_of(QuorumPhase::writing, {full, silent, silent}) == ErrorCode::unknown_outcome);
  CHECK(code_of(QuorumPhase::writing, {silent, silent, silent}) == ErrorCode::unavailable);
  CHECK(code_of(QuorumPhase::writing, {silent, silent, uncertain}) == ErrorCode::unknown_outcome);
  CHECK(code_of(QuorumPhase::answering, {full, silent, uncertain}) == ErrorCode::unavailable);
  CHECK(code_of(QuorumPhase::answering, {full, full, uncertain}) == fine);
}

TEST_CASE("quorum: a copy that has nothing where another has something votes only if all answer") {
  CHECK(code_of(QuorumPhase::reading, {full, empty, silent}) == ErrorCode::unavailable);
  CHECK(code_of(QuorumPhase::reading, {full, empty, empty}) == fine);
  CHECK(code_of(QuorumPhase::reading, {empty, empty, silent}) == fine);
  CHECK(code_of(QuorumPhase::reading, {full, full, empty, silent}) == ErrorCode::unavailable);
  CHECK(code_of(QuorumPhase::reading, {full, full, full, empty, silent}) == fine);
  CHECK(code_of(QuorumPhase::answering, {full, empty, empty}) == ErrorCode::try_again);
}

}  // namespace mcds::quorum_test
