// Renews a lease every third of its ttl while a child runs, and knows when the child must have stopped.
//
// Renewals happen in a thread of their own: a frozen server may hold one as long as its timeouts allow, the
// loop that watches the child never waits for it. The times are those of the last renewal that succeeded,
// counted from before it was sent.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/base/process.hpp"
#include "common/structures/lock/lock.hpp"
#include "tools/cli/child.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

class LeaseKeeper final : public ChildWatch {
 public:
  struct Plan {
    Duration ttl;
    Duration grace;          // the child gets TERM at deadline - grace - margin, KILL at deadline - margin
    bool stop_child = true;  // otherwise a lost lock is only reported
    std::function<void(std::string_view)> warn;  // from the thread
    std::function<void()> renewed = {};          // after each renewal, from the thread
  };
  // Between the child's last moment and the lease's.
  static constexpr Duration margin = std::chrono::seconds(1);

  LeaseKeeper(Lock& lock, Lease lease, Plan plan, Clock& clock, const Guardian& guardian);
  ~LeaseKeeper() override { finish(); }

  void started() override {
    thread_ = std::thread([this] { keep(); });
  }
  SteadyTime stop_at() override;
  SteadyTime kill_at() override;
  int descriptor() const override { return changed_; }

  // Ends the thread, within the transport's timeouts; the lease as it is then.
  Lease finish();
  bool lost() const { return lost_; }
  std::uint64_t renewals() const { return renewals_; }

 private:
  void keep();
  bool pause_until(SteadyTime when);
  // When to try next; SteadyTime::max() when it is lost.
  SteadyTime renew_once();
  void lose(std::string_view why);
  void publish();

  Lock& lock_;
  Lease lease_;
  Plan plan_;
  Clock& clock_;
  const Guardian& guardian_;
  Descriptor changed_;
  std::atomic<Duration::rep> deadline_;  // of the lease, in the clock's nanoseconds
  std::atomic<bool> lost_ = false;
  std::atomic<std::uint64_t> renewals_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

// The holder of a lock: written by every command that takes one, shown to every command that finds it taken.

// This process.
LockHolder holder_here(std::string note = {});

// `deploy@web3 (pid 4711) since 2026-…`, as far as it is known.
std::string describe_holder(const std::string& holder,
                            const char* why_kept = ", kept by --min-hold or --once-per");

}  // namespace mcds
