#include "tools/cli/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/descriptors.hpp"
#include "tools/cli/cell_words.hpp"

namespace mcds {

namespace {

constexpr std::string_view other_page = "\033[?1049h\033[?25l\033[H\033[2J",
                           first_page = "\033[?25h\033[?1049l";

// A terminal that does not take it is no longer there.
void put(std::string_view bytes) {
  static_cast<void>(write_all(STDOUT_FILENO, bytes));
}

}  // namespace

ScreenSize screen_size() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {window.ws_col, window.ws_row};
}

Screen::Screen() {
  termios keys{};
  if (isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
      tcgetattr(STDIN_FILENO, &keys) == 0) {
    before_ = keys;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it would leave the terminal like this
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  put(other_page);
}

Screen::~Screen() {
  put(first_page);
  put(last_);
  if (before_) tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
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
