#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tools/cli/child.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

Pause::Pause(SteadyTime deadline) : deadline_(deadline) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
  descriptor_ = Descriptor(signalfd(-1, &signals_, SFD_CLOEXEC));
  if (descriptor_ < 0) throw Failure(ErrorCode::system, "cannot wait for signals");
}

// Returns false if a key ends the wait. A terminal that is gone ends it, too.
bool Pause::take_keys() const {
  char keys[64];
  const ssize_t size = read(terminal_, keys, sizeof keys);
  return size > 0 && std::all_of(keys, keys + size, on_key_);
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
    if (!take_keys()) return false;
  }
}

namespace {

constexpr std::array passed_on{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                               SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

}  // namespace

HeldSignals::HeldSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGCHLD);
  for (const int signal : passed_on) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
  }
  // SIGTTOU would stop a process in the background that changes the terminal's foreground.
  sigset_t blocked = signals_;
  sigaddset(&blocked, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

HeldSignals::~HeldSignals() {
  if (kept_) return;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// Waits for a blocked signal. Of the signals that do not end a program, only the stop needs an action here.
void HeldSignals::wait(Duration duration) const {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const timespec longest{whole.count(), (duration - whole).count()};
  siginfo_t info{};
  const int signal = sigtimedwait(&signals_, &info, &longest);
  if (signal == SIGTSTP) std::raise(SIGSTOP);
  if (signal < 0 || signal == SIGTSTP || signal == SIGCONT || signal == SIGWINCH || signal == SIGCHLD) return;
  throw Interrupted{signal};
}

void InterruptibleClock::sleep_for(Duration duration) {
  const SteadyTime until = clock_.steady() + duration;
  for (Duration left = duration; left > Duration::zero(); left = until - clock_.steady()) held_.wait(left);
  held_.check();
  clock_.sleep_for(Duration::zero());  // its own deadline
}

void die_of(const Interrupted& interruption) {
  std::signal(interruption.signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, interruption.signal);
  std::raise(interruption.signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  std::abort();
}

}  // namespace mcds
