// Renews a lease every third of its ttl while a child runs, and determines when the child must have stopped.
//
// Renewals run in a thread of their own: a frozen server may block a renewal for as long as its timeouts
// allow, and the loop that watches the child must not wait for it. All times are relative to the last
// successful renewal, counted from before its request was sent.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/structures/lock/lock.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

class LeaseKeeper final : public ChildWatch {
 public:
  struct Plan {
    Duration ttl;
    Duration grace;          // the child gets TERM at deadline - grace - margin, KILL at deadline - margin
    bool stop_child = true;  // false: a lost lock is only reported
    std::function<void(std::string_view)> warn;  // called in the thread
    // Called in the thread after each renewal, and as often if the child continues without the lock.
    std::function<void()> renewed = {};
  };
  // Time between the child's KILL and the end of the lease.
  static constexpr Duration margin = std::chrono::seconds(1);

  // A lease without a token is none: the child runs without the lock from the beginning.
  LeaseKeeper(Lock& lock, Lease lease, Plan plan, Clock& clock, const CleanupProcess& cleanup);
  ~LeaseKeeper() override { finish(); }

  void started() override {
    thread_ = std::thread([this] { keep(); });
  }
  SteadyTime stop_at() override;
  SteadyTime kill_at() override;
  int descriptor() const override { return changed_; }

  // Ends the thread, within the timeouts of the transport. Returns the final lease.
  Lease finish();
  bool lost() const { return lost_; }
  std::uint64_t renewals() const { return renewals_; }

 private:
  void keep();
  bool pause_until(SteadyTime when);
  // Renews the lease. Returns the time of the next attempt, SteadyTime::max() if the lease is lost.
  SteadyTime renew_once();
  void lose(std::string_view why);
  void publish();

  Lock& lock_;
  Lease lease_;
  std::string why_not_renewed_;  // the last failure; for the thread, and after its end
  Plan plan_;
  Clock& clock_;
  const CleanupProcess& cleanup_;
  Descriptor changed_;
  std::atomic<Duration::rep> deadline_;  // end of the lease, in the clock's nanoseconds
  std::atomic<bool> lost_ = false;
  std::atomic<std::uint64_t> renewals_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

// The holder of a lock: stored by commands that acquire it, shown by commands that find it held.

// Returns the holder for this process.
LockHolder holder_here(std::string note = {});

// Returns `deploy@web3 (pid 4711) since 2026-…`, with the fields that the holder has.
std::string describe_holder(const std::string& holder,
                            const char* why_kept = ", kept by --min-hold or --once-per");

}  // namespace mcds
