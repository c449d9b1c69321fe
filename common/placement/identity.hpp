// What each client hashes for a server. A name the user gave (NAME=HOST:PORT) always wins.
#pragma once

#include "common/placement/profile.hpp"

namespace mcds::identity {

// HOST:PORT as configured; a unix socket's path alone.
std::string host_port(const Server& server, std::size_t, const Resolver&);
// libmemcached: HOST alone for port 11211; PATH:0 for a unix socket.
std::string libmemcached(const Server& server, std::size_t, const Resolver&);

}  // namespace mcds::identity
