// The backends on which a contract is tested: real servers through each protocol, and in-memory servers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/cluster/cluster.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/memcached_process.hpp"

namespace mcds::test {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Cluster& cluster() = 0;
  // Returns another client of the same servers.
  virtual Cluster& rival() = 0;
  // Advances the servers' clocks by `time`.
  virtual void pass(std::chrono::seconds time) = 0;
  virtual void restart(std::size_t server) = 0;
};

// "classic", "meta", "automatic", "old" (automatic, with ERROR to meta commands), "memory".
const std::vector<std::string>& backend_names();
// Makes a backend. `arguments` are passed to memcached; "memory" ignores them.
std::unique_ptr<Backend> make_backend(const std::string& name, std::size_t servers = 1,
                                      std::vector<std::string> arguments = {});

ConnectOptions::Protocol protocol_named(const std::string& name);
// Returns options with a short timeout, for tests that wait for it.
ConnectOptions options_of(const std::string& protocol, std::chrono::milliseconds timeout);
std::shared_ptr<const Placement> placement_over(const std::vector<Server>& servers);

}  // namespace mcds::test
