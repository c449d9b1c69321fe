#include "common/replication/quorum.hpp"

#include <doctest/doctest.h>

namespace mcds::quorum_test {

namespace {

const CopyState full{};
const CopyState empty{.has = false};
const CopyState silent{.failure = NotApplied(ErrorCode::unavailable, "no answer", "s1")};
const CopyState doubtful{.failure = UnknownOutcome("no reply", "s2")};
const CopyState refusing{.failure = NotApplied(ErrorCode::refused, "no memory", "s3")};

// 0: it goes on, or is done.
ErrorCode code_of(Part part, const std::vector<CopyState>& copies) {
  const auto failure = failure_of(part, copies);
  return failure ? failure->code() : ErrorCode{};
}
const ErrorCode fine{};

}  // namespace

TEST_CASE("quorum: one copy is what it says") {
  CHECK(code_of(Part::reading, {full}) == fine);
  CHECK(code_of(Part::reading, {empty}) == fine);
  CHECK(code_of(Part::reading, {silent}) == ErrorCode::unavailable);
  CHECK(code_of(Part::changing, {doubtful}) == ErrorCode::unknown_outcome);
  CHECK(code_of(Part::changing, {refusing}) == ErrorCode::refused);
}

TEST_CASE("quorum: of two copies one is enough, and an answer that rests on it is degraded") {
  CHECK(code_of(Part::reading, {full, silent}) == fine);
  CHECK(code_of(Part::reading, {empty, silent}) == fine);
  CHECK(code_of(Part::changing, {doubtful, full}) == fine);
  CHECK(code_of(Part::changing, {doubtful, refusing}) == ErrorCode::unknown_outcome);
  CHECK(code_of(Part::changing, {silent, refusing}) == ErrorCode::unavailable);
  CHECK(code_of(Part::answering, {full, silent}) == fine);
  using Copies = std::vector<CopyState>;
  CHECK(is_degraded(Copies{full, silent}));
  CHECK_FALSE(is_degraded(Copies{full, full}));
  CHECK_FALSE(is_degraded(Copies{full, full, silent}));
}

TEST_CASE(
    "quorum: with fewer than most of three copies nothing is written, and afterwards the outcome is "
    "unknown") {
  CHECK(code_of(Part::reading, {full, silent, silent}) == ErrorCode::unavailable);
  CHECK(code_of(Part::reading, {full, full, silent}) == fine);
  CHECK(code_of(Part::changing, {full, full, doubtful}) == fine);
  CHECK(code_of(Part::changing, {full, silent, silent}) == ErrorCode::unknown_outcome);
  CHECK(code_of(Part::changing, {silent, silent, silent}) == ErrorCode::unavailable);
  CHECK(code_of(Part::changing, {silent, silent, doubtful}) == ErrorCode::unknown_outcome);
  CHECK(code_of(Part::answering, {full, silent, doubtful}) == ErrorCode::unavailable);
  CHECK(code_of(Part::answering, {full, full, doubtful}) == fine);
}

TEST_CASE("quorum: a copy that has nothing where another has something votes only if all answer") {
  CHECK(code_of(Part::reading, {full, empty, silent}) == ErrorCode::unavailable);
  CHECK(code_of(Part::reading, {full, empty, empty}) == fine);
  CHECK(code_of(Part::reading, {empty, empty, silent}) == fine);
  CHECK(code_of(Part::reading, {full, full, empty, silent}) == ErrorCode::unavailable);
  CHECK(code_of(Part::reading, {full, full, full, empty, silent}) == fine);
  CHECK(code_of(Part::answering, {full, empty, empty}) == ErrorCode::try_again);
}

}  // namespace mcds::quorum_test
