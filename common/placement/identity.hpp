// What each client hashes for a server. A name given by the user (NAME=HOST:PORT) always wins.
#pragma once

#include "common/placement/profiles/profile.hpp"

namespace mcds::identity {

// HOST:PORT as configured; a unix socket's path alone.
std::string host_port(const Server& server, std::size_t, const Resolver&);
// The entry as the list has it: HOST or HOST:PORT.
std::string as_written(const Server& server, std::size_t, const Resolver&);
// As `elided`, but never of an IPv6 address.
std::string npm(const Server& server, std::size_t, const Resolver&);
// HOSTPORT with nothing between them; a unix socket's path alone.
std::string run_together(const Server& server, std::size_t, const Resolver&);
// HOST alone when the port is 11211.
std::string elided(const Server& server, std::size_t, const Resolver&);
// As `elided`, and PATH:0 for a unix socket.
std::string libmemcached(const Server& server, std::size_t, const Resolver&);
// /HOST:PORT, never elided.
std::string libmemcached_spy(const Server& server, std::size_t, const Resolver&);
// As `elided`, and `PATH:` for a unix socket.
std::string twemproxy(const Server& server, std::size_t, const Resolver&);
// node0, node1 … where no name is given.
std::string numbered_node(const Server& server, std::size_t index, const Resolver&);
// HOST:PORT with an IPv6 address in brackets; a unix socket's path alone.
std::string bracketed(const Server& server, std::size_t, const Resolver&);
std::string pecl_memcache(const Server& server, std::size_t, const Resolver&);
// As written, then _USER_PASSWORD, without credentials.
std::string bmemcached(const Server& server, std::size_t, const Resolver&);
// HOST/HOST:PORT.
std::string evcache(const Server& server, std::size_t, const Resolver&);

// Java's InetSocketAddress as text: ADDRESS:PORT, or NAME/ADDRESS:PORT.
std::string spymemcached(const Server& server, std::size_t, const Resolver& resolver);
// The name, by a reverse look-up if an address was given, elided.
std::string java_name_elided(const Server& server, std::size_t, const Resolver& resolver);
std::string java_name_port(const Server& server, std::size_t, const Resolver& resolver);
// NAME/ADDRESS:PORT after a reverse look-up, /ADDRESS:PORT without a name.
std::string xmemcached(const Server& server, std::size_t, const Resolver& resolver);
// The resolved address: ADDRESS:PORT, or elided.
std::string address_port(const Server& server, std::size_t, const Resolver& resolver);
std::string address_elided(const Server& server, std::size_t, const Resolver& resolver);
// .NET's EndPoint as text: ADDRESS:PORT, or Unspecified/NAME:PORT.
std::string enyimcore(const Server& server, std::size_t, const Resolver&);

}  // namespace mcds::identity
