#include "tools/commands/lock/lease_keeper.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace mcds {

namespace {

// If we are frozen, the cleanup process kills the child: later than we would, but before the lease ends.
constexpr Duration guardian_margin = LeaseKeeper::margin / 2;
// Limits each wait, so that a passed deadline is noticed soon after the machine wakes from sleep.
constexpr Duration max_pause = std::chrono::seconds(1);

}  // namespace

LockHolder holder_here(std::string note) {
  return {.host = host_name(),
          .user = user_name(),
          .note = std::move(note),
          .pid = static_cast<std::uint64_t>(getpid())};
}

std::string describe_holder(const std::string& holder, const char* why_kept) {
  const auto field = [&](std::string_view name) {
    const auto json = json_field(holder, name);
    return json ? json_unquote(*json).value_or(*json) : std::string();
  };
  if (holder.empty() || field("host").empty()) return "another program";
  std::string text = field("user") + '@' + field("host") + " (pid " + field("pid") + ')';
  if (const std::string since = field("acquired_at"); !since.empty()) text += " since " + since;
  if (!field("finished_at").empty()) text += std::string(", finished") + why_kept;
  if (const std::string note = field("note"); !note.empty()) text += ": " + note;
  return text;
}

LeaseKeeper::LeaseKeeper(Lock& lock, Lease lease, Plan plan, Clock& clock, const CleanupProcess& cleanup)
    : lock_(lock),
      lease_(std::move(lease)),
      plan_(std::move(plan)),
      clock_(clock),
      cleanup_(cleanup),
      changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      deadline_(lease_.deadline.time_since_epoch().count()) {
  if (changed_ < 0) throw Failure(ErrorCode::system, "cannot make an event descriptor; too many open files?");
  publish();
}

SteadyTime LeaseKeeper::stop_at() {
  if (!plan_.stop_child) return SteadyTime::max();
  if (lost_) return SteadyTime::min();
  return SteadyTime(Duration(deadline_)) - margin - plan_.grace;
}

SteadyTime LeaseKeeper::kill_at() {
  if (!plan_.stop_child) return SteadyTime::max();
  return SteadyTime(Duration(deadline_)) - margin;
}

Lease LeaseKeeper::finish() {
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // The child was stopped in time, while renewals might still have succeeded.
  const std::string why = std::exchange(why_not_renewed_, {});
  if (!why.empty() && !lost_ && clock_.steady() >= stop_at())
    plan_.warn("the lock could not be renewed: " + why);
  return lease_;
}

void LeaseKeeper::publish() {
  deadline_ = lease_.deadline.time_since_epoch().count();
  if (plan_.stop_child) cleanup_.set_deadline(lease_.deadline - guardian_margin);
  const std::uint64_t one = 1;
  static_cast<void>(!write(changed_, &one, sizeof one));
}

void LeaseKeeper::keep() {
  SteadyTime next = SteadyTime::max();
  if (!lease_.token.empty()) next = lease_.deadline - plan_.ttl + plan_.ttl / 3;
  while (next != SteadyTime::max() && pause_until(next)) next = renew_once();
  // A child that continues without its lock still needs what is kept for it.
  if (next != SteadyTime::max() || plan_.stop_child || !plan_.renewed) return;
  do {
    plan_.renewed();
  } while (pause_until(clock_.steady() + plan_.ttl / 3));
}

// Waits until `when`. Returns false if the keeper was ended meanwhile.
bool LeaseKeeper::pause_until(SteadyTime when) {
  std::unique_lock guard(mutex_);
  while (!ended_) {
    const Duration left = when - clock_.steady();
    if (left <= Duration::zero()) return true;
    ended_changed_.wait_for(guard, std::min(left, max_pause));
  }
  return false;
}

SteadyTime LeaseKeeper::renew_once() {
  // This process may have been paused until the cleanup process has ended the child.
  if (clock_.steady() >= stop_at()) {
    lose("the renewal came too late");
    return SteadyTime::max();
  }
  try {
    switch (lock_.renew(lease_, plan_.ttl)) {
      case Lock::Renewal::renewed:
        ++renewals_;
        why_not_renewed_.clear();
        publish();
        if (plan_.renewed) plan_.renewed();
        return lease_.deadline - plan_.ttl + plan_.ttl / 3;
      case Lock::Renewal::not_owner: lose("another process took the lock (after a release --force?)"); break;
      case Lock::Renewal::not_held:
        lose("the server no longer has the lock (after a release --force, restart, flush or eviction?)");
        break;
    }
    return SteadyTime::max();
  } catch (const Failure& failure) {
    const SteadyTime now = clock_.steady();
    why_not_renewed_ = failure.what();
    if (!failure.server().empty()) why_not_renewed_ += " (" + failure.server() + ')';
    if (now >= lease_.deadline) {
      lose(why_not_renewed_);
      return SteadyTime::max();
    }
    return now + std::min<Duration>(plan_.ttl / 10, std::chrono::seconds(1));
  } catch (const std::exception& error) {
    lose(error.what());
    return SteadyTime::max();
  }
}

void LeaseKeeper::lose(std::string_view why) {
  lost_ = true;
  plan_.warn("the lock was lost: " + std::string(why));
  publish();
}

}  // namespace mcds
