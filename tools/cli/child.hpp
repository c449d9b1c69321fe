// Runs one child command directly, without a shell, and leaves no process of it behind. All verbs with `--
// CMD…` use it.
//
// The child has its own process group. It gets the terminal's foreground if we have it, so that Ctrl-C,
// Ctrl-Z, a pager or an editor work as they do without us: when the child stops we stop too, and when we
// continue, it continues. INT TERM HUP QUIT USR1 USR2 TSTP CONT WINCH sent to us are passed on to the group.
// Signals that were ignored when we were started stay ignored for both, and the child ignores and blocks the
// same signals as we did then. When the child has exited, the rest of its group is ended (TERM, grace, KILL).
// If we end first for any reason, the cleanup process ends the group.
//
// One loop waits for signals, the child's exit, deadlines and the child's pipes. It does no other I/O, so
// nothing can delay a deadline. Pause waits in commands that poll.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.hpp"
#include "common/base/process.hpp"

namespace mcds {

class Session;

// Replaces this process by the command. If that fails, returns the errno.
int execute(const std::vector<std::string>& words);

// A separate process that cleans up after us. If we end without dismissing it, even by SIGKILL, it kills the
// process groups that we started and removes our directory. It detects our end by the end of a pipe whose
// only write end is ours. It also kills the groups when a deadline passes that we could not enforce because
// we were frozen.
class CleanupProcess {
 public:
  // Forks; call it while the program has one thread. `directory`, if not empty, is removed at the end.
  explicit CleanupProcess(const std::string& directory = {});
  // Dismisses and reaps the process; nothing is killed or removed.
  ~CleanupProcess();
  CleanupProcess(const CleanupProcess&) = delete;
  CleanupProcess& operator=(const CleanupProcess&) = delete;

  // Register and unregister a process group, and set the deadline. They are safe after a fork and from other
  // threads: each is a single write that never blocks.
  void watch(pid_t group) const { send({Order::watch, group}); }
  void forget(pid_t group) const { send({Order::forget, group}); }
  void set_deadline(SteadyTime deadline) const {
    send({Order::deadline, deadline.time_since_epoch().count()});
  }

 private:
  struct Order {
    enum What : std::int64_t { watch, forget, deadline, dismiss } what;
    std::int64_t value;
  };
  void send(const Order& order) const;
  static void serve(const std::string& directory);
  pid_t pid_ = -1;
  Descriptor pipe_;
};

// Blocks the signals that are passed on to a child for the lifetime of this object. They then end neither us
// nor the work that must be done before and after the child, such as releasing a lock. Signals that were
// ignored stay ignored, for the child too.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  const sigset_t& signals() const { return signals_; }
  // Returns the original signal mask, for the child.
  const sigset_t& before() const { return before_; }

  // Throws Interrupted if a signal that ends us has arrived. Stops the process if the terminal's stop has.
  void check() const { wait(Duration::zero()); }
  // Keeps the signals blocked after this object ends: a signal that arrives now is too late.
  void keep() { kept_ = true; }

 private:
  friend class InterruptibleClock;
  void wait(Duration duration) const;
  bool kept_ = false;
  sigset_t signals_;
  sigset_t before_;
};

// Ends this process by the signal, as if it had never been blocked.
[[noreturn]] void die_of(const Interrupted& interruption);

// A clock whose sleep throws Interrupted as soon as a blocked signal arrives.
class InterruptibleClock final : public Clock {
 public:
  InterruptibleClock(Clock& clock, const HeldSignals& held) : clock_(clock), held_(held) {}
  WallTime wall() const override { return clock_.wall(); }
  SteadyTime steady() const override { return clock_.steady(); }
  void sleep_for(Duration duration) override;

 private:
  Clock& clock_;
  const HeldSignals& held_;
};

// Decides whether the child may continue to run. It is queried whenever its descriptor is readable and when
// the time that it gave has come. Its functions must not block.
class ChildWatch {
 public:
  virtual ~ChildWatch() = default;
  // Called when the child runs. Threads may be started here.
  virtual void started() = 0;
  // Returns when the child gets TERM; the time may change. SteadyTime::max() means never.
  virtual SteadyTime stop_at() = 0;
  // Returns when the child gets KILL at the latest, even if the grace is not over.
  virtual SteadyTime kill_at() = 0;
  // Returns an eventfd that becomes readable when the times have changed.
  virtual int descriptor() const = 0;
};

// Receives the child's output: stream 1 (stdout) and 2 (stderr). Its functions must not block.
class ChildOutput {
 public:
  virtual ~ChildOutput() = default;
  // Returns false if no more of this stream is wanted; the child then gets SIGPIPE when it writes again.
  virtual bool take(int stream, std::string_view bytes) = 0;
  // Returns the descriptor that must become writable before more of `stream` can be taken, or -1. It is
  // called before each take(); proceed() is called when the descriptor is writable.
  virtual int waits_for(int stream) const = 0;
  virtual void proceed(int stream) = 0;
};

struct ChildOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  Duration grace = std::chrono::seconds(5);                           // between TERM and KILL
  std::optional<Duration> max_run = {};
  std::optional<std::string> input = {};  // its standard input; default: ours
  // Lets the processes that the child starts outlive it and us, such as a server that it restarts. They are
  // ended only by signals that are sent to us.
  bool may_go_on = false;
  ChildOutput* output = nullptr;  // default: both streams go where ours go
};

struct ChildResult {
  // max_run, watch: we stopped it. unknown: it has ended, and another process has reaped its status.
  enum class Reason { ended, max_run, watch, not_executable, not_found, unknown };
  Reason reason = Reason::ended;
  int code = 0;              // exit code, valid if `signal` is 0
  int signal = 0;            // the signal that ended it, or 0
  int received = 0;          // the INT, TERM or HUP that we received and passed on to it, or 0
  std::string message = {};  // why it could not be executed, or why its status is unknown

  bool could_run() const { return reason != Reason::not_found && reason != Reason::not_executable; }
  // Returns the exit code for the child: 79 or 124 if we stopped it, else its own, 128 + signal, 126 or 127,
  // or 71 if it is unknown.
  int exit_code() const;
  // Returns the INT, TERM or HUP that should end us too, even if the child caught it, or 0.
  int ending_signal() const;
};

// Runs the child until its group has ended. Throws Failure(system).
ChildResult run_child(const ChildOptions& options, Clock& clock, const CleanupProcess& cleanup,
                      const HeldSignals& held, ChildWatch* watch = nullptr);

// Waits between two polls in a command that runs until the user, or the reader of our output, ends it.
class Pause {
 public:
  // Tells what INT, TERM and HUP end, unless they were ignored when we were started. A wait for the reader of
  // the answers ends, too.
  enum class Signals { end_wait, end_program };
  explicit Pause(Session& session, Signals signals = Signals::end_wait);

  // Returns false when it is time to end. Throws ClosedPipe, and Failure(try_again) at the session's
  // deadline.
  bool wait(Duration duration);
  // Passes each key pressed at this terminal to `on_key`, which returns false to end the wait. -1 means no
  // terminal.
  void watch_keys(int terminal, std::function<bool(char)> on_key) {
    terminal_ = terminal;
    on_key_ = std::move(on_key);
  }

 private:
  bool take_keys() const;

  Session& session_;
  int signals_ = -1;
  bool ended_ = false;  // by a signal: the next one ends a wait for the reader
  int terminal_ = -1;
  std::function<bool(char)> on_key_;
};

}  // namespace mcds
