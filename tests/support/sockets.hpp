// Plain sockets for tests.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/placement/pools/pool.hpp"

namespace mcds::test {

// A blocking stream socket to a numeric address or unix path; -1 when nobody listens.
int connect_to(const Server& server);
// A listening unix socket, non-blocking; throws std::runtime_error.
int listen_at(const std::string& path);

// Sends `text` on a connection of its own and returns what comes back up to and including `end` (or up to the
// connection's end, or `patience` of silence).
std::string talk(const Server& server, std::string_view text, std::string_view end = "\r\n",
                 std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace mcds::test
