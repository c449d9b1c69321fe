#include "tools/cli/screen.hpp"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "common/base/descriptors.hpp"
#include "tools/cli/cell_words.hpp"

namespace mcds {

namespace {

constexpr std::string_view other_page = "\033[?1049h\033[?25l\033[H\033[2J",
                           first_page = "\033[?25h\033[?1049l";

// What stands for the one screen while there is one, for signals.
struct Shown {
  bool keys = false;  // whether they are read
  termios before{}, during{};
  sigset_t handled{};
};
Shown shown;

// A terminal that does not take it is no longer there.
void put(std::string_view bytes) {
  static_cast<void>(write_all(STDOUT_FILENO, bytes));
}

void enter() {
  if (shown.keys) tcsetattr(STDIN_FILENO, TCSANOW, &shown.during);
  put(other_page);
}

void leave() {
  put(first_page);
  if (shown.keys) tcsetattr(STDIN_FILENO, TCSANOW, &shown.before);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER | (signal == SIGCONT ? 0 : static_cast<int>(SA_RESETHAND));
  sigaction(signal, &action, nullptr);
}

// Ends or stops as if the signal had never been handled, but for the terminal. All that it calls may be
// called in a handler.
void on_signal(int signal) {
  const int error = errno;
  if (signal != SIGCONT) {
    leave();
    raise(signal);
    handle(signal, on_signal);  // it was only a stop
  }
  const pid_t front = tcgetpgrp(STDOUT_FILENO);
  if (front < 0 || front == getpgrp()) enter();
  errno = error;
}

// All that end or stop a program, and can be handled, but for those that are waited for or left to others.
void handle_signals() {
  sigemptyset(&shown.handled);
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    const bool passes = signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGTTIN ||
                        signal == SIGTTOU || sigismember(&blocked, signal) == 1;
    if (passes || sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    handle(signal, on_signal);
    sigaddset(&shown.handled, signal);
  }
}

}  // namespace

ScreenSize screen_size() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {window.ws_col, window.ws_row};
}

Screen::Screen() {
  if (isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
      tcgetattr(STDIN_FILENO, &shown.before) == 0) {
    shown.keys = true;
    shown.during = shown.before;
    shown.during.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  }
  handle_signals();
  enter();
}

Screen::~Screen() {
  leave();
  put(last_);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&shown.handled, signal) == 1) std::signal(signal, SIG_DFL);
  }
  shown = {};
}

int Screen::keys() const {
  return shown.keys ? STDIN_FILENO : -1;
}

std::string Screen::frame(const std::vector<std::string>& lines, const ScreenSize& size) {
  std::string text = "\033[H";
  const std::size_t shown = std::min(lines.size(), size.height);
  for (std::size_t i = 0; i < shown; ++i)
    text += "\033[2K" + shortened(lines[i], size.width, false) + (i + 1 < shown ? "\r\n" : "");
  // Below the last line; what stands in its last column stays.
  return text + (shown < size.height ? "\r\n\033[J" : "");
}

void Screen::show(const std::vector<std::string>& lines) {
  const ScreenSize size = screen_size();
  put(frame(lines, size));
  last_.clear();
  for (const std::string& line : lines) last_ += shortened(line, size.width, false) + '\n';
}

}  // namespace mcds
