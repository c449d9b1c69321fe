#include "tools/cli/resolver.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <memory>

namespace mcds {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses lookup(const std::string& name, int flags, int family) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = family;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

std::optional<std::string> text_of(const addrinfo* address, int flags) {
  std::array<char, NI_MAXHOST> text{};
  if (address == nullptr ||
      getnameinfo(address->ai_addr, address->ai_addrlen, text.data(), text.size(), nullptr, 0, flags) != 0) {
    return std::nullopt;
  }
  return text.data();
}

std::optional<std::string> address_of(const std::string& name) {
  for (const int family : {AF_INET, AF_INET6}) {
    if (const Addresses found = lookup(name, 0, family); found != nullptr)
      return text_of(found.get(), NI_NUMERICHOST);
  }
  return std::nullopt;
}

std::optional<std::string> host_name_of(const std::string& address) {
  return text_of(lookup(address, AI_NUMERICHOST, AF_UNSPEC).get(), NI_NAMEREQD);
}

}  // namespace

Resolver system_resolver() {
  return {address_of, host_name_of};
}

}  // namespace mcds
