// --servers-from KIND:WHERE: pools from other programs' files and from the network.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/cluster.hpp"
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
// json:FILE[#POINTER]  libketama:FILE  file:LIST
// dns:[tls://]HOST[:PORT]  dnssrv:[tls://]NAME  elasticache:[tls://]HOST:PORT  dsn:VARIABLE
// dalli:VARIABLE  env:NAME  libmemcached:STRING  libmemcached:@FILE
// DNS answers are put in numerical order, because many clients place by index.
// `access`: for an endpoint that is asked. Throws Failure(cannot_read), Failure(configuration),
// Failure(unavailable), Failure(refused) for a name or an address that is none, or InvalidInput.
FoundServers find_servers(std::string_view source, const Access& access, const ConnectOptions& options,
                          const Clock& clock);

// A name server's answer for SRV records, and the records in it of a name server (RFC 2782).

struct ServiceRecord {
  std::string target;
  unsigned priority, weight, port;
};

// What the system's resolver answers for the service; empty: it has no such records; nullopt: no answer in
// time. The resolver itself would wait for many seconds; it goes on by itself.
std::optional<std::vector<unsigned char>> look_up_service(const std::string& name, Duration longest);

// Malformed records are skipped.
std::vector<ServiceRecord> parse_service_records(std::span<const unsigned char> answer);

}  // namespace mcds
