// A pool of in-memory servers behind the Cluster interface, for tests of time and for the simulation.
#pragma once

#include <deque>
#include <vector>

#include "common/cluster/cluster.hpp"
#include "tests/support/memory_server.hpp"

namespace mcds {

// Servers named m1, m2 …. A key is on server crc32(key) modulo their number, its copies on the next ones.
std::shared_ptr<const Placement> make_test_placement(std::size_t servers);

class MemoryCluster final : public Cluster {
 public:
  explicit MemoryCluster(const VirtualTime& time, std::size_t servers = 1, MemoryServerOptions options = {});
  MemoryCluster(const VirtualTime& time, std::shared_ptr<const Placement> placement,
                MemoryServerOptions options = {});

  // Applies everything at once. Requests to a stopped server are `unknown` and are applied when it continues;
  // requests to a killed server are `unreachable`.
  std::vector<Reply> execute(std::span<const Request> batch) override;
  using Cluster::execute;
  const Placement& placement() const override { return *placement_; }

  std::size_t size() const { return servers_.size(); }
  MemoryServer& server(std::size_t index) { return servers_.at(index); }
  MemoryServer& server_for(std::string_view key) { return servers_.at(placement_->server_of(key)); }

  bool evict(std::string_view key) { return server_for(key).evict(key); }
  void restart(std::size_t server);
  // Stop and continue a server, like SIGSTOP and SIGCONT.
  void stop(std::size_t server) { states_.at(server) = State::stopped; }
  void proceed(std::size_t server);
  // Kills a server, like SIGKILL; restart() brings it back.
  void kill(std::size_t server);

 private:
  enum class State { running, stopped, dead };
  Reply execute_one(const Request& request);

  std::shared_ptr<const Placement> placement_;
  std::deque<MemoryServer> servers_;
  std::vector<State> states_;
  std::vector<std::vector<Request>> queued_;
};

}  // namespace mcds
