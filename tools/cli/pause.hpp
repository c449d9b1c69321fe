// Waits between looks at something that goes on, until the user or the reader of our output has had enough.
#pragma once

#include <csignal>

#include "common/base/clock.hpp"
#include "common/base/descriptors.hpp"

namespace mcds {

class Pause {
 public:
  // From now on INT, TERM and HUP end a wait instead of the program. `deadline`: the command's, if it may
  // pass while it waits.
  explicit Pause(SteadyTime deadline = SteadyTime::max());

  // False: it is time to end. Throws ClosedPipe, and Failure(try_again) at the deadline.
  bool wait(Duration duration);
  // From now on `q` at this terminal ends a wait, too; -1: none.
  void watch_keys(int terminal) { terminal_ = terminal; }

 private:
  sigset_t signals_{};
  bool has_quit() const;

  SteadyTime deadline_;
  Descriptor descriptor_;
  int terminal_ = -1;
};

}  // namespace mcds
