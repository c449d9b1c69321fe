// Runs one child command, executed directly, and leaves nothing of it behind: for every verb with `-- CMD…`.
//
// The child has its own process group, and the terminal's foreground if we have it, so that Ctrl-C,
// Ctrl-Z, a pager or an editor work as they do without us: when the child stops we stop too, and when we
// continue, so does it. INT TERM HUP QUIT USR1 USR2 TSTP CONT WINCH sent to us go to the group; those ignored
// when we were started stay ignored for both, and the child ignores and blocks what we did then. When the
// child has exited, what is left of its group is ended (TERM, grace, KILL). Whatever ends us, the guardian
// ends the group.
//
// One loop waits for signals, the child's end, deadlines and the child's pipes alike; it does no other I/O,
// so nothing can delay a deadline.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.hpp"
#include "common/base/process.hpp"

namespace mcds {

// Becomes this program. Returns if it cannot: the errno.
int execute(const std::vector<std::string>& words);

// A separate process that outlives us by a moment: if we end without having dismissed it, SIGKILL
// included, it ends the process groups we had started and removes our directory. It notices by the end of a
// pipe whose only write end is ours. It also kills the groups when a deadline passes that we, frozen, let
// pass.
class Guardian {
 public:
  // Forks: call it while the program has one thread. `directory`, unless empty, is removed with all it holds.
  explicit Guardian(const std::string& directory = {});
  // Dismisses it: nothing is killed or removed. Reaps it.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Safe in a fork and from other threads: one write each, which never blocks.
  void watch(pid_t group) const;
  void forget(pid_t group) const;
  void set_deadline(SteadyTime deadline) const;

 private:
  void tell(char what, long long value) const;
  pid_t pid_ = -1;
  Descriptor pipe_;
};

// The signals that are passed on are blocked while this lives, so that they end neither us nor what has to be
// done before and after the child (give back a lock). Those that were ignored stay ignored, for the child
// too.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  const sigset_t& signals() const { return signals_; }
  // The mask as it was, for the child.
  const sigset_t& before() const { return before_; }

  // Throws Interrupted when a signal that ends us has come. Stops with the terminal's stop.
  void check() const { wait(Duration::zero()); }
  // They stay blocked: what comes now comes too late.
  void keep() { kept_ = true; }

 private:
  friend class InterruptibleClock;
  void wait(Duration duration) const;
  bool kept_ = false;
  sigset_t signals_;
  sigset_t before_;
};

// Dies of it, as if it had never been held.
[[noreturn]] void die_of(const Interrupted& interruption);

// Sleeps until a signal comes that is held: then it throws Interrupted.
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

// Decides whether the child may continue to run; asked whenever its descriptor is readable and when the time
// it gave has come. Its functions must not block.
class ChildWatch {
 public:
  virtual ~ChildWatch() = default;
  // The child runs: the place to start threads.
  virtual void started() = 0;
  // The child gets TERM then; may move. SteadyTime::max(): never.
  virtual SteadyTime stop_at() = 0;
  // KILL at the latest, even if the grace is not over.
  virtual SteadyTime kill_at() = 0;
  // An eventfd, readable when the times have changed.
  virtual int descriptor() const = 0;
};

// Receives the child's output: stream 1 (stdout) and 2. Its functions must not block.
class ChildOutput {
 public:
  virtual ~ChildOutput() = default;
  // False: no more of this stream is wanted; the child gets SIGPIPE when it writes again.
  virtual bool take(int stream, std::string_view bytes) = 0;
  // The descriptor that has to become writable before more of `stream` can be taken; -1: none. Asked before
  // each take; proceed() when it is.
  virtual int waits_for(int stream) const = 0;
  virtual void proceed(int stream) = 0;
};

struct ChildOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  Duration grace = std::chrono::seconds(5);                           // between TERM and KILL
  std::optional<Duration> max_run = {};
  std::optional<std::string> input = {};  // its standard input; default: ours
  // What it starts may outlive it and us: a server that it restarts. Only what we are sent ends it.
  bool may_go_on = false;
  ChildOutput* output = nullptr;  // default: both streams go where ours go
};

struct ChildResult {
  // max_run, watch: we stopped it. unknown: it has ended, and another process has taken its status.
  enum class Reason { ended, max_run, watch, not_executable, not_found, unknown };
  Reason reason = Reason::ended;
  int code = 0;              // of its exit, if `signal` is 0
  int signal = 0;            // that ended it
  std::string message = {};  // why it could not be executed, or why its status is unknown

  // Of the child alone: its code, 128 + signal, 126 or 127; 71 if it is unknown.
  int exit_code() const;
};

// Throws Failure(system).
ChildResult run_child(const ChildOptions& options, Clock& clock, const Guardian& guardian,
                      const HeldSignals& held, ChildWatch* watch = nullptr);

// Waits between looks at something that goes on, until the user or the reader of our output has had enough.
class Pause {
 public:
  // From now on INT, TERM and HUP end a wait instead of the program. `deadline`: the command's, if it may
  // pass while it waits.
  explicit Pause(SteadyTime deadline = SteadyTime::max());

  // False: it is time to end. Throws ClosedPipe, and Failure(try_again) at the deadline.
  bool wait(Duration duration);
  // From now on `q` at this terminal ends a wait, too; -1: none.
  void watch_keys(int terminal) { terminal_ = terminal; }

 private:
  sigset_t signals_{};
  bool has_quit() const;

  SteadyTime deadline_;
  Descriptor descriptor_;
  int terminal_ = -1;
};

}  // namespace mcds
