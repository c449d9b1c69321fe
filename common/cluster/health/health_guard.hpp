// Around a transport: a server that does not answer costs one timeout per run, not one per batch. Its
// contract stands at the end of this file.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/decorators.hpp"
#include "common/cluster/health/run_limits.hpp"
#include "common/cluster/health/trial.hpp"
#include "common/cluster/tls/context.hpp"

namespace mcds {

class HealthGuard final : public Decorator {
 public:
  // `options.run` must be set.
  HealthGuard(std::unique_ptr<Cluster> inner, const ConnectOptions& options);
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

 private:
  using Places = std::vector<std::size_t>;  // in a batch
  struct Server {
    bool sick = false;
    bool doubted = false;  // its connection failed, and nothing was sent since
    bool proven = true;    // it has answered a request since it was sick
    int relapses = 0;      // without having answered one
    std::string cause;
    SteadyTime held_until{};
    SteadyTime next_trial{};
    SteadyTime trial_until{};
    std::unique_ptr<Trial> trial;
  };

  bool stands_aside() const;
  Places send_to_the_well(std::span<const Request> batch, std::vector<Reply>& replies);
  // Settles the replies of what was sent at `places` (all, if it is empty).
  void settle(std::span<const Request> batch, const Places& places, std::vector<Reply>& replies,
              bool changes_too);
  // What one trip shows of the servers.
  void note(const Places& places, const std::vector<Reply>& replies);
  void fail(Server& server, const ReplyFailure& failure);
  Places tried_again(std::span<const Request> batch, const Places& places, const std::vector<Reply>& replies,
                     bool changes_too) const;
  void look_at(std::size_t server);
  void hold_for(const std::set<std::size_t>& servers);

  const ConnectOptions options_;
  SystemClock clock_;
  std::vector<Server> servers_;
  tls::Contexts tls_;
  std::size_t watched_ = 0;  // servers that are sick, in doubt or not yet proven well
};

}  // namespace mcds

// After a timeout or a failed connection a server is sick. Requests to it fail at once, unsent, with the
// original cause, until it answers a trial on a separate connection. In batches (Sick::hold) they are first
// held back for at most one timeout from the beginning of the sickness, so a short pause fails none. A server
// that answers trials and nothing else is tried less and less often.
//
// A connection that failed before the timeout leaves the server in doubt for one more request: what comes
// next may be the look that settles whether a change was applied, and another connection shows it at once.
// Only when that fails too is the server sick. Not in batches: those are held instead, until a trial
// succeeds, and lose nothing by it.
//
// Requests that provably had no effect are tried once more on a new connection: reads, and changes of which
// nothing was sent. Never after a request for the same key whose outcome is unknown, never for what sickness
// failed, and after a timeout only once a trial has succeeded. Of batches that were begun, only reads, for
// later batches may have overtaken their changes; a begun batch of nothing but increments is tried again too,
// since increments give the same sum in any order.
