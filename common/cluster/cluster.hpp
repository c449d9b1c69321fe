// Cluster: the interface between data structures and servers. Its contract is at the end of this file.
#pragma once

#include <atomic>
#include <span>

#include "common/base/clock.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/request.hpp"
#include "common/placement/placement.hpp"

namespace mcds {

// The deadline of a run of the program, its signals, and its policy for servers that do not answer. All
// clusters and threads of the run share one RunLimits.
class RunLimits {
 public:
  enum class UnhealthyPolicy {
    skip,        // its requests fail at once until a health probe succeeds
    hold,        // its requests wait for at most one timeout, then fail like those of skip
    try_always,  // its requests are sent as if it were healthy, for work that must not be skipped
  };
  UnhealthyPolicy unhealthy() const { return unhealthy_; }
  void treat(UnhealthyPolicy unhealthy) { unhealthy_ = unhealthy; }

  // Returns the time after which the run neither sends nor waits; it has passed once the run is interrupted.
  SteadyTime deadline() const { return signal_ != 0 ? SteadyTime() : SteadyTime(Duration(deadline_)); }
  void set_deadline(SteadyTime when) { deadline_ = when.time_since_epoch().count(); }
  // Declares that a signal may end the run, like its deadline: requests in flight finish, no others start.
  void expect_signals() { expects_signals_ = true; }
  void interrupt(int signal) { signal_ = signal; }  // called by a signal handler
  int signal() const { return signal_; }            // the signal that interrupted the run, or 0
  // Returns true if a deadline or a signal may end the run before its work is done.
  bool may_be_cut() const { return expects_signals_ || deadline() != SteadyTime::max(); }
  bool over(SteadyTime now) const {
    report(now);
    return now >= deadline();
  }
  void report(SteadyTime now) const {
    if (observer_) observer_(now);
  }
  // Calls `observer` with the time before each batch and while the run sleeps or waits for servers; empty: no
  // more. Not for a run of several threads.
  void observe(std::function<void(SteadyTime)> observer) { observer_ = std::move(observer); }
  SteadyTime earlier(SteadyTime when) const { return std::min(when, deadline()); }
  std::string why_over() const { return signal_ != 0 ? "interrupted" : "the deadline has passed"; }
  Failure failure(const std::string& server = {}) const {
    return {ErrorCode::try_again, "not finished: " + why_over(), server};
  }
  // Throws failure() if the run is over.
  void check(SteadyTime now) const {
    if (over(now)) throw failure();
  }

 private:
  std::atomic<UnhealthyPolicy> unhealthy_ = UnhealthyPolicy::skip;
  std::atomic<Duration::rep> deadline_ = Duration::max().count();
  std::atomic<int> signal_ = 0;
  std::atomic<bool> expects_signals_ = false;
  std::function<void(SteadyTime)> observer_;
};

}  // namespace mcds

namespace mcds {

// A batch in flight; its cluster must outlive it. Destroying it unfinished leaves open whether its requests
// were applied, and fails the other batches in flight to the same servers.
class Pending {
 public:
  using Finish = std::function<std::vector<Reply>(std::span<const Request> batch)>;
  Pending(std::vector<Request> batch, Finish finish) : batch_(std::move(batch)), finish_(std::move(finish)) {}
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Waits for the missing replies and returns them as execute() does. Call it once. The time between begin()
  // and finish() does not count against the servers.
  std::vector<Reply> finish() { return finish_(batch_); }
  // Returns the requests of the batch, also after finish().
  std::span<const Request> batch() const { return batch_; }
  using Settle = std::function<void(std::span<const Request> batch, std::vector<Reply>& replies)>;
  // Lets `settle` change the replies when it finishes.
  void then(Settle settle);

 private:
  std::vector<Request> batch_;
  Finish finish_;  // its state ends before the requests
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual std::vector<Reply> execute(std::span<const Request> batch) = 0;
  // Sends the batch without waiting for the replies. The default implementation calls execute().
  virtual std::unique_ptr<Pending> begin(std::vector<Request> batch);
  virtual const Placement& placement() const = 0;

