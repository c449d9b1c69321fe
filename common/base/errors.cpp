#include "common/base/errors.hpp"

namespace mcds {

void raise(const Failure& failure) {
  switch (failure.code()) {
    case ErrorCode::unavailable:
    case ErrorCode::refused:
    case ErrorCode::access_denied: throw NotApplied(failure.code(), failure.what(), failure.server());
    case ErrorCode::unknown_outcome: throw UnknownOutcome(failure.what(), failure.server());
    case ErrorCode::bad_data: throw CorruptData(failure.what(), failure.server());
    case ErrorCode::usage: throw InvalidInput(failure.what());
    case ErrorCode::try_again: throw Contention(failure.what(), failure.server());
    default: throw Failure(failure);
  }
}

}  // namespace mcds
