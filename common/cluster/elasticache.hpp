// Auto discovery of Amazon ElastiCache: the command that only its configuration endpoints have.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds {

// Returns the payload of `config get cluster` (see parse_elasticache) within the total timeout. Clusters
// older than 1.4.14 lack that command; there the item AmazonElastiCache:cluster is read. Throws NotApplied:
// unavailable without a connection or reply, access_denied, or refused for other replies.
std::string elasticache_config(const Server& endpoint, const ConnectOptions& options, const Clock& clock);

// Returns the payload of either reply, or nullopt if it is not a configuration.
std::optional<std::string> elasticache_payload(std::string_view answer);

}  // namespace mcds
