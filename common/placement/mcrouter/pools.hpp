// The `pools` of an mcrouter configuration: servers, weights and tags after inheritance.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/placement/mcrouter/json_tree.hpp"

namespace mcds {

// A destination as parse_pool reads it, without its protocol: host:port, behind tls:// if it, or else its
// pool, says so.
// `pool_has_tls`: what the pool says.
std::string mcrouter_address(std::string_view server, std::uint64_t port_override, bool pool_has_tls);

// Whether this `security_mech` is TLS. Throws Failure(configuration) for what is neither that nor plain.
bool mcrouter_tls(std::string_view mechanism);

class McrouterPools {
 public:
  explicit McrouterPools(const JsonNode& config);

  // By name, or an object {"name":…,"servers":…} in a route, which is known by its name from then on.
  struct Named {
    std::string name;
    const JsonNode* json;
  };
  Named pool(const JsonNode& reference);
  bool has(std::string_view name) const { return known_.contains(name); }

  // A member of the pool, or of one that it inherits from, or null.
  const JsonNode* member(const Named& pool, std::string_view name) const;

 private:
  std::map<std::string, const JsonNode*, std::less<>> known_;
};

}  // namespace mcds
