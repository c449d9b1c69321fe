// Asking again and again until there is an answer or a wait is over. The pauses grow, and have jitter, so
// that those who wait together do not go on asking together.
#pragma once

#include <algorithm>

#include "common/primitives/context.hpp"

namespace mcds {

class Polling {
 public:
  // wait: Duration::max() for ever.
  Polling(const Context& context, Duration wait, Duration first, Duration slowest)
      : context_(context), wait_(wait), pause_(first), slowest_(slowest) {}

  bool over() const { return waited() >= wait_; }
  // At most until the wait is over.
  void pause() {
    const double jittered = static_cast<double>(pause_.count()) * (0.5 + context_.random.unit());
    const Duration left = std::max(wait_ - waited(), Duration::zero());
    const Duration pause = std::min(left, Duration(static_cast<Duration::rep>(jittered)));
    context_.clock.sleep_for(pause);
    pause_ = std::min(pause_ + pause_ / 2, slowest_);
  }

 private:
  Duration waited() const { return context_.clock.steady() - started_; }

  const Context& context_;
  Duration wait_, pause_, slowest_;
  SteadyTime started_ = context_.clock.steady();
};

}  // namespace mcds
