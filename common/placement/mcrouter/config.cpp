// parse_mcrouter: converts mcrouter's JSON to a graph of Route, selects a route of it, and reduces that to
// a pool and a profile if possible. Unsupported constructs are refused by name.
#include <array>
#include <set>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/placement/mcrouter/json_tree.hpp"
#include "common/placement/mcrouter/routes.hpp"
#include "common/placement/pools/files.hpp"

namespace mcds {

namespace {

Failure not_modelled(const std::string& construct) {
  return bad_configuration("the file uses " + construct +
                           ", which is not supported; give the servers and --as");
}

// Route types that pass every request on unchanged.
constexpr std::array<std::string_view, 5> passing{
    "LoggingRoute", "ModifyExptimeRoute", "OutstandingLimitRoute", "RateLimitRoute", "LatencyInjectionRoute"};
constexpr std::array<std::string_view, 4> blind{"NullRoute", "ErrorRoute", "DevNullRoute", "BlackholeRoute"};
constexpr std::array<std::string_view, 5> to_all{"AllSyncRoute", "AllAsyncRoute", "AllInitialRoute",
                                                 "AllMajorityRoute", "AllFastestRoute"};

bool is_among(std::span<const std::string_view> list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

std::optional<Route::Kind> replicating_kind(std::string_view type) {
  if (is_among(to_all, type)) return Route::Kind::all;
  if (type == "LatestRoute") return Route::Kind::latest;
  if (type == "RandomRoute") return Route::Kind::random;
  return std::nullopt;
}

bool is_true(const JsonNode* node) {
  return node != nullptr && (text_of(*node) == "true" || text_of(*node) == "1");
}

std::uint64_t whole_number(const JsonNode* node, const std::string& what) {
  const auto number = node != nullptr ? parse_u64(text_of(*node)) : std::nullopt;
  if (!number) throw bad_configuration(what + " is not a whole number");
  return *number;
}

std::vector<double> weights_of(const JsonNode* json, std::size_t children, bool all_needed) {
  if (json == nullptr || !json->is_array()) throw bad_configuration("a weighted hash has no 'weights'");
  std::vector<double> weights;
  for (const JsonNode& weight : elements_of(*json)) {
    if (weights.size() == children) break;
    const double number = weight.is_number() ? weight.get<double>() : -1;
    if (number < 0 || (number > 1 && !all_needed))
      throw bad_configuration("a weight must be a number from 0 to 1: " + text_of(weight));
    weights.push_back(number);
  }
  if (all_needed && weights.size() < children)
    throw bad_configuration("a weighted hash has fewer weights than servers");
  weights.resize(children, 0.5);  // mcrouter's default
  return weights;
}

std::vector<std::uint64_t> tags_of(const JsonNode* json, std::size_t children) {
  if (json == nullptr || elements_of(*json).size() != children)
    throw bad_configuration("a Rendezvous hash needs 'tags', one a server");
  std::vector<std::uint64_t> tags;
  for (const JsonNode& tag : elements_of(*json)) tags.push_back(rendezvous_tag(text_of(tag)));
  return tags;
}

std::string signature(const Route& route) {
  std::string text = std::to_string(static_cast<int>(route.kind)) + ' ' + std::to_string(route.server);
  for (const std::size_t child : route.children) text += ',' + std::to_string(child);
  text += ' ' + std::to_string(static_cast<int>(route.hash.function)) + '\0' + route.hash.salt + '\0';
  for (const double weight : route.hash.weights) text += json_real(weight) + ',';
  for (const std::uint64_t tag : route.hash.tags) text += std::to_string(tag) + ',';
  text += ' ' + std::to_string(route.hash.buckets) + ' ';
  for (const auto& [prefix, child] : route.prefixes) text += prefix + '\0' + std::to_string(child) + ',';
  text += std::to_string(route.replicas) + (route.all_replicas ? "a" : "o") + (route.ordered ? "i" : "u");
  return text + route.text + '\0' + route.suffix + '\0' + (route.replaced ? '=' + *route.replaced : "");
}

bool replicates(const Route& route) {
  using Kind = Route::Kind;
  constexpr std::array kinds{Kind::all, Kind::latest, Kind::random, Kind::failover, Kind::miss_failover};
  return std::ranges::find(kinds, route.kind) != kinds.end();
}

// Calls `take` with each child of the route, which it may change.
template <typename AnyRoute, typename Take>
void for_each_child(AnyRoute& route, const Take& take) {
  for (auto& child : route.children) take(child);
  if (route.kind != Route::Kind::prefixes) return;
  for (auto& [prefix, child] : route.prefixes) take(child);
}

// Returns true if this `security_mech` is TLS. Throws Failure(configuration) unless it is TLS or plain.
bool mcrouter_tls(std::string_view mechanism) {
  if (mechanism == "plain" || mechanism == "notls") return false;
  constexpr std::array<std::string_view, 5> with_tls{"tls", "ssl", "tls13_fizz", "tls13", "ktls12"};
  if (is_among(with_tls, mechanism)) return true;
  throw bad_configuration("the security mechanism '" + std::string(mechanism) +
                          "' is not supported; use tls or plain");
}

// Returns a destination in the form of parse_pool, without its protocol: host:port, with tls:// if the
// server, or else its pool (`pool_has_tls`), requires TLS.
std::string mcrouter_address(std::string_view server, std::uint64_t port_override, bool pool_has_tls) {
  const std::string shown = in_quotes(server);
  if (server.starts_with("unix:") || server.starts_with('/'))
    throw bad_configuration("the server " + shown +
                            " is a unix socket, which is not supported; give the servers and --as");
  const std::size_t bracket = server.starts_with('[') ? server.find(']') : 0;
  if (server.empty() || bracket == std::string_view::npos)
    throw bad_configuration("a server of the pool is not host:port: " + shown);
  const std::size_t colon = server.find(':', bracket);
  if (colon == std::string_view::npos && port_override == 0)
    throw bad_configuration("a server of the pool is not host:port: " + shown);
  // The format is host:port:protocol:mechanism.
  std::string address(server);
  bool tls = pool_has_tls;
  if (const auto port_end = colon == std::string_view::npos ? colon : server.find(':', colon + 1);
      port_end != std::string_view::npos) {
    address.resize(port_end);
    const auto protocol_end = server.find(':', port_end + 1);
    if (protocol_end != std::string_view::npos) {
      const std::string_view rest = server.substr(protocol_end + 1);
      tls = mcrouter_tls(rest.substr(0, rest.find(':')));
    }
  }
  if (port_override > 0) address = address.substr(0, colon) + ':' + std::to_string(port_override);
  return (tls ? "tls://" : "") + address;
}

// The `pools` of an mcrouter configuration: servers, weights and tags after inheritance.
class McrouterPools {
 public:
  explicit McrouterPools(const JsonNode& config) {
    const JsonNode* pools = member_of(config, "pools");
    if (pools == nullptr) return;
    if (!pools->is_object()) throw bad_configuration("'pools' is not an object");
    for (const auto& [name, json] : members_of(*pools)) known_[name] = &json;
  }

  // A pool referred to by name, or defined in a route as {"name":…,"servers":…}, and then known by name.
  struct Named {
    std::string name;
    const JsonNode* json;
  };
  Named pool(const JsonNode& reference) {
    if (reference.is_string()) {
      const auto found = known_.find(text_of(reference));
      if (found == known_.end())
        throw bad_configuration("a route names the pool '" + text_of(reference) +
                                "', which the file does not have");
      return {found->first, found->second};
    }
    const std::string name = string_at(reference, "name");
    if (name.empty())
      throw bad_configuration("a route has a pool that is neither a name nor an object with a 'name'");
    return {name, known_.try_emplace(name, &reference).first->second};
  }

  bool has(std::string_view name) const { return known_.contains(name); }

  // Returns a member of the pool, or of a pool that it inherits from, or nullptr.
  const JsonNode* member(const Named& pool, std::string_view name) const {
    const JsonNode* json = pool.json;
    for (std::size_t steps = 0; steps <= known_.size(); ++steps) {
      if (!json->is_object()) throw bad_configuration("the pool '" + pool.name + "' is not an object");
      if (const JsonNode* found = member_of(*json, name)) return found;
      const std::string parent = string_at(*json, "inherit");
      if (parent.empty()) return nullptr;
      const auto next = known_.find(parent);
      if (next == known_.end())
        throw bad_configuration("the pool '" + pool.name + "' inherits from '" + parent +
                                "', which the file does not have");
      json = next->second;
    }
    throw bad_configuration("the pool '" + pool.name + "' inherits from itself");
  }

 private:
  std::map<std::string, const JsonNode*, std::less<>> known_;
};

// Builds the routes of a configuration.
class RouteBuilder {
 public:
  explicit RouteBuilder(const JsonNode& config) : pools_(config) {
    for (const char* member : {"macros", "consts"}) {
      if (member_of(config, member) != nullptr) throw not_modelled(in_quotes(member));
    }
    const JsonNode* handles = member_of(config, "named_handles");
    if (handles == nullptr) return;
    if (handles->is_object()) {
      for (const auto& [name, json] : members_of(*handles)) registered_[name] = &json;
    }
    for (const JsonNode& handle : elements_of(*handles)) registered_[string_at(handle, "name")] = &handle;
  }

  // Builds one route and returns its index. Throws Failure(configuration).
  std::size_t build(const JsonNode& json) { return one(json, 0); }

  // A server of one pool; Route::server is an index into destinations().
  struct Destination {
    std::string address, pool;
    auto operator<=>(const Destination&) const = default;
  };
  const std::vector<Destination>& destinations() const { return destinations_; }
  const std::vector<Route>& routes() const { return routes_; }
  bool has_pool(std::string_view name) const { return pools_.has(name); }

  // Returns the part of `root` that leads to the pool, or nullopt.
  std::optional<std::size_t> part_for_pool(std::size_t root, const std::string& pool) {
    std::map<std::size_t, std::optional<std::size_t>> parts;
    // Children have lower indexes than their parents.
    const std::size_t count = root + 1;
    for (std::size_t i = 0; i < count; ++i) {
      Route route = routes_[i];
      if (route.kind == Route::Kind::nowhere) continue;
      if (route.kind == Route::Kind::server) {
        if (destinations_[route.server].pool == pool) parts[i] = i;
        continue;
      }
      const auto part_of = [&](std::size_t child) {
        const auto found = parts.find(child);
        return found == parts.end() ? std::nullopt : found->second;
      };
      const std::size_t elsewhere =
          add({.kind = Route::Kind::nowhere, .text = "not one to the pool " + pool});
      std::set<std::size_t> leading;
      for_each_child(route, [&](std::size_t child) {
        if (const auto part = part_of(child)) leading.insert(*part);
      });
      if (leading.empty()) continue;
      const bool choosing = route.kind == Route::Kind::prefixes || replicates(route);
      if (choosing && leading.size() == 1) {
        parts[i] = *leading.begin();
        continue;
      }
      if (replicates(route)) {
        std::erase_if(route.children, [&](std::size_t id) { return !part_of(id); });
      }
      for_each_child(route, [&](std::size_t& id) { id = part_of(id).value_or(elsewhere); });
      if (route.kind == Route::Kind::operations) {
        route.text = leaves(route.children[0]) == leaves(route.children[1]) ? "" : "ambiguous";
      }
      parts[i] = add(std::move(route));
    }
    const auto found = parts.find(root);
    return found == parts.end() ? std::nullopt : found->second;
  }

 private:
  using Ids = std::vector<std::size_t>;

  // Adds a route; equal routes share one index.
  std::size_t add(Route route) {
    const auto [at, is_new] = known_.emplace(signature(route), routes_.size());
    if (is_new) routes_.push_back(std::move(route));
    return at->second;
  }

  std::size_t one(const JsonNode& json, std::size_t depth) {
    const Ids ids = list(json, depth);
    if (ids.size() != 1)
      throw bad_configuration("one route is expected where the file has " + std::to_string(ids.size()));
    return ids.front();
  }

  Ids list(const JsonNode& json, std::size_t depth) {
    if (depth > deepest_levels)
      throw bad_configuration("the routes nest more than " + std::to_string(deepest_levels) + " deep");
    if (json.is_string()) return from_string(text_of(json), depth);
    if (json.is_array()) {
      Ids ids;
      for (const JsonNode& element : elements_of(json)) {
        const Ids some = list(element, depth + 1);
        ids.insert(ids.end(), some.begin(), some.end());
      }
      return ids;
    }
    if (!json.is_object()) throw bad_configuration("a route is neither a name, a list nor an object");
    const std::string name = string_at(json, "name");
    return name.empty() ? create(string_at(json, "type"), json, depth) : named(name, depth, &json);
  }

  Ids named(const std::string& name, std::size_t depth, const JsonNode* json) {
    if (const auto seen = seen_.find(name); seen != seen_.end()) return seen->second;
    if (const auto found = registered_.find(name); found != registered_.end()) json = found->second;
    if (!open_.insert(name).second) throw bad_configuration("the route '" + name + "' contains itself");
    const bool object = json->is_object();
    Ids ids = object ? create(string_at(*json, "type"), *json, depth + 1) : list(*json, depth + 1);
    open_.erase(name);
    return seen_[name] = std::move(ids);
  }

  Ids from_string(const std::string& text, std::size_t depth) {
    if (text.empty()) return {};
    if (text.starts_with('@')) throw not_modelled("the macro call " + in_quotes(text));
    if (const auto seen = seen_.find(text); seen != seen_.end()) return seen->second;
    if (registered_.contains(text)) return named(text, depth, nullptr);
    const auto bar = text.find('|');
    const JsonNode rest = bar == std::string::npos ? JsonNode() : JsonNode(text.substr(bar + 1));
    return create(text.substr(0, bar), rest, depth + 1);
  }

  std::size_t child(const std::string& type, const JsonNode& json, const char* member, std::size_t depth) {
    const JsonNode* node = json.is_string() ? &json : member_of(json, member);
    if (node == nullptr) throw bad_configuration("a " + type + " has no '" + member + '\'');
    return one(*node, depth + 1);
  }

  Ids children(const JsonNode& json, const char* member, std::size_t depth) {
    if (json.is_string()) return list(json, depth + 1);
    const JsonNode* node = member_of(json, member);
    return node == nullptr ? Ids() : list(*node, depth + 1);
  }

  Ids create(const std::string& type, const JsonNode& json, std::size_t depth) {
    if (const auto kind = replicating_kind(type))
      return {replicating(*kind, children(json, "children", depth), type)};
    if (is_among(blind, type)) return {add({.kind = Route::Kind::nowhere, .text = type})};
    if (is_among(passing, type))
      return {child(type, json, member_of(json, "target") != nullptr ? "target" : "child", depth)};
    if (type == "Pool") return pool_servers(pools_.pool(json), depth);
    if (type == "PoolRoute") return {pool_route(json, depth)};
    if (type == "HashRoute") {
      Ids ids = children(json, "children", depth);
      const std::size_t count = ids.size();
      RouteHash hash = hash_of(string_at(json, "hash_func", "Ch3"), &json, member_of(json, "weights"),
                               member_of(json, "tags"), count);
      return {hash_route(std::move(hash), std::move(ids))};
    }
    if (type == "ShadowRoute") return children(json, "children", depth);
    if (type == "FailoverRoute" || type == "MissFailoverRoute" || type == "FailoverWithExptimeRoute")
      return {failover(type, json, depth)};
    if (type == "PrefixSelectorRoute") return {prefix_selector(json, depth)};
    if (type == "OperationSelectorRoute" || type == "PrefixPolicyRoute")
      return {operation_selector(json, depth)};
    if (type == "ModifyKeyRoute") return {modify_key(json, depth)};
    if (type == "KeySplitRoute") return {key_split(json, depth)};
    if (type.empty()) throw bad_configuration("a route has no 'type'");
    throw not_modelled("the route " + in_quotes(type));
  }

  std::size_t replicating(Route::Kind kind, Ids ids, const std::string& type, bool ordered = true) {
    if (ids.empty()) return add({.kind = Route::Kind::nowhere, .text = type + " without children"});
    const auto leads_nowhere = [&](std::size_t id) { return routes_[id].kind == Route::Kind::nowhere; };
    if (!std::ranges::all_of(ids, leads_nowhere)) std::erase_if(ids, leads_nowhere);
    std::set<std::size_t> before;
    std::erase_if(ids, [&](std::size_t id) { return !before.insert(id).second; });
    return ids.size() == 1 ? ids.front()
                           : add({.kind = kind, .children = std::move(ids), .ordered = ordered});
  }

  // Returns the pool's setting for servers without their own.
  bool has_tls(const McrouterPools::Named& pool) const {
    if (const JsonNode* mechanism = pools_.member(pool, "security_mech"))
      return mcrouter_tls(mechanism->is_string() ? text_of(*mechanism) : "");
    const JsonNode* use_ssl = pools_.member(pool, "use_ssl");
    if (use_ssl == nullptr) return false;
    if (text_of(*use_ssl) != "true" && text_of(*use_ssl) != "false")
      throw bad_configuration("'use_ssl' is neither true nor false");
    return text_of(*use_ssl) == "true";
  }

  const Ids& pool_servers(const McrouterPools::Named& pool, std::size_t depth) {
    if (const auto known = pool_ids_.find(pool.name); known != pool_ids_.end()) return known->second;
    const JsonNode* servers = pools_.member(pool, "servers");
    if (servers == nullptr || !servers->is_array())
      throw bad_configuration("the pool '" + pool.name + "' has no list of servers");
    for (const char* name : {"additional_fanout", "port_override_within_dc", "port_override_cross_dc",
                             "security_mech_within_dc", "security_mech_cross_dc"}) {
      if (pools_.member(pool, name) != nullptr)
        throw not_modelled("'" + std::string(name) + "' of the pool " + in_quotes(pool.name));
    }
    const JsonNode* override_of = pools_.member(pool, "port_override");
    const std::uint64_t port = override_of == nullptr ? 0 : whole_number(override_of, "'port_override'");
    const bool tls = has_tls(pool);
    Ids ids;
    for (const JsonNode& server : elements_of(*servers)) {
      if (member_of(server, "type") != nullptr) {
        ids.push_back(one(server, depth + 1));
        continue;
      }
      const std::string text = server.is_string() ? text_of(server) : string_at(server, "hostname");
      const Destination destination{mcrouter_address(text, port, tls), pool.name};
      const auto [at, is_new] = destination_ids_.emplace(destination, destinations_.size());
      if (is_new) destinations_.push_back(destination);
      ids.push_back(add({.kind = Route::Kind::server, .server = at->second}));
    }
    return pool_ids_[pool.name] = std::move(ids);
  }

  RouteHash hash_of(const std::string& function, const JsonNode* settings, const JsonNode* weights,
                    const JsonNode* tags, std::size_t children) {
    RouteHash hash;
    if (settings != nullptr) hash.salt = string_at(*settings, "salt");
    if (children < 2) return hash;
    using Function = RouteHash::Function;
    static const std::map<std::string, Function> functions{
        {"Ch3", Function::ch3},
        {"Crc32", Function::crc32},
        {"WeightedCh3", Function::weighted_ch3},
        {"Rendezvous", Function::rendezvous},
        {"WeightedRendezvous", Function::weighted_rendezvous},
        {"ConstShard", Function::const_shard}};
    const auto known = functions.find(function);
    if (known == functions.end()) throw not_modelled("the hash_func " + in_quotes(function));
    hash.function = known->second;
    const bool rendezvous =
        hash.function == Function::rendezvous || hash.function == Function::weighted_rendezvous;
    if (hash.function == Function::weighted_ch3 || hash.function == Function::weighted_rendezvous)
      hash.weights = weights_of(weights, children, rendezvous);
    if (rendezvous) hash.tags = tags_of(tags, children);
    return hash;
  }

  std::size_t hash_route(RouteHash hash, Ids ids) {
    if (ids.empty()) return add({.kind = Route::Kind::nowhere, .text = "a hash over no servers"});
    if (ids.size() == 1) return ids.front();
    return add({.kind = Route::Kind::hash, .children = std::move(ids), .hash = std::move(hash)});
  }

  std::size_t pool_route(const JsonNode& json, std::size_t depth) {
    const JsonNode* reference = json.is_string() ? &json : member_of(json, "pool");
    if (reference == nullptr) throw bad_configuration("a PoolRoute has no 'pool'");
    const McrouterPools::Named pool = pools_.pool(*reference);
    const Ids& ids = pool_servers(pool, depth);
    const JsonNode* settings = member_of(json, "hash");
    const auto of_route = [&](const char* name, const JsonNode* otherwise) {
      const JsonNode* own = settings != nullptr ? member_of(*settings, name) : nullptr;
      return own != nullptr ? own : otherwise;
    };
    const JsonNode* pool_weights = pools_.member(pool, "weights");
    std::string function = pool_weights != nullptr ? "WeightedCh3" : "Ch3";
    if (settings != nullptr)
      function = settings->is_string() ? text_of(*settings) : string_at(*settings, "hash_func", function);
    if (function == "Latest") {
      return replicating(Route::Kind::latest, ids, "LatestRoute");
    }
    for (const char* name :
         {"distribution_enabled", "useBucketHashSelector", "split_shard_fanout", "total_buckets_by_prefix"}) {
      if (member_of(json, name) != nullptr) throw not_modelled(in_quotes(name) + " of a PoolRoute");
    }
    RouteHash hash = hash_of(function, settings, of_route("weights", pool_weights),
                             of_route("tags", pools_.member(pool, "tags")), ids.size());
    if (is_true(member_of(json, "bucketize"))) {
      if (function != "WeightedCh3")
        throw bad_configuration("'bucketize' of a PoolRoute needs the hash_func WeightedCh3");
      hash.buckets = whole_number(member_of(json, "total_buckets"), "'total_buckets' of a PoolRoute");
      if (hash.buckets == 0) throw bad_configuration("'total_buckets' of a PoolRoute is 0");
    }
    const std::size_t route = hash_route(std::move(hash), ids);
    const JsonNode* splits = member_of(json, "shard_splits");
    return splits == nullptr ? route : with_splits(route, *splits);
  }

  std::size_t with_splits(std::size_t route, const JsonNode& splits) {
    constexpr std::uint64_t most = 26 * 26 + 1;
    Route result{.kind = Route::Kind::shard_splits, .children = {route}};
    for (const auto& [shard, count] : members_of(splits)) {
      if (!count.is_number()) throw not_modelled("'shard_splits' that migrate");
      result.prefixes[shard] =
          static_cast<std::size_t>(std::min(whole_number(&count, "a shard split"), most));
      if (result.prefixes[shard] == 0) throw bad_configuration("a shard split is 0");
    }
    return add(std::move(result));
  }

  std::size_t failover(const std::string& type, const JsonNode& json, std::size_t depth) {
    Ids ids = children(json, "children", depth);
    if (type == "FailoverWithExptimeRoute") {
      ids = {child(type, json, "normal", depth)};
      const Ids others = children(json, "failover", depth);
      ids.insert(ids.end(), others.begin(), others.end());
    }
    if (member_of(json, "failover_errors") != nullptr) throw not_modelled("'failover_errors'");
    const auto kind = type == "MissFailoverRoute" ? Route::Kind::miss_failover : Route::Kind::failover;
    const JsonNode* policy = member_of(json, "failover_policy");
    const bool ordered = policy == nullptr || string_at(*policy, "type").empty();
    return replicating(kind, std::move(ids), type, ordered);
  }

  std::size_t prefix_selector(const JsonNode& json, std::size_t depth) {
    Route result{.kind = Route::Kind::prefixes};
    const JsonNode* wildcard = member_of(json, "wildcard");
    const JsonNode* policies = member_of(json, "policies");
    if (wildcard == nullptr && policies == nullptr)
      throw bad_configuration("a PrefixSelectorRoute has no 'policies'");
    result.children.push_back(
        wildcard != nullptr
            ? one(*wildcard, depth + 1)
            : add({.kind = Route::Kind::nowhere, .text = "a PrefixSelectorRoute without 'wildcard'"}));
    if (policies != nullptr) {
      for (const auto& [prefix, route] : members_of(*policies))
        result.prefixes[prefix] = one(route, depth + 1);
    }
    return add(std::move(result));
  }

  std::size_t operation_selector(const JsonNode& json, std::size_t depth) {
    if (json.is_string()) return one(json, depth + 1);
    const JsonNode* policies = member_of(json, "operation_policies");
    const JsonNode* otherwise = member_of(json, "default_policy");
    const auto route_for = [&](const char* operation) {
      const JsonNode* own = policies != nullptr ? member_of(*policies, operation) : nullptr;
      if (own == nullptr) own = otherwise;
      const std::string missing = "an OperationSelectorRoute without a policy for " + std::string(operation);
      return own != nullptr ? one(*own, depth + 1) : add({.kind = Route::Kind::nowhere, .text = missing});
    };
    Route result{.kind = Route::Kind::operations,
                 .children = {route_for("get"), route_for("set"), route_for("delete")}};
    if (result.children[0] == result.children[1] && result.children[1] == result.children[2])
      return result.children[0];
    // If reads and writes use the same servers, --operation is not needed.
    const Ids reads = leaves(result.children[0]);
    if (reads != leaves(result.children[1])) result.text = "ambiguous";
    return add(std::move(result));
  }

  const Ids& leaves(std::size_t index) {
    if (const auto known = leaves_.find(index); known != leaves_.end()) return known->second;
    const Route& route = routes_[index];
    Ids ids;
    if (replicates(route)) {
      for (const std::size_t child : Ids(route.children)) {
        const Ids& some = leaves(child);
        ids.insert(ids.end(), some.begin(), some.end());
      }
      std::ranges::sort(ids);
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    } else {
      ids = {index};
    }
    return leaves_[index] = std::move(ids);
  }

  std::size_t modify_key(const JsonNode& json, std::size_t depth) {
    if (member_of(json, "modify_inplace") != nullptr)
      throw not_modelled("'modify_inplace' of a ModifyKeyRoute");
    Route route{.kind = Route::Kind::modify_key,
                .children = {child("ModifyKeyRoute", json, "target", depth)}};
    route.text = string_at(json, "ensure_key_prefix");
    route.suffix = string_at(json, "set_key_suffix");
    if (member_of(json, "replace_key_prefix") != nullptr)
      route.replaced = string_at(json, "replace_key_prefix");
    return add(std::move(route));
  }

  std::size_t key_split(const JsonNode& json, std::size_t depth) {
    Route route{.kind = Route::Kind::key_split,
                .children = {child("KeySplitRoute", json, "destination", depth)}};
    route.replicas =
        static_cast<std::size_t>(whole_number(member_of(json, "replicas"), "'replicas' of a KeySplitRoute"));
    if (route.replicas < 2 || route.replicas > 1000)
      throw bad_configuration("'replicas' of a KeySplitRoute must be from 2 to 1000");
    route.all_replicas = is_true(member_of(json, "all_sync"));
    return add(std::move(route));
  }

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

struct RootRoute {
  std::vector<std::string> aliases;  // empty: the only route there is
  std::size_t route;
};

std::vector<std::string> texts_of(const JsonNode* list) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const JsonNode& element : elements_of(*list)) texts.push_back(text_of(element));
  return texts;
}

std::vector<RootRoute> root_routes(const JsonNode& config, RouteBuilder& builder) {
  const JsonNode* route = member_of(config, "route");
  const JsonNode* routes = member_of(config, "routes");
  if (route != nullptr && routes != nullptr)
    throw bad_configuration("'route' and 'routes' cannot be combined in one file; mcrouter refuses it");
  if (route != nullptr) return {{{}, builder.build(*route)}};
  std::vector<RootRoute> roots;
  if (routes == nullptr)
    throw bad_configuration("the file has no 'route' and no 'routes'; is it an mcrouter config?");
  for (const auto& [alias, json] : members_of(*routes)) roots.push_back({{alias}, builder.build(json)});
  for (const JsonNode& entry : elements_of(*routes)) {
    const JsonNode* own = member_of(entry, "route");
    if (own == nullptr) throw bad_configuration("an entry of 'routes' has no 'route'");
    roots.push_back({texts_of(member_of(entry, "aliases")), builder.build(*own)});
  }
  if (roots.empty()) throw bad_configuration("the file's 'routes' are empty");
  return roots;
}

// The user's selection: `/region/cluster/POOL` or `POOL`.
struct Selection {
  std::string alias, pool;

