#include "tools/cli/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "tools/cli/session.hpp"

namespace mcds {

namespace {

constexpr std::array passed_on{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                               SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

constexpr Duration look_for_leftovers_every = std::chrono::milliseconds(10);

constexpr std::array ending{SIGINT, SIGTERM, SIGHUP};

bool ends_programs(int signal) {
  return std::ranges::find(ending, signal) != ending.end();
}

// Returns those of the signals that were not ignored when we were started.
sigset_t not_ignored(std::span<const int> signals) {
  sigset_t result;
  sigemptyset(&result);
  for (const int signal : signals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&result, signal);
  }
  return result;
}

[[noreturn]] void fail(const char* what) {
  throw refused_by_system(ErrorCode::system, std::string("cannot ") + what);
}

// Lends the foreground of the controlling terminal to a child's process group, and takes it back.
class Terminal {
 public:
  // Opens the controlling terminal, if there is one. Keep SIGTTOU blocked while using it.
  Terminal()
      : descriptor_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)),
        has_attributes_(tcgetattr(descriptor_, &attributes_) == 0) {}

  bool exists() const { return descriptor_ >= 0; }
  // Returns true if our process group has the foreground.
  bool is_ours() const { return descriptor_ >= 0 && tcgetpgrp(descriptor_) == getpgrp(); }
  // Returns true if the child should have it from the start: not if our output goes into a pipe, whose reader
  // is in our process group and may want the terminal (`… | less`). The child then gets it when it asks.
  bool lend_at_start() const { return is_ours() && !is_output_piped(); }
  void lend(pid_t group) {
    if (descriptor_ >= 0 && tcsetpgrp(descriptor_, group) == 0) lent_ = true;
  }
  // Takes the foreground back from the descendant that has it now, if it was lent. `restore` undoes what a
  // descendant that was ended, as an editor may be, did to the terminal's attributes.
  void take_back(bool restore = false) {
    if (!std::exchange(lent_, false)) return;
    tcsetpgrp(descriptor_, getpgrp());
    if (restore && has_attributes_) tcsetattr(descriptor_, TCSANOW, &attributes_);
  }

 private:
  Descriptor descriptor_;
  termios attributes_{};
  bool has_attributes_;
  bool lent_ = false;
};

