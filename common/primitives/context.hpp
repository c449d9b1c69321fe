// Everything that a structure may use of the outside world.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/clock.hpp"
#include "common/base/random.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds {

struct Context {
  Cluster& cluster;
  Clock& clock;
  Random& random;
  std::string key_prefix;  // the namespace: put before every key and hashed with it
  std::size_t copies = 1;  // of each key, on that many distinct servers

  Context in_copies(std::size_t number) const { return {cluster, clock, random, key_prefix, number}; }
};

}  // namespace mcds
