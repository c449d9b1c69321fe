// Amazon ElastiCache's auto discovery: the one command of a configuration endpoint that is no memcached operation.
#pragma once

#include <string>

#include "common/base/clock.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds {

// The payload of `config get cluster` (see parse_elasticache), within `timeout` altogether. Throws NotApplied
// (unavailable: no connection, no answer; refused: anything but a configuration).
std::string elasticache_config(const Server& endpoint, Duration timeout, const Clock& clock);

}  // namespace mcds