class Run {
 public:
  Run(const ChildOptions& options, Clock& clock, const CleanupProcess& cleanup, const HeldSignals& held,
      ChildWatch* watch)
      : options_(options), clock_(clock), cleanup_(cleanup), held_(held), watch_(watch) {
    signal_fd_ = Descriptor(signalfd(-1, &held_.signals(), SFD_CLOEXEC | SFD_NONBLOCK));
    timer_ = Descriptor(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (signal_fd_ < 0 || timer_ < 0) fail("wait for signals");
    // Adopt orphans of the group so that we can reap them even if no other process would.
    if (!options_.may_go_on) prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  // Cleans up after an exception: no process may be left.
  ~Run() {
    if (pid_ <= 0 || exited_ || options_.may_go_on) return;
    kill_group(SIGKILL);
    reap(pid_);
    cleanup_.forget(pid_);
    terminal_.take_back(true);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  ChildResult run() {
    start();
    if (result_.reason != ChildResult::Reason::ended) return result_;
    if (watch_ != nullptr) watch_->started();
    while (!exited_ || !(options_.may_go_on || group_is_gone())) {
      wait();
      check_deadlines();
      take_signals();
      move_bytes();
      take_ended();
    }
    cleanup_.forget(pid_);
    terminal_.take_back();
    drain_output();
    return result_;
  }

 private:
  void start() {
    Pipe report = Pipe::make();
    if (options_.input) input_ = Pipe::make();
    if (options_.output != nullptr) {
      output_ = Pipe::make();
      error_output_ = Pipe::make();
    }
    const bool lend = terminal_.lend_at_start();
    if (options_.max_run) max_run_at_ = clock_.steady() + *options_.max_run;
    pid_ = fork_process();
    if (pid_ == 0) {
      setpgid(0, 0);
      if (lend) terminal_.lend(getpid());
      become_child(report.write_end);
    }
    setpgid(pid_, pid_);
    if (!options_.may_go_on) cleanup_.watch(pid_);
    if (lend) terminal_.lend(pid_);
    report.write_end.reset();
    input_.read_end.reset();
    output_.write_end.reset();
    error_output_.write_end.reset();
    if (options_.input) fcntl(input_.write_end, F_SETFL, O_NONBLOCK);
    read_exec_failure(report.read_end);
  }

  // Calls only what is safe after a fork. The environment's memory is ours, because there is one thread.
  [[noreturn]] void become_child(int report) {
    if (!options_.may_go_on) {
      cleanup_.watch(getpid());
      const pid_t parent = getppid();
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(127);
    }
    if (options_.input) dup2(input_.read_end, STDIN_FILENO);
    if (options_.output != nullptr) {
      dup2(output_.write_end, STDOUT_FILENO);
      dup2(error_output_.write_end, STDERR_FILENO);
    }
    for (const auto& [name, value] : options_.environment) setenv(name.c_str(), value.c_str(), 1);
    restore_descriptor_limit();
    pthread_sigmask(SIG_SETMASK, &held_.before(), nullptr);
    const int error = execute(options_.command);
    static_cast<void>(!write(report, &error, sizeof error));
    _exit(127);
  }

  void read_exec_failure(int report) {
    int error = 0;
    ssize_t size = 0;
    while ((size = read(report, &error, sizeof error)) < 0 && errno == EINTR) {
    }
    if (size != static_cast<ssize_t>(sizeof error)) return;
    reap(pid_);
    exited_ = true;
    cleanup_.forget(pid_);
    terminal_.take_back();
    result_.reason = error == ENOENT ? ChildResult::Reason::not_found : ChildResult::Reason::not_executable;
    result_.message = "cannot run " + options_.command.front() + ": " + std::strerror(error);
  }

  void wait() {
    const SteadyTime next = next_time();
    itimerspec spec{};
    if (next != SteadyTime::max()) {
      const auto since = std::max(next.time_since_epoch(), Duration(1));
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
      spec.it_value = {seconds.count(), (since - seconds).count()};
    }
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
    const bool feeding = input_.write_end >= 0;
    std::array<pollfd, 6> descriptors{{{signal_fd_, POLLIN, 0},
                                       {timer_, POLLIN, 0},
                                       {watch_ != nullptr ? watch_->descriptor() : -1, POLLIN, 0},
                                       {feeding ? input_.write_end : -1, POLLOUT, 0},
                                       output_to_wait_for(output_, 1),
                                       output_to_wait_for(error_output_, 2)}};
    poll(descriptors.data(), descriptors.size(), -1);
    std::uint64_t count = 0;
    if ((descriptors[1].revents & POLLIN) != 0) static_cast<void>(!read(timer_, &count, sizeof count));
    if ((descriptors[2].revents & POLLIN) != 0)
      static_cast<void>(!read(watch_->descriptor(), &count, sizeof count));
  }

  SteadyTime next_time() {
    if (exited_) return std::min(kill_at_, clock_.steady() + look_for_leftovers_every);
    if (stopping_) return killed_ ? SteadyTime::max() : kill_at_;
    return std::min(max_run_at_, watch_ != nullptr ? watch_->stop_at() : SteadyTime::max());
  }

  void check_deadlines() {
    const SteadyTime now = clock_.steady();
    if (!stopping_ && !exited_) {
      if (watch_ != nullptr && now >= watch_->stop_at()) {
        begin_stop(ChildResult::Reason::watch, watch_->kill_at());
      } else if (now >= max_run_at_) {
        begin_stop(ChildResult::Reason::max_run, SteadyTime::max());
      }
    }
    if (watch_ != nullptr && !killed_) kill_at_ = std::min(kill_at_, watch_->kill_at());
    if (!killed_ && (stopping_ || exited_) && now >= kill_at_) {
      killed_ = true;
      kill_at_ = SteadyTime::max();
      kill_group(SIGKILL);
    }
  }

  void begin_stop(ChildResult::Reason reason, SteadyTime kill_at) {
    stopping_ = true;
    result_.reason = reason;
    end_group(kill_at);
  }

  // Gives the group the grace, but no longer than until `kill_at`.
  void end_group(SteadyTime kill_at) {
    kill_at_ = std::min(clock_.steady() + options_.grace, kill_at);
    kill_group(SIGTERM);
    kill_group(SIGCONT);
  }

  void kill_group(int signal) const { ::kill(-pid_, signal); }
  void take_signals() {
    signalfd_siginfo info{};
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      if (ends_programs(signal)) result_.received = signal;
      if (signal == SIGCONT && terminal_.is_ours() && terminal_.lend_at_start()) terminal_.lend(pid_);
      kill_group(signal);
    }
  }

  void take_ended() {
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = waitpid(-pid_, &status, WNOHANG | WUNTRACED)) > 0) {
      if (reaped == pid_) take_status(status);
    }
    // The child may have left its group, or a library or a debugger may have reaped it.
    if (exited_) return;
    reaped = waitpid(pid_, &status, WNOHANG | WUNTRACED);
    if (reaped == 0) return;
    if (reaped == pid_) return take_status(status);
    if (!stopping_) {
      result_.reason = ChildResult::Reason::unknown;
      result_.message = "the command has ended with an unknown status: another process took the status";
    }
    end();
  }

