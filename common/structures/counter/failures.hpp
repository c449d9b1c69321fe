// What the counter's verbs refuse, how they read replies, and what becomes of one that is no answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/errors.hpp"
#include "common/base/result.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// Throws InvalidInput for values that some servers misread.
void check_counter_value(std::uint64_t value, std::string_view what);
std::uint64_t checked_sum(std::uint64_t a, std::uint64_t b, std::string_view what);

inline std::string in_quotes(const std::string& name) {
  return '\'' + name + '\'';
}

// Where it was to be exact.
inline InvalidInput exists_and_is_plain(const std::string& name) {
  return InvalidInput("the counter " + in_quotes(name) +
                      " exists and is plain; omit --exact, or remove it first");
}

// Throws what `reply`, which is no answer, means for a change of a counter.
[[noreturn]] void fail_counter(const Context& context, const std::string& name, const Reply& reply);

inline bool is_stored(const Reply& reply) {
  return reply.outcome == Outcome::stored;
}
inline bool is_hit(const Reply& reply) {
  return reply.outcome == Outcome::hit;
}
inline bool is_miss(const Reply& reply) {
  return reply.outcome == Outcome::miss || reply.outcome == Outcome::not_found;
}

inline Exptime expiry_in(const Context& context, std::optional<Duration> ttl) {
  return ttl ? Exptime::after(*ttl, context.clock.wall()) : Exptime::never();
}

// Runs `work` and keeps its failure, if any, in the answer.
template <typename Answer, typename Work>
void keep_failure(Answer& answer, const Work& work) {
  const Result<void> done = attempt(work);
  if (done.failure()) answer.failure = done.failure();
}

}  // namespace mcds
