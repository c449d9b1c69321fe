#include "tests/support/backends.hpp"

#include <poll.h>

#include <deque>

#include "tests/support/fault_proxy.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds::test {

namespace {

class RealBackend final : public Backend {
 public:
  RealBackend(const std::string& protocol, std::size_t servers, const std::vector<std::string>& arguments) {
    std::vector<Server> addresses;
    for (std::size_t i = 0; i < servers; ++i) {
      addresses.push_back(processes_.emplace_back(arguments).server());
      if (protocol != "old") continue;
      FaultProxy& proxy = proxies_.emplace_back(addresses.back());
      proxy.always(Fault::no_meta);
      addresses.back() = proxy.server();
    }
    const auto placement = placement_over(addresses);
    const ConnectOptions options = options_of(protocol, std::chrono::seconds(10));
    cluster_ = connect(placement, options);
    rival_ = connect(placement, options);
  }
  Cluster& cluster() override { return *cluster_; }
  Cluster& rival() override { return *rival_; }
  void pass(std::chrono::seconds time) override { poll(nullptr, 0, static_cast<int>(time.count()) * 1000); }
  void restart(std::size_t server) override { processes_.at(server).restart(); }

 private:
  std::deque<MemcachedProcess> processes_;
  std::deque<FaultProxy> proxies_;
  std::unique_ptr<Cluster> cluster_, rival_;
};

class MemoryBackend final : public Backend {
 public:
  explicit MemoryBackend(std::size_t servers) : cluster_(clock_.time(), servers) {}
  Cluster& cluster() override { return cluster_; }
  Cluster& rival() override { return cluster_; }
  void pass(std::chrono::seconds time) override { clock_.advance(time); }
  void restart(std::size_t server) override { cluster_.restart(server); }

 private:
  FakeClock clock_;
  MemoryCluster cluster_;
};

}  // namespace

const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names = {"classic", "meta", "automatic", "old", "memory"};
  return names;
}

ConnectOptions::Protocol protocol_named(const std::string& name) {
  if (name == "classic") return ConnectOptions::Protocol::classic;
  return name == "meta" ? ConnectOptions::Protocol::meta : ConnectOptions::Protocol::automatic;
}

ConnectOptions options_of(const std::string& protocol, std::chrono::milliseconds timeout) {
  return {.timeout = timeout, .connect_timeout = timeout, .protocol = protocol_named(protocol)};
}

std::shared_ptr<const Placement> placement_over(const std::vector<Server>& servers) {
  return make_placement("ketama", pool_of(servers));
}

std::unique_ptr<Backend> make_backend(const std::string& name, std::size_t servers,
                                      std::vector<std::string> arguments) {
  if (name == "memory") return std::make_unique<MemoryBackend>(servers);
  return std::make_unique<RealBackend>(name, servers, arguments);
}

}  // namespace mcds::test