  void take_status(int status) {
    if (WIFSTOPPED(status)) return child_stopped(WSTOPSIG(status));
    if (WIFSIGNALED(status))
      result_.signal = WTERMSIG(status);
    else
      result_.code = WEXITSTATUS(status);
    end();
  }

  void end() {
    // While this process was stopped, the child's time may have passed and the cleanup process may have ended
    // it.
    check_deadlines();
    exited_ = true;
    terminal_.take_back(result_.signal != 0 || result_.reason != ChildResult::Reason::ended);
    if (!options_.may_go_on && !group_is_gone() && !killed_) end_group(kill_at_);
  }

  // Handles a stop of the child. Without a terminal nothing waits for us to stop, and the lease must
  // continue.
  void child_stopped(int signal) {
    if (!terminal_.exists() || stopping_) return;
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (wants_terminal && terminal_.is_ours()) {
      terminal_.lend(pid_);
      return kill_group(SIGCONT);
    }
    terminal_.take_back();
    if (!stop_ourselves(signal)) {
      if (terminal_.lend_at_start()) terminal_.lend(pid_);
      kill_group(SIGCONT);
    }
  }

  // Stops our whole process group, as the terminal would have done: a shell waits until all of a job is
  // stopped. Returns false if the system did not stop us, because no process could continue us.
  bool stop_ourselves(int signal) {
    if (signal == SIGSTOP) return ::raise(SIGSTOP) == 0;
    sigset_t one;
    sigset_t blocked;
    sigset_t pending;
    sigemptyset(&one);
    sigaddset(&one, signal);
    ::kill(0, signal);
    pthread_sigmask(SIG_UNBLOCK, &one, &blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
    sigpending(&pending);
    return sigismember(&pending, SIGCONT) == 1;
  }

  bool group_is_gone() { return ::kill(-pid_, 0) != 0 && errno == ESRCH; }

  // Returns the descriptor to poll: the child's pipe, or the one that blocks the pipe's bytes.
  pollfd output_to_wait_for(const Pipe& pipe, int stream) const {
    const int blocked = options_.output != nullptr ? options_.output->waits_for(stream) : -1;
    if (blocked >= 0) return {blocked, POLLOUT, 0};
    return {pipe.read_end, POLLIN, 0};
  }

  void move_bytes() {
    if (input_.write_end >= 0) feed();
    for (auto [pipe, stream] : {std::pair(&output_, 1), std::pair(&error_output_, 2)}) {
      pollfd ready = output_to_wait_for(*pipe, stream);
      if (ready.fd < 0 || poll(&ready, 1, 0) <= 0) continue;
      if (ready.events == POLLOUT)
        options_.output->proceed(stream);
      else
        read_from(pipe->read_end, stream);
    }
  }

  void feed() {
    const std::string_view rest = std::string_view(*options_.input).substr(fed_);
    const ssize_t size = rest.empty() ? 0 : write(input_.write_end, rest.data(), rest.size());
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // A child that closed its input does not want the rest.
    if (size <= 0) return input_.write_end.reset();
    fed_ += static_cast<std::size_t>(size);
    if (fed_ == options_.input->size()) input_.write_end.reset();
  }

  bool read_from(Descriptor& pipe, int stream) {
    std::array<char, 65536> buffer;
    const ssize_t size = read(pipe, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) return true;
    if (size <= 0) {
      pipe.reset();
      return false;
    }
    const bool wanted = options_.output->take(stream, {buffer.data(), static_cast<std::size_t>(size)});
    if (!wanted) pipe.reset();
    return wanted;
  }

  // Reads what the group wrote before it ended, but not what a process that left the group may still write.
  void drain_output() {
    for (auto [pipe, stream] : {std::pair(&output_, 1), std::pair(&error_output_, 2)}) {
      while (true) {
        pollfd ready{pipe->read_end, POLLIN, 0};
        if (ready.fd < 0 || poll(&ready, 1, 0) <= 0 || !read_from(pipe->read_end, stream)) break;
      }
    }
  }

  const ChildOptions& options_;
  Clock& clock_;
  const CleanupProcess& cleanup_;
  const HeldSignals& held_;
  ChildWatch* watch_;
  Terminal terminal_;
  Descriptor signal_fd_, timer_;
  Pipe input_, output_, error_output_;
  std::size_t fed_ = 0;
  pid_t pid_ = -1;
  bool exited_ = false;
  bool stopping_ = false;
  bool killed_ = false;
  SteadyTime max_run_at_ = SteadyTime::max();
  SteadyTime kill_at_ = SteadyTime::max();
  ChildResult result_;
};

}  // namespace

