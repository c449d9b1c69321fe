#include "tests/support/memory_cluster.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

class TestPlacement final : public Placement {
 public:
  explicit TestPlacement(std::size_t servers) {
    for (std::size_t i = 1; i <= servers; ++i) {
      Server server;
      server.host = 'm' + std::to_string(i);
      server.name = server.host;
      pool_.push_back(std::move(server));
    }
  }
  const Pool& pool() const override { return pool_; }
  std::string_view profile() const override { return "test"; }
  std::uint64_t hash_of(std::string_view key) const override { return crc32(key); }
  std::size_t server_of(std::string_view key) const override {
    return pool_.size() == 1 ? 0 : hash_of(key) % pool_.size();
  }
  std::vector<std::size_t> servers_of(std::string_view key, std::size_t count) const override {
    std::vector<std::size_t> servers;
    for (std::size_t i = 0; i < std::min(count, pool_.size()); ++i) {
      servers.push_back((server_of(key) + i) % pool_.size());
    }
    return servers;
  }

 private:
  Pool pool_;
};

}  // namespace

std::shared_ptr<const Placement> make_test_placement(std::size_t servers) {
  return std::make_shared<TestPlacement>(servers);
}

MemoryCluster::MemoryCluster(const VirtualTime& time, std::size_t servers, MemoryServerOptions options)
    : MemoryCluster(time, make_test_placement(servers), options) {}

MemoryCluster::MemoryCluster(const VirtualTime& time, std::shared_ptr<const Placement> placement,
                             MemoryServerOptions options)
    : placement_(std::move(placement)) {
  const std::size_t size = placement_->pool().size();
  for (std::size_t i = 0; i < size; ++i) servers_.emplace_back(time, i, options);
  states_.assign(size, State::running);
  queued_.resize(size);
}

std::vector<Reply> MemoryCluster::execute(std::span<const Request> batch) {
  std::vector<Reply> replies;
  replies.reserve(batch.size());
  for (const Request& request : batch) replies.push_back(execute_one(request));
  return replies;
}

Reply MemoryCluster::execute_one(const Request& request) {
  const std::size_t index = server_of(request);
  switch (states_.at(index)) {
    case State::running: return servers_[index].execute(request);
    case State::dead: return Reply::failed_with(ReplyFailure::Kind::unreachable, "connection refused", index);
    case State::stopped: break;
  }
  queued_[index].push_back(request);
  return Reply::failed_with(ReplyFailure::Kind::unknown, "no reply", index);
}

void MemoryCluster::restart(std::size_t server) {
  states_.at(server) = State::running;
  queued_[server].clear();
  servers_[server].restart();
}

void MemoryCluster::proceed(std::size_t server) {
  states_.at(server) = State::running;
  for (const Request& request : queued_[server]) servers_[server].execute(request);
  queued_[server].clear();
}

void MemoryCluster::kill(std::size_t server) {
  states_.at(server) = State::dead;
  queued_[server].clear();
  servers_[server].restart();
}

}  // namespace mcds
