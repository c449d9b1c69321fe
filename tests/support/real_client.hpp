// The parts of a client process that works with real servers.
#pragma once

#include <memory>

#include "common/base/clock.hpp"
#include "common/base/random.hpp"
#include "common/cluster/cluster.hpp"
#include "common/primitives/context.hpp"

namespace mcds::test {

struct RealClient {
  RealClient(const Pool& pool, ConnectOptions::Protocol protocol, Duration timeout)
      : cluster(connect(make_placement("ketama", pool), {timeout, timeout, protocol})) {}
  Context context() { return {*cluster, clock, random, {}}; }

  std::unique_ptr<Cluster> cluster;
  SystemClock clock;
  SystemRandom random;
};

}  // namespace mcds::test