int ChildResult::exit_code() const {
  if (reason == Reason::not_found) return 127;
  if (reason == Reason::not_executable) return 126;
  if (reason == Reason::unknown) return static_cast<int>(ErrorCode::system);
  if (reason == Reason::watch) return static_cast<int>(ErrorCode::lock_lost);
  if (reason == Reason::max_run) return static_cast<int>(ExitStatus::max_run);
  return signal != 0 ? 128 + signal : code;
}

int ChildResult::ending_signal() const {
  return received == 0 && ends_programs(signal) ? signal : received;
}

ChildResult run_child(const ChildOptions& options, Clock& clock, const CleanupProcess& cleanup,
                      const HeldSignals& held, ChildWatch* watch) {
  return Run(options, clock, cleanup, held, watch).run();
}

namespace {

// Detaches the cleanup process. None of our descriptors may stay open in it, because a reader of our output
// waits for their end, and no signal of our terminal may reach it.
void detach(int pipe) {
  setsid();
  prctl(PR_SET_NAME, "mcds-guardian");
  // Ignoring SIGCHLD lets the kernel reap orphans, which this process gets if it is the first of a namespace.
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGCHLD})
    std::signal(signal, SIG_IGN);
  dup2(pipe, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, UINT_MAX, 0);
  [[maybe_unused]] const int moved = chdir("/");
}

// Returns the poll timeout, at most a second: a machine that wakes from sleep must notice its deadline.
int patience_until(SteadyTime when) {
  if (when == SteadyTime::max()) return -1;
  const auto left = when - SystemClock().steady();
  if (left <= Duration::zero()) return 0;
  return static_cast<int>(std::min<Duration>(left, std::chrono::seconds(1)) / std::chrono::milliseconds(1) +
                          1);
}

}  // namespace