  explicit Selection(std::string_view text) {
    const auto end = text.starts_with('/') ? text.find('/', text.find('/', 1) + 1) : std::string_view::npos;
    if (text.starts_with('/') && end == std::string_view::npos)
      throw bad_configuration("write the route as /REGION/CLUSTER/");
    const std::size_t size = text.starts_with('/') ? end + 1 : 0;
    alias = text.substr(0, size);
    pool = text.substr(size);
  }
};

// Returns the selected route; routes that place keys alike count as one.
RootRoute chosen(const std::vector<RootRoute>& roots, RouteBuilder& builder, const Selection& selection) {
  std::map<std::size_t, RootRoute> found;
  std::set<std::string> names;
  for (const RootRoute& root : roots) {
    const bool meant =
        selection.alias.empty() || std::ranges::find(root.aliases, selection.alias) != root.aliases.end();
    if (!meant) continue;
    const auto part = selection.pool.empty() ? std::optional(root.route)
                                             : builder.part_for_pool(root.route, selection.pool);
    if (!part) continue;
    RootRoute& known = found.try_emplace(*part, RootRoute{{}, *part}).first->second;
    known.aliases.insert(known.aliases.end(), root.aliases.begin(), root.aliases.end());
    names.insert(root.aliases.begin(), root.aliases.end());
  }
  if (found.size() == 1) return found.begin()->second;
  if (found.size() > 1)
    throw bad_configuration("the file's routes place keys differently: write FILE#ROUTE with one of " +
                            joined(names, ", "));
  if (!selection.pool.empty()) {
    throw bad_configuration(builder.has_pool(selection.pool)
                                ? "no route of the file leads to the pool " + in_quotes(selection.pool)
                                : "the file has no pool " + in_quotes(selection.pool) + " with servers");
  }
  throw bad_configuration("the file has no route for " + selection.alias);
}

// Returns the servers that the routes lead to, each once, in the order of the pools. Route::server becomes an
// index into this list.
Pool take_servers(std::vector<Route>& routes, std::size_t root, const RouteBuilder& builder) {
  std::vector<bool> used(routes.size());
  used[root] = true;
  for (std::size_t i = root + 1; i-- > 0;) {  // children come before their parents
    if (used[i]) for_each_child(routes[i], [&](std::size_t child) { used[child] = true; });
  }
  Pool pool;
  std::map<std::string, std::size_t> indexes;
  for (std::size_t i = 0; i <= root; ++i) {
    if (!used[i] || routes[i].kind != Route::Kind::server) continue;
    const std::string& address = builder.destinations()[routes[i].server].address;
    const Server server = pool_of({{address, address}}, "host:port").front();
    const auto [at, is_new] = indexes.emplace(server.address(), pool.size());
    if (is_new) pool.push_back(server);
    if (pool[at->second].tls != server.tls)
      throw bad_configuration("the server " + server.address() + " is listed with TLS and without");
    routes[i].server = at->second;
  }
  if (pool.empty()) throw bad_configuration("the route leads to no server");
  return pool;
}

// Returns the plain profile if the route is a plain hash over the pool, otherwise an empty text.
std::string plain_profile(const std::vector<Route>& routes, const Route& root, std::size_t servers) {
  if (root.kind == Route::Kind::server) return "mcrouter-ch3";
  using Function = RouteHash::Function;
  const bool plain = root.kind == Route::Kind::hash && root.hash.salt.empty() && root.hash.buckets == 0 &&
                     (root.hash.function == Function::ch3 || root.hash.function == Function::crc32);
  if (!plain || root.children.size() != servers) return "";
  for (std::size_t i = 0; i < servers; ++i) {
    const Route& child = routes[root.children[i]];
    if (child.kind != Route::Kind::server || child.server != i) return "";
  }
  return root.hash.function == Function::ch3 ? "mcrouter-ch3" : "mcrouter-crc32";
}

}  // namespace

PoolFile parse_mcrouter(std::string_view json, std::string_view selection) {
  const JsonNode config = parse_json_tree(json);
  if (!config.is_object())
    throw bad_configuration("the file is not a JSON object; is it an mcrouter config?");
  RouteBuilder builder(config);
  const auto roots = root_routes(config, builder);
  const RootRoute root = chosen(roots, builder, Selection(selection));
  std::vector<Route> routes = builder.routes();
  PoolFile file;
  file.pool = take_servers(routes, root.route, builder);
  file.profile = plain_profile(routes, routes[root.route], file.pool.size());
  if (!file.profile.empty()) return file;
  file.profile = "mcrouter-routes";
  file.routes = std::make_shared<Routes>(Routes{std::move(routes), root.route, root.aliases});
  return file;
}

}  // namespace mcds
