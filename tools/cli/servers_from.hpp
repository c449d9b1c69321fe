// --servers-from KIND:WHERE: pools from other programs' files and from the network.
#pragma once

#include <string_view>

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/cluster/health/run_limits.hpp"
#include "common/placement/placement.hpp"
#include "common/placement/pools/files.hpp"
#include "tools/cli/access.hpp"

namespace mcds {

// How long a name server is waited for.
constexpr Duration longest_lookup = std::chrono::seconds(5);

// Names and addresses as this machine resolves them, for the profiles of clients that hash what a name
// resolves to. It waits no longer than `limits` allows.
Resolver system_resolver(std::shared_ptr<const RunLimits> limits);

struct FoundServers {
  PoolFile file;
  bool discovered = false;            // by a name server or an endpoint, whose answers anybody may have sent
  bool tls = false;                   // the source says so, for all of them
  std::string certificate_name = {};  // what their certificates are for; empty: each server's own host
};

// nutcracker:FILE[#POOL]  mcrouter:FILE[#POOL]  php-ini:FILE[#POOL]  django:FILE[#CACHE]  oslo:FILE[#SECTION]
// file:LIST  dns:[tls://]HOST[:PORT]  dnssrv:[tls://]NAME  elasticache:[tls://]HOST:PORT  dsn:VARIABLE
// dalli:VARIABLE  env:NAME  libmemcached:STRING  libmemcached:@FILE
// DNS answers are put in numerical order, because many clients place by index.
// `access`: for an endpoint that is asked. Throws Failure(cannot_read), Failure(configuration),
// Failure(unavailable), Failure(refused) for a name or an address that is none, or InvalidInput.
FoundServers find_servers(std::string_view source, const Access& access, const ConnectOptions& options,
                          const Clock& clock);

}  // namespace mcds
