#include "common/structures/lock/polling.hpp"

#include <algorithm>

#include "common/base/errors.hpp"

namespace mcds {

namespace {

constexpr Duration first_poll = std::chrono::milliseconds(50);
constexpr Duration slowest_poll = std::chrono::seconds(1);

}  // namespace

bool may_pass(const Failure& failure) {
  const ErrorCode code = failure.code();
  return code == ErrorCode::unavailable || code == ErrorCode::refused || code == ErrorCode::try_again ||
         code == ErrorCode::unknown_outcome;
}

Lock::Answer poll(const Context& context, Duration wait,
                  const std::function<Lock::Answer(bool first)>& attempt) {
  const SteadyTime started = context.clock.steady();
  const auto waited = [&] { return context.clock.steady() - started; };
  Duration pause = first_poll;
  for (bool first = true;; first = false) {
    try {
      Lock::Answer answer = attempt(first);
      if (answer.lease || waited() >= wait) return answer;
    } catch (const Failure& failure) {
      if (!may_pass(failure) || waited() >= wait) throw;
    }
    const auto jittered = Duration(
        static_cast<Duration::rep>(static_cast<double>(pause.count()) * (0.5 + context.random.unit())));
    const Duration left = wait == Duration::max() ? jittered : wait - waited();
    const Duration nap = std::min(jittered, left);
    context.clock.sleep_for(nap);
    pause = std::min(pause + pause / 2, slowest_poll);
  }
}

}  // namespace mcds
