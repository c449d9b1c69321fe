// Looks up host names within a time limit; the system's resolver may wait many seconds for a name server.
#pragma once

#include <netdb.h>

#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.hpp"

namespace mcds {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

struct NameLookup {
  Addresses addresses{nullptr, freeaddrinfo};  // null if there are none; then `error` says why
  std::string error;
};

// Returns the stream addresses of a name in the order of getaddrinfo(). `flags` and `family` are those of
// addrinfo. A lookup that takes longer than `longest` fails, but continues in the background: the next call
// for the same name does not wait again, and returns the result once it has arrived.
NameLookup look_up(const std::string& host, const std::string& port, Duration longest,
                   int flags = AI_ADDRCONFIG, int family = AF_UNSPEC);

// Returns the address as text or its host name, by getnameinfo()'s `flags`, or nullopt.
std::optional<std::string> host_of(const sockaddr* address, socklen_t size, int flags = NI_NUMERICHOST);

}  // namespace mcds
