// Implements mcds lock run: holds a lock while a child runs.
#include <unistd.h>

#include <cstdlib>

#include "tools/commands/lock/lease_keeper.hpp"
#include "tools/commands/lock/options.hpp"
#include "tools/commands/run_report.hpp"

namespace mcds {

namespace {

constexpr Duration default_ttl = std::chrono::seconds(30);
constexpr Duration default_grace = std::chrono::seconds(5);
constexpr Duration retry_delay = std::chrono::milliseconds(100);
constexpr Duration time_to_renew = std::chrono::milliseconds(250);

struct Times {
  Duration ttl, grace;
};

// Returns the times. The first renewal, at ttl / 3, must fit before the child would have to be stopped.
Times times_of(const LockOptions& options) {
  const Duration ttl = options.ttl.value_or(default_ttl);
  const Duration grace = options.grace.value_or(std::min<Duration>(default_grace, ttl / 4));
  const Duration unavoidable = LeaseKeeper::margin + time_to_renew;
  if (ttl < (grace + unavoidable) * 3 / 2) {
    // The usual grace is a quarter of the ttl until it reaches default_grace, so the bound is solved for the
    // ttl: ttl = (ttl / 4 + unavoidable) * 3 / 2.
    const Duration needed = options.grace
                                ? (grace + unavoidable) * 3 / 2
                                : std::min((default_grace + unavoidable) * 3 / 2, unavoidable * 12 / 5);
    throw InvalidInput("--ttl " + format_duration(ttl) + " is too short for --grace " +
                       format_duration(grace) +
                       ": the command must be stopped before the lock expires; at least " +
                       format_duration(std::chrono::ceil<std::chrono::milliseconds>(needed)) + " is needed");
  }
  return {ttl, grace};
}

ChildOptions child_options(const LockOptions& options, Duration grace) {
  ChildOptions child{.command = options.command};
  child.grace = grace;
  child.max_run = options.max_run;
  child.environment.emplace_back("MCDS_LOCK_NAME", options.name);
  return child;
}

class LockedRun {
 public:
  LockedRun(Session& session, const LockOptions& options)
      : session_(session),
        options_(options),
        times_(times_of(options)),
        report_(report_in(options.report)),
        acquire_options_(acquire_options_of(options, times_.ttl, true)) {
    record_.bytes("lock", options.name);
    // The variables of an outer lock do not belong to this one.
    for (const char* name : {"MCDS_LOCK_TOKEN", "MCDS_LOCK_FENCE", "MCDS_LOCK_SLOT"}) unsetenv(name);
    // A duration that is too long is reported before the command runs.
    for (const auto& hold : {options.min_hold, options.once_per}) {
      if (hold) Exptime::after(*hold + times_.ttl, session.clock().wall());
    }
  }

  ExitStatus run() {
    try {
      // The lock is created here, so that a wrong server list is reported as such.
      lock_.emplace(lock_of(session_, options_, 0));
      for (const auto& hold : {options_.min_hold, options_.once_per}) {
        if (hold && *hold > Duration::zero()) lock_->check_ttl(*hold);
      }
      InterruptibleClock clock(session_.clock(), held_);
      acquire_options_.wait = std::min(acquire_options_.wait, session_.time_left());
      LockSlots::Answer taken = (Waiting(session_, "waiting for the lock"),
                                 slots_of(session_, options_, clock).acquire(acquire_options_));
      answer_ = std::move(taken.lock);
      slot_ = taken.slot;
      lock_.emplace(lock_of(session_, options_, slot_));
    } catch (const Failure& failure) {
      if (!is_down(failure) || options_.if_down != "run") throw;
      session_.output().warning(std::string("running without the lock: ") + failure.what());
      return run_without_lock();
    }
    return answer_.lease ? run_with_lock() : busy();
  }

 private:
  static bool is_down(const Failure& failure) {
    return failure.code() == ErrorCode::unavailable || failure.code() == ErrorCode::unknown_outcome;
  }

  ExitStatus busy() {
    record_.boolean("acquired", false);
    add_slot(record_, options_, slot_);
    if (!answer_.holder.empty()) record_.raw("holder", answer_.holder);
    record_.bytes("server", session_.server_address(answer_.server));
    report_.write(record_.text() + '\n');
    return report_busy(session_, options_, answer_);
  }

  ExitStatus run_without_lock() {
    record_.boolean("acquired", false).boolean("without_lock", true);
    return finish(run_alone(session_, child_options(options_, times_.grace), held_));
  }

