// Plain sockets for tests.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/placement/pools/pool.hpp"

namespace mcds::test {

// Returns a blocking stream socket to a numeric address or unix path, or -1 if no process listens.
int connect_to(const Server& server);
// Returns a listening, non-blocking unix socket. Throws std::runtime_error.
int listen_at(const std::string& path);

// Sends `text` on a connection of its own. Returns the answer up to and including `end`, or up to the end of
// the connection, or until nothing arrives for `patience`.
std::string talk(const Server& server, std::string_view text, std::string_view end = "\r\n",
                 std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace mcds::test
