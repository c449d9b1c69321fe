// Parts that all clients of in-memory servers share, under any scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "common/primitives/context.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds {

// A client's connection to one server.
struct MemoryConnection {
  std::uint64_t incarnation = 0;                            // server start that it leads to; 0: not connected
  std::unordered_map<std::string, CasUnique> uniques = {};  // cas tokens fetched on it; others never match

  bool allows(const Request& request) const;
  Reply execute(MemoryServer& server, std::size_t index, const Request& request);
};

// A client that sees all servers as they are, at once. Its sleep advances the time of all clients.
class Observer {
 public:
  Observer(MemoryCluster& cluster, VirtualTime& time, std::uint64_t seed)
      : clock_(time), random_(seed), context_{cluster, clock_, random_, {}} {}
  Context& context() { return context_; }

 private:
  class OnTime final : public Clock {
   public:
    explicit OnTime(VirtualTime& time) : time_(time) {}
    WallTime wall() const override { return time_.wall(); }
    SteadyTime steady() const override { return time_.steady(); }
    void sleep_for(Duration duration) override {
      if (duration > Duration::zero()) time_.advance(duration);
    }

   private:
    VirtualTime& time_;
  };

  OnTime clock_;
  SeededRandom random_;
  Context context_;
};

}  // namespace mcds
