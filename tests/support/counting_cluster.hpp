#pragma once

#include "common/cluster/cluster.hpp"

namespace mcds {

// Counts batches: a batch is a round trip.
class CountingCluster final : public Cluster {
 public:
  explicit CountingCluster(Cluster& inner) : inner_(inner) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    ++trips;
    return inner_.execute(batch);
  }
  using Cluster::execute;
  const Placement& placement() const override { return inner_.placement(); }
  int trips = 0;

 private:
  Cluster& inner_;
};

}  // namespace mcds
