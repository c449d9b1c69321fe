#include "tools/cli/resolver.hpp"

#include <array>
#include <utility>

#include "common/cluster/name_lookup.hpp"

namespace mcds {

namespace {

constexpr Duration longest_lookup = std::chrono::seconds(5);

Addresses lookup(const std::string& name, int flags, int family) {
  return std::move(look_up(name, "", longest_lookup, flags, family).addresses);
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
