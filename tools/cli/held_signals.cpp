#include <array>
#include <cstdlib>

#include "tools/cli/child.hpp"

namespace mcds {

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
  // A process in the background would stop when it changes the terminal's foreground.
  sigset_t blocked = signals_;
  sigaddset(&blocked, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

HeldSignals::~HeldSignals() {
  if (kept_) return;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// Of the signals that do not end a program the stop alone means something to one that waits.
void HeldSignals::wait(Duration duration) const {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const timespec longest{whole.count(), (duration - whole).count()};
  siginfo_t info{};
  const int signal = sigtimedwait(&signals_, &info, &longest);
  if (signal == SIGTSTP) raise(SIGSTOP);
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
  raise(interruption.signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  std::abort();
}

}  // namespace mcds