  ExitStatus run_with_lock() {
    const Lease& lease = *answer_.lease;
    const SteadyTime started = session_.clock().steady();  // not the lease's: with copies it ends earlier
    record_.boolean("acquired", true);
    add_slot(record_, options_, slot_);
    record_.bytes("token", lease.token).bytes("fence", std::to_string(*lease.fence));
    record_.bytes("server", session_.server_address(answer_.server))
        .time("started_at", session_.clock().wall());
    const ChildResult result = [&] {
      try {
        held_.check();
        return run_child_under(lease);
      } catch (...) {
        give_up(*lock_, *answer_.lease);
        throw;
      }
    }();
    record_.time("finished_at", session_.clock().wall()).bytes("outcome", end_hold(result, started));
    return finish(result);
  }

  ChildResult run_child_under(const Lease& lease) {
    const CleanupProcess cleanup;
    LeaseKeeper keeper(*lock_, lease,
                       {.ttl = times_.ttl,
                        .grace = times_.grace,
                        .stop_child = options_.on_lost == "term",
                        .warn = [this](std::string_view message) { session_.output().warning(message); }},
                       session_.clock(), cleanup);
    ChildOptions child = child_options(options_, times_.grace);
    child.environment.emplace_back("MCDS_LOCK_TOKEN", lease.token);
    child.environment.emplace_back("MCDS_LOCK_FENCE", std::to_string(*lease.fence));
    if (options_.slots) child.environment.emplace_back("MCDS_LOCK_SLOT", std::to_string(slot_));
    const ChildTime its_own(session_);
    const ChildResult result = run_child(child, session_.clock(), cleanup, held_, &keeper);
    answer_.lease = keeper.finish();
    lost_ = keeper.lost() || result.reason == ChildResult::Reason::watch;
    record_.number("renewals", keeper.renewals());
    return result;
  }

  // Releases the lock, or lets it expire at the end of --min-hold or --once-per. Returns the outcome.
  std::string end_hold(const ChildResult& result, SteadyTime started) {
    if (lost_) return "lost";
    const bool success = result.reason == ChildResult::Reason::ended && result.exit_code() == 0;
    Duration hold = result.could_run() ? options_.min_hold.value_or(Duration::zero()) : Duration::zero();
    if (success) hold = std::max(hold, options_.once_per.value_or(Duration::zero()));
    const auto left = [&] { return started + hold - session_.clock().steady(); };
    for (;;) {
      try {
        if (left() > Duration::zero())
          return lock_->leave(*answer_.lease, left()) == Lock::Renewal::renewed ? "kept" : "lost";
        return lock_->release(*answer_.lease).result == Lock::Freed::Result::released ? "released" : "lost";
      } catch (const Failure& failure) {
        const bool must_keep = left() > Duration::zero();
        if (must_keep && still_held_after_wait()) continue;
        session_.output().warning(
            (must_keep ? "the lock could not be extended; another run may start when it expires: "
                       : "the lock could not be released; it expires after its ttl: ") +
            std::string(failure.what()));
        return "unknown";
      }
    }
  }

  // Waits before a retry. Returns false if the lock may have expired since, or if the run must end.
  bool still_held_after_wait() {
    try {
      InterruptibleClock(session_.clock(), held_).sleep_for(retry_delay);
    } catch (const Interrupted&) {
      return false;
    } catch (const Failure&) {
      return false;
    }
    return session_.clock().steady() < answer_.lease->deadline;
  }

  ExitStatus finish(const ChildResult& result) {
    report_failure(session_.output(), result);
    add_result(record_, result);
    return write_report(report_, record_, session_.output(), static_cast<ExitStatus>(result.exit_code()));
  }

  Session& session_;
  const LockOptions& options_;
  // Held from before the first request until the lock is released.
  const HeldSignals held_;
  Times times_;
  OutputFile report_;
  Lock::AcquireOptions acquire_options_;
  std::optional<Lock> lock_;
  Lock::Answer answer_;
  std::size_t slot_ = 0;
  bool lost_ = false;
  JsonObject record_;
};

}  // namespace

Lock::AcquireOptions acquire_options_of(const LockOptions& options, Duration ttl, bool fence) {
  static_cast<void>(busy_exit(options.busy_status));
  Lock::AcquireOptions acquire_options{.ttl = ttl, .holder = holder_here(options.note), .fence = fence};
  // The holder of a lock taken by `acquire` is the script, which outlives that command.
  if (options.command.empty()) acquire_options.holder.pid = static_cast<std::uint64_t>(getppid());
  if (options.wait)
    acquire_options.wait = *options.wait == "inf" ? Duration::max() : parse_duration(*options.wait, "-w");
  return acquire_options;
}

ExitStatus run_locked(Session& session, const LockOptions& options) {
  return LockedRun(session, options).run();
}

}  // namespace mcds
