// Amazon ElastiCache's auto discovery: the one command of a configuration endpoint that is not a memcached
// operation.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds {

// The payload of `config get cluster` (see parse_elasticache), within the timeout altogether; of a cluster
// older than 1.4.14, which does not know that command, the item AmazonElastiCache:cluster. Throws NotApplied
// (unavailable: no connection, no answer; access_denied; refused: anything but a configuration).
std::string elasticache_config(const Server& endpoint, const ConnectOptions& options, const Clock& clock);

// The payload of an endpoint's reply to either; nullopt if it is not a configuration.
std::optional<std::string> elasticache_payload(std::string_view answer);

}  // namespace mcds
