// RouteBuilder: converts mcrouter's JSON to a graph of Route. Unsupported constructs are refused by name.
#pragma once

#include <set>

#include "common/placement/mcrouter/json_tree.hpp"
#include "common/placement/mcrouter/routes.hpp"

namespace mcds {

// The `pools` of an mcrouter configuration: servers, weights and tags after inheritance.

// Returns a destination in the form of parse_pool, without its protocol: host:port, with tls:// if the
// server, or else its pool (`pool_has_tls`), requires TLS.
std::string mcrouter_address(std::string_view server, std::uint64_t port_override, bool pool_has_tls);

// Returns true if this `security_mech` is TLS. Throws Failure(configuration) unless it is TLS or plain.
bool mcrouter_tls(std::string_view mechanism);

class McrouterPools {
 public:
  explicit McrouterPools(const JsonNode& config);

  // A pool referred to by name, or defined in a route as {"name":…,"servers":…}, and then known by name.
  struct Named {
    std::string name;
    const JsonNode* json;
  };
  Named pool(const JsonNode& reference);
  bool has(std::string_view name) const { return known_.contains(name); }

  // Returns a member of the pool, or of a pool that it inherits from, or nullptr.
  const JsonNode* member(const Named& pool, std::string_view name) const;

 private:
  std::map<std::string, const JsonNode*, std::less<>> known_;
};

class RouteBuilder {
 public:
  explicit RouteBuilder(const JsonNode& config);

  // Builds one route and returns its index. Throws Failure(configuration).
  std::size_t build(const JsonNode& json) { return one(json, 0); }

  // A server of one pool; Route::server is an index into destinations().
  struct Destination {
    std::string address, pool;
    bool operator<(const Destination& other) const {
      return std::tie(address, pool) < std::tie(other.address, other.pool);
    }
  };
  const std::vector<Destination>& destinations() const { return destinations_; }
  const std::vector<Route>& routes() const { return routes_; }
  bool has_pool(std::string_view name) const { return pools_.has(name); }

  // Returns the part of `root` that leads to the pool, or nullopt.
  std::optional<std::size_t> part_for_pool(std::size_t root, const std::string& pool);

 private:
  using Ids = std::vector<std::size_t>;

  Ids list(const JsonNode& json, std::size_t depth);
  std::size_t one(const JsonNode& json, std::size_t depth);
  Ids named(const std::string& name, std::size_t depth, const JsonNode* json);
  Ids from_string(const std::string& text, std::size_t depth);
  Ids create(const std::string& type, const JsonNode& json, std::size_t depth);
  std::size_t child(const std::string& type, const JsonNode& json, const char* member, std::size_t depth);
  Ids children(const JsonNode& json, const char* member, std::size_t depth);

  bool has_tls(const McrouterPools::Named& pool) const;
  const Ids& pool_servers(const McrouterPools::Named& pool, std::size_t depth);
  std::size_t pool_route(const JsonNode& json, std::size_t depth);
  std::size_t hash_route(RouteHash hash, Ids ids);
  RouteHash hash_of(const std::string& function, const JsonNode* settings, const JsonNode* weights,
                    const JsonNode* tags, std::size_t children);
  std::size_t prefix_selector(const JsonNode& json, std::size_t depth);
  std::size_t operation_selector(const JsonNode& json, std::size_t depth);
  std::size_t modify_key(const JsonNode& json, std::size_t depth);
  std::size_t key_split(const JsonNode& json, std::size_t depth);
  std::size_t with_splits(std::size_t route, const JsonNode& splits);
  std::size_t failover(const std::string& type, const JsonNode& json, std::size_t depth);
  std::size_t replicating(Route::Kind kind, Ids ids, const std::string& type, bool ordered = true);

  // Adds a route; equal routes share one index.
  std::size_t add(Route route);
  const Ids& leaves(std::size_t route);

  McrouterPools pools_;
  std::map<std::string, const JsonNode*> registered_;
  std::map<std::string, Ids> seen_;
  std::set<std::string> open_;  // names being built: a name within itself is a cycle
  std::vector<Route> routes_;
  std::map<std::string, std::size_t> known_;
  std::map<Destination, std::size_t> destination_ids_;
  std::vector<Destination> destinations_;
  std::map<std::string, Ids> pool_ids_;
  std::map<std::size_t, Ids> leaves_;
};

}  // namespace mcds
