// Host names to addresses, in bounded time: the system's own resolver may wait many seconds for a name
// server.
#pragma once

#include <netdb.h>

#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.hpp"

namespace mcds {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

struct NameLookup {
  Addresses addresses{nullptr, freeaddrinfo};  // null: none, and `error` says why
  std::string error;
};

// Stream addresses of a name as getaddrinfo() orders them. A lookup that takes longer than `longest` is an
// error, and goes on by itself: the next lookup of the same name gets its answer once it is there, and does
// not wait a second time.
// `flags` and `family` are those of addrinfo.
NameLookup look_up(const std::string& host, const std::string& port, Duration longest,
                   int flags = AI_ADDRCONFIG, int family = AF_UNSPEC);

// An address in its own words, or by its name: as getnameinfo()'s `flags` say. nullopt: it has none.
std::optional<std::string> host_of(const sockaddr* address, socklen_t size, int flags = NI_NUMERICHOST);

}  // namespace mcds
