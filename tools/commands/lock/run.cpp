// mcds lock run: hold a lock for the life of a child.
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/commands/lock/lease_keeper.hpp"
#include "tools/commands/lock/options.hpp"
#include "tools/commands/run_report.hpp"

namespace mcds {

namespace {

constexpr Duration default_ttl = std::chrono::seconds(30);
constexpr Duration default_grace = std::chrono::seconds(5);
constexpr Duration between_tries = std::chrono::milliseconds(100);
constexpr Duration time_to_renew = std::chrono::milliseconds(250);

struct Times {
  Duration ttl, grace;
};

// The first renewal, at a third of the ttl, must be able to come before the child would have to be stopped.
Times times_of(const LockOptions& options) {
  const Duration ttl = options.ttl.value_or(default_ttl);
  const Duration grace = options.grace.value_or(std::min<Duration>(default_grace, ttl / 4));
  const Duration needed = (grace + LeaseKeeper::margin + time_to_renew) * 3 / 2;
  if (ttl < needed) {
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
        wish_(wish_of(options, times_.ttl, true)) {
    record_.bytes("lock", options.name);
    // Those of a lock around us are not this one's.
    for (const char* name : {"MCDS_LOCK_TOKEN", "MCDS_LOCK_FENCE", "MCDS_LOCK_SLOT"}) unsetenv(name);
    // A name that is too long is reported before the command runs.
    for (const auto& hold : {options.min_hold, options.once_per}) {
      if (hold) Exptime::after(*hold + times_.ttl, session.clock().wall());
    }
  }

  ExitStatus run() {
    try {
      // Here, so that a wrong server list is reported as such.
      lock_.emplace(lock_of(session_, options_, 0));
      for (const auto& hold : {options_.min_hold, options_.once_per}) {
        if (hold && *hold > Duration::zero()) lock_->check_ttl(*hold);
      }
      InterruptibleClock clock(session_.clock(), held_);
      wish_.wait = std::min(wish_.wait, time_left(session_));
      LockSlots::Answer taken = slots_of(session_, options_, clock).acquire(wish_);
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
    return failure.code() == ErrorCode::unavailable || failure.code() == ErrorCode::unknown_outcome ||
           failure.code() == ErrorCode::refused || failure.code() == ErrorCode::access_denied;
  }

  ExitStatus busy() {
    record_.boolean("acquired", false);
    add_slot(record_, options_, slot_);
    if (!answer_.holder.empty()) record_.raw("holder", answer_.holder);
    record_.bytes("server", session_.server_address(answer_.server));
    report_.write(record_.text() + '\n');
    return tell_busy(session_, options_, answer_);
  }

  ExitStatus run_without_lock() {
    const Guardian guardian;
    record_.boolean("acquired", false).boolean("without_lock", true);
    const ChildTime its_own(session_);
    const ChildResult result =
        run_child(child_options(options_, times_.grace), session_.clock(), guardian, held_);
    return finish(result);
  }

  ExitStatus run_with_lock() {
    const Lease& lease = *answer_.lease;
    const SteadyTime started = lease.deadline - times_.ttl;
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
    const Guardian guardian;
    LeaseKeeper keeper(*lock_, lease,
                       {.ttl = times_.ttl,
                        .grace = times_.grace,
                        .stop_child = options_.on_lost == "term",
                        .warn = [this](std::string_view message) { session_.output().warning(message); }},
                       session_.clock(), guardian);
    ChildOptions child = child_options(options_, times_.grace);
    child.environment.emplace_back("MCDS_LOCK_TOKEN", lease.token);
    child.environment.emplace_back("MCDS_LOCK_FENCE", std::to_string(*lease.fence));
    if (options_.slots) child.environment.emplace_back("MCDS_LOCK_SLOT", std::to_string(slot_));
    const ChildTime its_own(session_);
    const ChildResult result = run_child(child, session_.clock(), guardian, held_, &keeper);
    answer_.lease = keeper.finish();
    lost_ = keeper.lost() || result.reason == ChildResult::Reason::watch;
    record_.number("renewals", keeper.renewals());
    return result;
  }

  // What becomes of the lock: given back, or left to expire by itself at the end of --min-hold or --once-per.
  std::string end_hold(const ChildResult& result, SteadyTime started) {
    if (lost_) return "lost";
    const bool success = result.reason == ChildResult::Reason::ended && result.exit_code() == 0;
    const bool ran = result.reason != ChildResult::Reason::not_found &&
                     result.reason != ChildResult::Reason::not_executable;
    Duration hold = ran ? options_.min_hold.value_or(Duration::zero()) : Duration::zero();
    if (success) hold = std::max(hold, options_.once_per.value_or(Duration::zero()));
    const auto left = [&] { return started + hold - session_.clock().steady(); };
    for (;;) {
      try {
        if (left() > Duration::zero())
          return lock_->leave(*answer_.lease, left()) == Lock::Renewal::renewed ? "kept" : "lost";
        return lock_->release(*answer_.lease).result == Lock::Freed::Result::released ? "released" : "lost";
      } catch (const Failure& failure) {
        const bool is_to_stay = left() > Duration::zero();
        if (is_to_stay && is_ours_a_while()) continue;
        session_.output().warning(
            (is_to_stay ? "the lock could not be kept, and another run may begin when it expires: "
                        : "the lock could not be released and will expire: ") +
            std::string(failure.what()));
        return "unknown";
      }
    }
  }

  // Waits a little. False: the lock may have expired since, or we are to end.
  bool is_ours_a_while() {
    try {
      InterruptibleClock(session_.clock(), held_).sleep_for(between_tries);
    } catch (const Interrupted&) {
      return false;
    } catch (const Failure&) {
      return false;
    }
    return session_.clock().steady() < answer_.lease->deadline;
  }

  ExitStatus finish(const ChildResult& result) {
    tell_failure(session_.output(), result);
    add_result(record_, result);
    return write_report(report_, record_, session_.output(), status_of(result));
  }

  Session& session_;
  const LockOptions& options_;
  // From before anything is sent until the lock is given back.
  const HeldSignals held_;
  Times times_;
  OutputFile report_;
  Lock::Wish wish_;
  std::optional<Lock> lock_;
  Lock::Answer answer_;
  std::size_t slot_ = 0;
  bool lost_ = false;
  JsonObject record_;
};

}  // namespace

Lock::Wish wish_of(const LockOptions& options, Duration ttl, bool fence) {
  static_cast<void>(busy_exit(options.busy_status));
  Lock::Wish wish{.ttl = ttl, .holder = holder_here(options.note), .fence = fence};
  // The holder of a lock taken by `acquire` is the script, beyond that command's end.
  if (options.command.empty()) wish.holder.pid = static_cast<std::uint64_t>(getppid());
  if (options.wait)
    wish.wait = *options.wait == "inf" ? Duration::max() : parse_duration(*options.wait, "-w");
  return wish;
}

ExitStatus run_locked(Session& session, const LockOptions& options) {
  return LockedRun(session, options).run();
}

}  // namespace mcds
