#include "tools/cli/pause.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/errors.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

Pause::Pause(SteadyTime deadline) : deadline_(deadline) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
  descriptor_ = Descriptor(signalfd(-1, &signals_, SFD_CLOEXEC));
  if (descriptor_ < 0) throw Failure(ErrorCode::system, "cannot wait for signals");
}

// Other keys mean nothing. A terminal that is gone has quit.
bool Pause::has_quit() const {
  char keys[64];
  const ssize_t size = read(terminal_, keys, sizeof keys);
  return size <= 0 || std::any_of(keys, keys + size, [](char key) { return key == 'q' || key == 'Q'; });
}

bool Pause::wait(Duration duration) {
  const SystemClock clock;
  const SteadyTime end = std::min(clock.steady() + duration, deadline_);
  for (;;) {
    pollfd descriptors[] = {{descriptor_, POLLIN, 0}, {STDOUT_FILENO, 0, 0}, {terminal_, POLLIN, 0}};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(end - clock.steady()).count();
    if (poll(descriptors, 3, static_cast<int>(std::clamp<std::int64_t>(ms, 0, 1 << 30))) <= 0) {
      if (clock.steady() < deadline_) return true;
      throw Failure(ErrorCode::try_again, "not finished: the deadline has passed");
    }
    if (descriptors[0].revents != 0) return false;
    if (descriptors[1].revents != 0) throw ClosedPipe{};
    if (has_quit()) return false;
  }
}

}  // namespace mcds
