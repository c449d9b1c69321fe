#include "common/structures/move/tally.hpp"

#include <utility>

namespace mcds::moving {

void Tally::left(const Item& item, const char* reason, std::string message) {
  ++pair_of(item).left;
  watch_.left({item.record.key, item.record.from, item.record.to, reason, std::move(message)});
}

void Tally::left(const Item& item, const Failure& failure) {
  const char* reason = failure.code() == ErrorCode::refused           ? "refused"
                       : failure.code() == ErrorCode::bad_data        ? "damaged"
                       : failure.code() == ErrorCode::try_again       ? "busy"
                       : failure.code() == ErrorCode::unknown_outcome ? "unknown"
                                                                      : "unavailable";
  const std::string at = failure.server().empty() ? "" : failure.server() + ": ";
  left(item, reason, at + failure.what());
}

void Tally::done(std::size_t count) {
  report_.done += count;
  watch_.progress(report_.done);
}

Failure failure_of(const Cluster& cluster, const Reply& reply) {
  const auto expected = attempt([&] { expect(cluster, reply); });
  return expected.failure().value_or(Failure(ErrorCode::internal, "a reply that did not fail"));
}

}  // namespace mcds::moving
