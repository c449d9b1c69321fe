// Server and Pool: servers as given by the user, parsed and printed; names are resolved when connecting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mcds {

constexpr std::uint16_t default_port = 11211;

struct Credentials;

struct Server {
  std::string host = {};  // without brackets; empty for a unix socket
  std::uint16_t port = default_port;
  std::string socket_path = {};  // empty for TCP
  std::uint32_t weight = 1;
  std::string name = {};  // the text the client hashes instead of the address; empty: the address

  bool has_port = true;  // the list states it; some clients hash an entry as it is written
  bool tls = false;      // how to connect; not a part of its name
  // Login and TLS settings of the list that it came with (common/cluster/credentials.hpp), or none.
  std::shared_ptr<const Credentials> credentials = nullptr;

  bool is_unix() const { return !socket_path.empty(); }
  // Returns the address as it is displayed and as parse_pool accepts it: `10.0.0.1:11211`, `[::1]:11211`,
  // `unix:/run/m.sock`. The scheme is omitted: a server is the same one with and without TLS.
  std::string address() const;
  // Returns the name, if it has one, otherwise the address.
  std::string label() const { return name.empty() ? address() : name; }

  bool operator==(const Server&) const = default;
};

// Servers in the given order, because many clients place by index.
using Pool = std::vector<Server>;

// Parses `HOST[:PORT][/?WEIGHT],…`, `[v6]:port`, `tls://HOST:PORT`, `unix:/path`, `NAME=HOST:PORT`. Throws
// InvalidInput for an empty list or entry, a login in it (which is not shown), port 0 or above 65535, unknown
// weight syntax, and control characters. A server may be listed twice; the meaning depends on the client.
Pool parse_pool(std::string_view text);

// Returns true for an IPv4 or IPv6 address without brackets.
bool is_address(const std::string& host);
// Returns true for a host of a server, which is a name or an address, that needs brackets in an entry.
inline bool is_ipv6(const std::string& host) {
  return host.find(':') != std::string::npos;
}
// Returns the entry that parse_pool reads as this server, with everything that clients hash.
std::string list_entry(const Server& server);
// Returns true for letters, digits, '-' and '_' between dots, at most 253 bytes; a final dot is allowed.
bool is_host_name(std::string_view text);
// Returns the server that a name server or an endpoint names: a host name or an address, and a port. The
// answer is untrusted, so nothing else is accepted. Throws Failure(refused) with the whole entry.
Server discovered_server(const std::string& host, std::string_view port, std::string_view entry);

// Returns, for each server, the index of the first one with the same address.
std::vector<std::size_t> first_of_each(const Pool& pool);
// Return each server once, and for each listed server its index in that pool.
Pool without_repeats(const Pool& pool);
std::vector<std::size_t> indexes_without_repeats(const Pool& pool);

}  // namespace mcds
