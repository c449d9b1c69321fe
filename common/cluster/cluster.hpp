// The interface between data structures and servers. Its contract stands at the end of this file.
#pragma once

#include <atomic>
#include <span>

#include "common/base/clock.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/request.hpp"
#include "common/placement/placement.hpp"

namespace mcds {

// The bounds of a run of the program as a whole, and how it treats servers that do not answer. All its
// clusters share one, threads included.
class RunLimits {
 public:
  enum class Sick {
    skip,        // its requests fail at once until a trial succeeds
    hold,        // the same, after they were held for one timeout
    try_always,  // as if it were well: what must not be left undone
  };
  Sick sick() const { return sick_; }
  void treat(Sick sick) { sick_ = sick; }

  // After it nothing is waited for, and nothing sent. Once the run is interrupted, it has passed.
  SteadyTime deadline() const { return signal_ != 0 ? SteadyTime() : SteadyTime(Duration(deadline_)); }
  void set_deadline(SteadyTime when) { deadline_ = when.time_since_epoch().count(); }
  // A signal ends the run as its deadline does: what is under way is finished, nothing else is begun.
  void expect_signals() { expects_signals_ = true; }
  void interrupt(int signal) { signal_ = signal; }  // in a signal's handler
  int signal() const { return signal_; }            // that has interrupted it, or 0
  // Returns whether a deadline or a signal may end the run before its work is done.
  bool may_be_cut() const { return expects_signals_ || deadline() != SteadyTime::max(); }
  bool over(SteadyTime now) const { return now >= deadline(); }
  SteadyTime earlier(SteadyTime when) const { return std::min(when, deadline()); }
  std::string why_over() const { return signal_ != 0 ? "interrupted" : "the deadline has passed"; }
  Failure failure(const std::string& server = {}) const {
    return {ErrorCode::try_again, "not finished: " + why_over(), server};
  }
  // Throws it once it is over.
  void check(SteadyTime now) const {
    if (over(now)) throw failure();
  }

 private:
  std::atomic<Sick> sick_ = Sick::skip;
  std::atomic<Duration::rep> deadline_ = Duration::max().count();
  std::atomic<int> signal_ = 0;
  std::atomic<bool> expects_signals_ = false;
};

}  // namespace mcds

namespace mcds {

// A batch in flight; its cluster outlives it. If it is dropped unfinished, its requests may be applied, and
// other batches in flight to the same servers fail.
class Pending {
 public:
  virtual ~Pending() = default;
  // As execute(): waits for the missing replies; the time since begin() does not count against the servers.
  // Call it once.
  virtual std::vector<Reply> finish() = 0;
  // The batch that was begun, even after it is finished.
  virtual std::span<const Request> batch() const = 0;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual std::vector<Reply> execute(std::span<const Request> batch) = 0;
  // Unless overridden, the batch is executed at once.
  virtual std::unique_ptr<Pending> begin(std::vector<Request> batch);
  virtual const Placement& placement() const = 0;

  Reply execute(const Request& request) { return std::move(execute(std::span(&request, 1)).front()); }
  std::size_t server_of(const Request& request) const {
    return request.server ? *request.server : placement().server_of(request.placed_by());
  }
  std::string address_of(std::size_t server) const { return placement().pool().at(server).address(); }
};

// The reply itself, unless it failed: then NotApplied, UnknownOutcome or CorruptData (incr on text) is
// thrown.
const Reply& expect(const Cluster& cluster, const Reply& reply);
Reply expect(const Cluster& cluster, Reply&& reply);
// As expect, for requests that change nothing: without a reply they are NotApplied (unavailable).
const Reply& expect_read(const Cluster& cluster, const Reply& reply);

ErrorCode error_code_of(const ReplyFailure& failure);
// Of a read, which changes nothing: without a reply its server is unavailable.
ErrorCode error_code_of_silence(const ReplyFailure& failure);
// Of a reply that failed: what expect() and expect_read() throw for it, by its code.
Failure failure_of(const Cluster& cluster, const Reply& reply);
Failure failure_of_read(const Cluster& cluster, const Reply& reply);

class Peers;

struct TracedRequest {
  std::size_t server;
  std::string_view address;
  const Request& request;
  const Reply& reply;
  std::chrono::microseconds elapsed;  // until its server answered, if the transport reports it
};

struct ConnectOptions {
  Duration timeout = std::chrono::seconds(1);  // longest time to wait for one reply
  Duration connect_timeout = std::chrono::milliseconds(500);
  enum class Protocol { automatic, classic, meta, binary } protocol = Protocol::automatic;
  // The run to which these connections belong: sick servers cost it one timeout each, and its deadline is
  // kept.
  std::shared_ptr<const RunLimits> run = nullptr;
  // Called for every request that went to a server, with the reply.
  std::function<void(const TracedRequest&)> trace = nullptr;
  // Where the connections end, if that is to be known (distinct.hpp).
  std::shared_ptr<Peers> peers = nullptr;
  // Called for every connection with TLS that is open: when the server's certificate ends.
  std::function<void(std::size_t server, WallTime)> certificate = nullptr;

  // The deadline of a request that is sent now.
  SteadyTime latest(SteadyTime now, Duration longest) const {
    return run ? run->earlier(now + longest) : now + longest;
  }
  // How long may be waited from now on, for what takes `longest` at most.
  Duration left(const Clock& clock, Duration longest) const {
    const SteadyTime now = clock.steady();
    return std::max(latest(now, longest) - now, Duration::zero());
  }
  // Throws Failure(try_again) once the run is over.
  void check_deadline(const Clock& clock) const {
    if (run) run->check(clock.steady());
  }
};

// A cluster over real servers. Connects on first use of each server; OpenSSL is loaded, and the files of the
// servers' Credentials are read, when a server with TLS is first used (Failure: cannot_read, configuration,
// system).
std::unique_ptr<Cluster> connect(std::shared_ptr<const Placement> placement, const ConnectOptions& options);

}  // namespace mcds

// A batch of requests goes in, and replies come out in the same order. One call is at most one round trip to
// each server involved, to all servers in parallel (composites may take more on servers without meta
// commands). Requests to the same server are executed in the order of the batch; between servers there is no
// order. A transport never resends; with ConnectOptions::run, requests that provably had no effect are tried
// once more (health_guard.cpp). execute() never throws for errors of servers or networks: each reply has its
// own outcome. No call lasts longer than the transport's deadlines allow.
//
// begin() sends a batch and leaves its replies for later, so that servers and caller work in parallel.
// Batches are executed in the order in which they are begun, whether by begin() or execute(), and may be
// finished in any order. One exception: what incr_or_create found missing in a large batch is created by a
// second trip, perhaps behind a batch that was begun later; so are increments that are tried again.
//
// Implementations: connect(); MemoryCluster in tests; decorators in decorators.hpp.
