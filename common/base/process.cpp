#include "common/base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "common/base/errors.hpp"

namespace mcds {

namespace {

struct SettledSignal {
  int number;
  void (*ours)(int);
  void (*before)(int) = SIG_DFL;
};
std::array settled_signals{SettledSignal{SIGPIPE, SIG_IGN}, SettledSignal{SIGXFSZ, SIG_IGN},
                           SettledSignal{SIGCHLD, SIG_DFL}};

}  // namespace

void settle_signals() {
  for (SettledSignal& one : settled_signals) one.before = std::signal(one.number, one.ours);
}

void restore_signals() {
  for (const SettledSignal& one : settled_signals) std::signal(one.number, one.before);
}

Pipe Pipe::make(int flags) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | flags) != 0)
    throw Failure(ErrorCode::system, "cannot make a pipe; too many open files?");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

pid_t fork_process() {
  const pid_t pid = fork();
  if (pid < 0) throw Failure(ErrorCode::system, "cannot fork; too many processes?");
  return pid;
}

int reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void end_process(pid_t pid) {
  kill(pid, SIGKILL);
  reap(pid);
}

void work_beside(pid_t parent, const char* name) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  setsid();
  prctl(PR_SET_NAME, name);
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, descriptor);
}

namespace {

std::atomic<rlim_t> soft_at_first = 0;  // 0: never raised

}  // namespace

bool raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  soft_at_first = before;
  return true;
}

void restore_descriptor_limit() {
  rlimit limit{};
  if (soft_at_first == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = soft_at_first;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

unsigned long descriptor_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void Descriptor::reset() {
  if (number_ > STDIN_FILENO) close(number_);
  number_ = -1;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(descriptor, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      pollfd until_it_takes_more{descriptor, POLLOUT, 0};
      poll(&until_it_takes_more, 1, -1);
      continue;
    }
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace mcds
