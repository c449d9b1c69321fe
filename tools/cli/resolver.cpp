#include "tools/cli/resolver.hpp"

#include <array>
#include <utility>

#include "common/base/within.hpp"
#include "common/cluster/name_lookup.hpp"

namespace mcds {

namespace {

using Name = std::optional<std::string>;

class Lookups {
 public:
  explicit Lookups(std::shared_ptr<const RunLimits> limits) : limits_(std::move(limits)) {}

  std::optional<std::string> address_of(const std::string& name) const {
    for (const int family : {AF_INET, AF_INET6}) {
      if (Addresses found = look_for(name, 0, family); found != nullptr)
        return text_of(std::move(found), NI_NUMERICHOST);
    }
    return std::nullopt;
  }
  std::optional<std::string> host_name_of(const std::string& address) const {
    return text_of(look_for(address, AI_NUMERICHOST, AF_UNSPEC), NI_NAMEREQD);
  }

 private:
  Duration left() const {
    const SteadyTime now = SystemClock().steady();
    return limits_->earlier(now + longest_lookup) - now;
  }
  Addresses look_for(const std::string& name, int flags, int family) const {
    return std::move(look_up(name, "", left(), flags, family).addresses);
  }
  std::optional<std::string> text_of(Addresses found, int flags) const {
    if (found == nullptr) return std::nullopt;
    const auto name = within(left(), [found = std::shared_ptr<addrinfo>(std::move(found)), flags]() -> Name {
      std::array<char, NI_MAXHOST> text{};
      const int code =
          getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0, flags);
      return code == 0 ? Name(text.data()) : std::nullopt;
    });
    return name.value_or(std::nullopt);
  }

  std::shared_ptr<const RunLimits> limits_;
};

}  // namespace

Resolver system_resolver(std::shared_ptr<const RunLimits> limits) {
  const Lookups lookups(std::move(limits));
  return {[lookups](const std::string& name) { return lookups.address_of(name); },
          [lookups](const std::string& address) { return lookups.host_name_of(address); }};
}

}  // namespace mcds
