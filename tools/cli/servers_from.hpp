// Reads pools for --servers-from KIND:WHERE from other programs' files and from the network.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
#include "common/placement/placement.hpp"
#include "common/placement/pools/files.hpp"
#include "tools/cli/access.hpp"

namespace mcds {

// The longest wait for a name server.
constexpr Duration max_lookup = std::chrono::seconds(5);

// Returns a resolver that uses this machine's settings, for the profiles of clients that hash the addresses
// of a name. It waits no longer than `limits` allows.
Resolver system_resolver(const std::shared_ptr<const RunLimits>& limits);

struct FoundServers {
  PoolFile file;
  bool discovered = false;  // found by a name server or an endpoint, whose answers anybody may have sent
  bool tls = false;         // the source requires TLS for all servers
  std::string certificate_name = {};  // the name in their certificates; empty: each server's own host
};

// Finds the servers of a source:
//   nutcracker:FILE[#POOL]  mcrouter:FILE[#POOL]  php-ini:FILE[#POOL]  django:FILE[#CACHE]
//   oslo:FILE[#SECTION]  json:FILE[#POINTER]  libketama:FILE  file:LIST
//   dns:[tls://]HOST[:PORT]  dnssrv:[tls://]NAME  elasticache:[tls://]HOST:PORT  dsn:VARIABLE
//   dalli:VARIABLE  env:NAME  libmemcached:STRING  libmemcached:@FILE
// DNS answers are sorted numerically, because many clients place keys by index. `access` is used for an
// endpoint that is queried. Throws Failure(cannot_read), Failure(configuration), Failure(unavailable),
// Failure(refused) if a name or an address does not exist, or InvalidInput.
FoundServers find_servers(std::string_view source, const Access& access, const ConnectOptions& options,
                          const Clock& clock);

// Queries a name server for SRV records (RFC 2782) and parses the answer.

struct ServiceRecord {
  std::string target;
  unsigned priority, weight, port;
};

// Returns the resolver's answer for the service, empty without such records, or nullopt if it takes longer.
// The resolver's thread then continues.
std::optional<std::vector<unsigned char>> look_up_service(const std::string& name, Duration longest);

// Returns the records of an answer. Malformed records are skipped.
std::vector<ServiceRecord> parse_service_records(std::span<const unsigned char> answer);

}  // namespace mcds
