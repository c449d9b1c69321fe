#include "tools/cli/guardian.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <filesystem>
#include <optional>

namespace mcds {

namespace {

struct Message {
  char what;
  long long value;
};

constexpr char watch_group = 'w';
constexpr char forget_group = 'f';
constexpr char deadline = 'd';
constexpr char dismiss = 'x';

// Nothing of ours may stay open in it (a reader of our output waits for the end), and no signal of our
// terminal may reach it.
void detach(int pipe) {
  setsid();
  prctl(PR_SET_NAME, "mcds-guardian");
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_IGN);
  dup2(pipe, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, UINT_MAX, 0);
  [[maybe_unused]] const int moved = chdir("/");
}

class Duty {
 public:
  explicit Duty(const std::string& directory) : directory_(directory) {}

  // Until dismissed, or until the pipe has no writer.
  void serve() {
    while (true) {
      pollfd poll_pipe{STDIN_FILENO, POLLIN, 0};
      const int ready = poll(&poll_pipe, 1, patience());
      if (deadline_ && SystemClock().steady() >= *deadline_) {
        deadline_.reset();
        kill_groups();
      }
      if (ready <= 0) continue;
      Message message{};
      const ssize_t size = read(STDIN_FILENO, &message, sizeof message);
      if (size < 0 && errno == EINTR) continue;
      if (size != static_cast<ssize_t>(sizeof message)) break;
      if (message.what == dismiss) return;
      take(message);
    }
    kill_groups();
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }

 private:
  void take(const Message& message) {
    const auto group = static_cast<pid_t>(message.value);
    if (message.what == watch_group) groups_.push_back(group);
    if (message.what == forget_group) std::erase(groups_, group);
    if (message.what == deadline) deadline_ = SteadyTime(Duration(message.value));
  }

  void kill_groups() const {
    for (const pid_t group : groups_) ::kill(-group, SIGKILL);
  }

  // At most a second, so that a machine that slept is noticed soon after it wakes.
  int patience() const {
    if (!deadline_) return -1;
    const auto left = *deadline_ - SystemClock().steady();
    if (left <= Duration::zero()) return 0;
    return static_cast<int>(std::min<Duration>(left, std::chrono::seconds(1)) / std::chrono::milliseconds(1) +
                            1);
  }

  const std::string& directory_;
  std::vector<pid_t> groups_;
  std::optional<SteadyTime> deadline_;
};

}  // namespace

int execute(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  restore_signals();
  execvp(pointers.front(), pointers.data());
  return errno;
}

Guardian::Guardian(const std::string& directory) {
  Pipe orders = Pipe::make();
  pid_ = fork_process();
  if (pid_ == 0) {
    detach(orders.read_end);
    Duty(directory).serve();
    _exit(0);
  }
  pipe_ = std::move(orders.write_end);
  fcntl(pipe_, F_SETFL, O_NONBLOCK);
}

Guardian::~Guardian() {
  tell(dismiss, 0);
  pipe_.reset();
  reap(pid_);
}

void Guardian::tell(char what, long long value) const {
  Message message{};
  message.what = what;
  message.value = value;
  // A guardian that was killed matters only if we are killed too.
  static_cast<void>(!write(pipe_, &message, sizeof message));
}

void Guardian::watch(pid_t group) const {
  tell(watch_group, group);
}
void Guardian::forget(pid_t group) const {
  tell(forget_group, group);
}
void Guardian::set_deadline(SteadyTime when) const {
  tell(deadline, when.time_since_epoch().count());
}

}  // namespace mcds
