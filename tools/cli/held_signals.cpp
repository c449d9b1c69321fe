#include <array>

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
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace mcds
