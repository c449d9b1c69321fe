#pragma once

#include "common/cluster/decorators.hpp"

namespace mcds {

// Counts batches: a batch is a round trip.
class CountingCluster final : public Decorator {
 public:
  explicit CountingCluster(Cluster& inner) : Decorator(inner) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    ++trips;
    return inner().execute(batch);
  }
  using Cluster::execute;
  int trips = 0;
};

}  // namespace mcds
