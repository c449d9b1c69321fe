// Servers as given by the user. Parsing and printing only; names are resolved when connecting.
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
  std::string name = {};  // what the client hashes instead of the address; empty: the address

  bool has_port = true;  // the list says it; some clients hash an entry as it is written
  bool tls = false;      // how to connect; not a part of its name
  // What it may be shown (common/cluster/credentials.hpp): those of the list that it came with, or none.
  std::shared_ptr<const Credentials> credentials = nullptr;

  bool is_unix() const { return !socket_path.empty(); }
  // As shown to people and accepted by parse_pool: `10.0.0.1:11211`, `[::1]:11211`, `unix:/run/m.sock`.
  // Without the scheme: a server stays the same one when it is reached by TLS.
  std::string address() const;
  // What people call it: its name, if it has one.
  std::string label() const { return name.empty() ? address() : name; }

  bool operator==(const Server&) const = default;
};

// In the order given: many clients place by index.
using Pool = std::vector<Server>;

// `HOST[:PORT][/?WEIGHT],…`, `[v6]:port`, `tls://HOST:PORT`, `unix:/path`, `NAME=HOST:PORT`. Throws
// InvalidInput for an empty list or entry, a login in it (which is not shown), port 0 or above 65535, unknown
// weight syntax, control characters. A server may be listed twice; the meaning depends on the client.
Pool parse_pool(std::string_view text);

// Whether it is an IPv4 or IPv6 address, without brackets.
bool is_address(const std::string& host);
// Returns the entry that parse_pool reads as this server, with all that clients hash.
std::string list_entry(const Server& server);
// Letters, digits, '-' and '_' between dots, 253 bytes at most; one dot may end it.
bool is_host_name(std::string_view text);
// A server as a name server or an endpoint names it: a host name or an address, and a port. It may be anybody
// who answers, so nothing else is taken, as a list of the user's is. Throws Failure(refused) with the whole
// entry.
Server discovered_server(const std::string& host, std::string_view port, std::string_view entry);

// Of each server the index of the first that has its address.
std::vector<std::size_t> first_of_each(const Pool& pool);
// Each server once; and of each listed one its index in that.
Pool without_repeats(const Pool& pool);
std::vector<std::size_t> indexes_without_repeats(const Pool& pool);

}  // namespace mcds