// Obeys until it is dismissed or the pipe has no writer.
void CleanupProcess::serve(const std::string& directory) {
  std::vector<pid_t> groups;
  SteadyTime kill_at = SteadyTime::max();
  const auto kill_groups = [&] {
    for (const pid_t group : groups) ::kill(-group, SIGKILL);
  };
  while (true) {
    pollfd poll_pipe{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&poll_pipe, 1, patience_until(kill_at));
    if (SystemClock().steady() >= kill_at) {
      kill_at = SteadyTime::max();
      kill_groups();
    }
    if (ready <= 0) continue;
    Order order{};
    const ssize_t size = read(STDIN_FILENO, &order, sizeof order);
    if (size < 0 && errno == EINTR) continue;
    if (size != static_cast<ssize_t>(sizeof order)) break;
    if (order.what == Order::dismiss) return;
    const auto group = static_cast<pid_t>(order.value);
    if (order.what == Order::watch) groups.push_back(group);
    if (order.what == Order::forget) std::erase(groups, group);
    if (order.what == Order::deadline) kill_at = SteadyTime(Duration(order.value));
  }
  kill_groups();
  std::error_code ignored;
  if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
}

int execute(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  restore_signals();
  execvp(pointers.front(), pointers.data());
  return errno;
}

CleanupProcess::CleanupProcess(const std::string& directory) {
  Pipe orders = Pipe::make();
  pid_ = fork_process();
  if (pid_ == 0) {
    detach(orders.read_end);
    serve(directory);
    _exit(0);
  }
  pipe_ = std::move(orders.write_end);
  fcntl(pipe_, F_SETFL, O_NONBLOCK);
}

CleanupProcess::~CleanupProcess() {
  send({Order::dismiss, 0});
  pipe_.reset();
  reap(pid_);
}

void CleanupProcess::send(const Order& order) const {
  // A cleanup process that was killed only matters if we are killed too.
  static_cast<void>(!write(pipe_, &order, sizeof order));
}

Pause::Pause(Session& session, Signals signals) : session_(session) {
  if (signals == Signals::end_program) return;
  const sigset_t heeded = not_ignored(ending);
  sigprocmask(SIG_BLOCK, &heeded, nullptr);
  signals_ = session.output().heed(Descriptor(signalfd(-1, &heeded, SFD_CLOEXEC)));
  if (signals_ < 0) throw Failure(ErrorCode::system, "cannot wait for signals");
}

// Returns false if a key ends the wait. A terminal that is gone ends it, too.
bool Pause::take_keys() const {
  char keys[64];
  const ssize_t size = read(terminal_, keys, sizeof keys);
  return size > 0 && std::all_of(keys, keys + size, on_key_);
}

bool Pause::wait(Duration duration) {
  if (ended_) return false;
  const SystemClock clock;
  const SteadyTime end = std::min(clock.steady() + duration, session_.deadline());
  for (;;) {
    pollfd descriptors[] = {{signals_, POLLIN, 0}, {STDOUT_FILENO, 0, 0}, {terminal_, POLLIN, 0}};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(end - clock.steady()).count();
    if (poll(descriptors, 3, static_cast<int>(std::clamp<std::int64_t>(ms, 0, 1 << 30))) <= 0) {
      if (clock.steady() < session_.deadline()) return true;
      throw Failure(ErrorCode::try_again, "not finished: the deadline has passed");
    }
    if (descriptors[0].revents != 0) {
      signalfd_siginfo info{};
      ended_ = read(signals_, &info, sizeof info) > 0;
      return false;
    }
    if (descriptors[1].revents != 0) throw ClosedPipe{};
    if (!take_keys()) return false;
  }
}

HeldSignals::HeldSignals() : signals_(not_ignored(passed_on)) {
  sigaddset(&signals_, SIGCHLD);
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
