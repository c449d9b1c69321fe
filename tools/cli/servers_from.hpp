// --servers-from KIND:WHERE: pools from other programs' files and from the network.
#pragma once

#include <string_view>

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/placement/pools/files.hpp"

namespace mcds {

// nutcracker:FILE[#POOL]  mcrouter:FILE[#POOL]  php-ini:FILE  file:LIST  dns:HOST[:PORT]  dnssrv:NAME
// elasticache:[tls://]HOST:PORT  env:NAME. DNS answers are put in numerical order, because many clients place by index.
// `tls` also for those that are asked over the network. Throws Failure(cannot_read), Failure(configuration), Failure(unavailable) or InvalidInput.
PoolFile pool_from(std::string_view source, bool tls, const ConnectOptions& options, const Clock& clock);

}  // namespace mcds
