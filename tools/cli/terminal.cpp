#include "tools/cli/terminal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mcds {

Terminal::Terminal() : descriptor_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

bool Terminal::is_ours() const {
  return descriptor_ >= 0 && tcgetpgrp(descriptor_) == getpgrp();
}

bool Terminal::lend_at_start() const {
  struct stat output {};
  const bool into_pipe =
      fstat(STDOUT_FILENO, &output) == 0 && (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode));
  return is_ours() && !into_pipe;
}

void Terminal::lend(pid_t group) {
  if (descriptor_ >= 0 && tcsetpgrp(descriptor_, group) == 0) lent_ = true;
}

void Terminal::take_back() {
  if (!lent_) return;
  lent_ = false;
  tcsetpgrp(descriptor_, getpgrp());
}

}  // namespace mcds