  Reply execute(const Request& request) { return std::move(execute(std::span(&request, 1)).front()); }
  std::size_t server_of(const Request& request) const {
    return request.server ? *request.server : placement().server_of(request.placed_by());
  }
  std::string address_of(std::size_t server) const { return placement().pool().at(server).address(); }
};

// Returns `reply`, or throws its failure: NotApplied, UnknownOutcome or CorruptData (incr of text).
const Reply& expect(const Cluster& cluster, const Reply& reply);
Reply expect(const Cluster& cluster, Reply&& reply);
// Same as expect(), for requests that change nothing: a missing reply throws NotApplied (unavailable).
const Reply& expect_read(const Cluster& cluster, const Reply& reply);

ErrorCode error_code_of(const ReplyFailure& failure);
// Same as error_code_of(), for a read: a missing reply means that the server is unavailable.
ErrorCode error_code_of_silence(const ReplyFailure& failure);
// Returns what expect() or expect_read() would throw for this failed reply.
Failure failure_of(const Cluster& cluster, const Reply& reply);
Failure failure_of_read(const Cluster& cluster, const Reply& reply);

class Peers;

struct TracedRequest {
  std::size_t server;
  std::string_view address;
  const Request& request;
  const Reply& reply;
  std::chrono::microseconds elapsed;  // until the reply came, if the transport reports it
};

struct ConnectOptions {
  Duration timeout = std::chrono::seconds(1);  // maximum time to wait for one reply
  Duration connect_timeout = std::chrono::milliseconds(500);
  enum class Protocol { automatic, classic, meta, binary } protocol = Protocol::automatic;
  // The run of these connections. An unhealthy server costs it one timeout; its deadline is kept.
  std::shared_ptr<const RunLimits> run = nullptr;
  // Called for every request that went to a server, with the reply.
  std::function<void(const TracedRequest&)> trace = nullptr;
  // Records where each connection ends, if set (distinct.hpp).
  std::shared_ptr<Peers> peers = nullptr;
  // Called for each open TLS connection, with the time when the server's certificate expires.
  std::function<void(std::size_t server, WallTime)> certificate = nullptr;

  // Returns the deadline of a request that is sent now.
  SteadyTime latest(SteadyTime now, Duration longest) const {
    return run ? run->earlier(now + longest) : now + longest;
  }
  // Returns how long the caller may still wait for an operation that takes at most `longest`.
  Duration left(const Clock& clock, Duration longest) const {
    const SteadyTime now = clock.steady();
    return std::max(latest(now, longest) - now, Duration::zero());
  }
  // Throws Failure(try_again) once the run is over.
  void check_deadline(const Clock& clock) const {
    if (run) run->check(clock.steady());
  }
};

// Returns a cluster over real servers. It connects to each server on first use. OpenSSL and the files of the
// Credentials are loaded when a TLS server is first used; then a request throws Failure (cannot_read,
// configuration, system) if that fails.
std::unique_ptr<Cluster> connect(std::shared_ptr<const Placement> placement, const ConnectOptions& options);

}  // namespace mcds

// execute() sends a batch and returns the replies in the order of its requests. It takes at most one round
// trip to each server, all servers in parallel; composites may take more on servers without meta commands.
// Each server executes its requests in the order of the batch, but servers are not ordered among each other.
// A transport never resends. With ConnectOptions::run, requests that provably had no effect are retried once
// (health_guard.cpp). Errors of servers and networks are reported in the replies, not thrown. Every call
// returns within the transport's deadlines.
//
// begin() returns once the batch is sent, so that servers and caller work in parallel. Batches are executed
// in the order in which begin() and execute() were called, and may be finished in any order. There is one
// exception: in a large batch, items that incr_or_create found missing are created in a second trip, which
// may come after batches that began later. The same holds for increments that are retried.
//
// Implementations: connect(); MemoryCluster in tests; decorators in decorators.hpp.
