#include "common/placement/mcrouter/routes.hpp"

#include "common/base/errors.hpp"
#include "common/placement/rewrite.hpp"

namespace mcds {

namespace {

// Returns the part of the key that is hashed: without routing prefix and the part from |#| on.
std::string_view hashed_part(std::string_view key) {
  std::string buffer;
  return rewrite::mcrouter(key, buffer);
}

std::string_view routing_prefix(std::string_view key) {
  if (!key.starts_with('/')) return {};
  const auto second = key.find('/', 1);
  const auto third = second == std::string_view::npos ? second : key.find('/', second + 1);
  return third == std::string_view::npos ? std::string_view() : key.substr(0, third + 1);
}

std::string modified(const Route& route, std::string_view key) {
  if (route.replaced && key.starts_with(*route.replaced))
    return route.text + std::string(key.substr(route.replaced->size())) + route.suffix;
  if (!key.starts_with(route.text)) return route.text + std::string(key) + route.suffix;
  return std::string(key) + route.suffix;
}

// Returns the key of another replica or split; `number` counts from 1.
std::string split_key(std::string_view key, std::size_t number) {
  const std::string_view shard = shard_of(hashed_part(key));
  const auto at = static_cast<std::size_t>(shard.data() - key.data()) + shard.size();
  const char letters[] = {static_cast<char>('a' + (number - 1) % 26),
                          static_cast<char>('a' + (number - 1) / 26)};
  return std::string(key.substr(0, at)) + std::string(letters, 2) + std::string(key.substr(at));
}

std::string replica_key(std::string_view key, std::size_t number) {
  const auto stop = std::min(key.find("|#|"), key.size());
  return std::string(key.substr(0, stop)) + "::" + std::to_string(number) + std::string(key.substr(stop));
}

// Follows the routes for one key.
class RouteWalk {
 public:
  // `down` marks the servers that are dead; null: none is.
  RouteWalk(const Routes& routes, Operation operation, const std::vector<bool>* down = nullptr)
      : routes_(routes), operation_(operation), down_(down) {}

  Owners follow(std::size_t index, std::string_view key) {
    const Route& route = routes_.routes[index];
    switch (route.kind) {
      case Route::Kind::server: return at_server(route.server, key);
      case Route::Kind::hash: return follow(route.children[choose(route, key)], key);
      case Route::Kind::all:
      case Route::Kind::latest:
      case Route::Kind::random:
      case Route::Kind::failover:
      case Route::Kind::miss_failover: return several(route, key);
      case Route::Kind::prefixes: return by_prefix(route, key);
      case Route::Kind::operations: return by_operation(route, key);
      case Route::Kind::modify_key: return follow(route.children.front(), modified(route, key));
      case Route::Kind::key_split:
        return renamed(route, key, route.replicas, replica_key, route.all_replicas);
      case Route::Kind::shard_splits: return renamed(route, key, splits_of(route, key), split_key, false);
      case Route::Kind::nowhere: break;
    }
    if (down_ != nullptr) return {};
    throw InvalidInput("no server has this key: its route is " + route.text);
  }

  std::optional<std::uint64_t> hash() const { return hash_; }

 private:
  Owners at_server(std::size_t server, std::string_view key) {
    if (down_ != nullptr && (*down_)[server]) return {};
    return {Policy::one, {{server, true, std::string(key)}}};
  }

  std::size_t choose(const Route& route, std::string_view key) {
    if (!hash_) hash_ = route.hash.hash_of(hashed_part(key));
    return route.hash.child_of(hashed_part(key), route.children.size());
  }

  Policy policy_of(const Route& route) const {
    if (route.kind == Route::Kind::all) return Policy::all;
    if (route.kind == Route::Kind::latest) return Policy::latest;
    return route.kind == Route::Kind::random ? Policy::random : Policy::failover;
  }

  static void add(Owners& owners, Owner owner) {
    for (Owner& known : owners.list) {
      if (known.server != owner.server || known.wire_key != owner.wire_key) continue;
      known.must = known.must || owner.must;
      return;
    }
    owners.list.push_back(std::move(owner));
  }

  Owners several(const Route& route, std::string_view key) {
    Owners result{policy_of(route), {}};
    const bool first_only = route.kind == Route::Kind::miss_failover && operation_ == Operation::set;
    if (down_ != nullptr && !route.ordered)
      throw InvalidInput(
          "the failover_policy of this FailoverRoute chooses the next server by past failures, so it cannot "
          "be predicted");
    for (const std::size_t child : route.children) {
      Owners some = follow(child, key);
      const bool may = route.kind == Route::Kind::latest || route.kind == Route::Kind::random ||
                       route.kind == Route::Kind::miss_failover ||
                       (route.kind == Route::Kind::failover && !result.list.empty());
      if (route.children.size() == 1) return some;
      for (Owner& owner : some.list) {
        owner.must = owner.must && !may;
        add(result, std::move(owner));
      }
      if (first_only || (down_ != nullptr && !result.list.empty())) break;
    }
    if (result.list.size() == 1) result.policy = Policy::one, result.list.front().must = true;
    return result;
  }

  Owners by_prefix(const Route& route, std::string_view key) {
    const std::string_view text = key.substr(routing_prefix(key).size());
    // Tries the longest prefix first. In string order, a matching prefix comes before the text or equals it.
    for (auto at = route.prefixes.upper_bound(text); at != route.prefixes.begin();) {
      --at;
      if (text.starts_with(at->first)) return follow(at->second, key);
      std::size_t common = 0;
      while (common < at->first.size() && common < text.size() && at->first[common] == text[common]) ++common;
      at = route.prefixes.upper_bound(text.substr(0, common));
    }
    return follow(route.children.front(), key);
  }

  Owners by_operation(const Route& route, std::string_view key) {
    switch (operation_) {
      case Operation::get: return follow(route.children[0], key);
      case Operation::set: return follow(route.children[1], key);
      case Operation::remove: return follow(route.children[2], key);
      case Operation::any: break;
    }
    if (route.text.empty()) return follow(route.children[1], key);
    throw InvalidInput(
        "reads and writes of this key go to different servers (OperationSelectorRoute); give --operation "
        "get, set or delete");
  }

  static std::size_t splits_of(const Route& route, std::string_view key) {
    const std::string_view shard = shard_of(hashed_part(key));
    const auto found = shard.empty() ? route.prefixes.end() : route.prefixes.find(shard);
    return found == route.prefixes.end() ? 1 : found->second;
  }

  Owners renamed(const Route& route, std::string_view key, std::size_t count,
                 std::string (*name)(std::string_view, std::size_t), bool all) {
    if (count == 1 || down_ != nullptr) return follow(route.children.front(), key);
    Owners result{all ? Policy::all : Policy::random, {}};
    for (std::size_t i = 0; i < count; ++i) {
      for (Owner& owner : follow(route.children.front(), i == 0 ? std::string(key) : name(key, i)).list) {
        owner.must = owner.must && all;
        add(result, std::move(owner));
      }
    }
    return result;
  }

  const Routes& routes_;
  Operation operation_;
  const std::vector<bool>* down_;
  std::optional<std::uint64_t> hash_;
};

class RoutedPlacement final : public Placement {
 public:
  RoutedPlacement(Pool pool, std::shared_ptr<const Routes> routes, Operation operation)
      : pool_(std::move(pool)), routes_(std::move(routes)), operation_(operation) {}

  const Pool& pool() const override { return pool_; }
  std::string_view profile() const override { return "mcrouter-routes"; }
  std::size_t server_of(std::string_view key) const override { return owners_of(key).list.front().server; }
  bool replicates() const override { return true; }
  bool has_plain_owners() const override { return false; }

  std::uint64_t hash_of(std::string_view key) const override {
    RouteWalk walk(*routes_, operation_);
    const std::string_view text = key.substr(routing_prefix(key).size());
    static_cast<void>(walk.follow(routes_->root, text));
    return walk.hash().value_or(RouteHash().hash_of(hashed_part(text)));
  }

  Owners owners_of(std::string_view key) const override {
    const std::string_view prefix = routing_prefix(key);
    const auto& aliases = routes_->aliases;
    if (!aliases.empty() && !prefix.empty() && std::ranges::find(aliases, prefix) == aliases.end())
      throw InvalidInput("the key names the route " + std::string(prefix) + ": choose it by FILE#" +
                         std::string(prefix));
    Owners owners = RouteWalk(*routes_, operation_).follow(routes_->root, key.substr(prefix.size()));
    for (Owner& owner : owners.list) {
      if (owner.wire_key == key) owner.wire_key.clear();
    }
    return owners;
  }

  std::vector<std::size_t> servers_of(std::string_view key, std::size_t count) const override {
    std::vector<std::size_t> servers;
    for (const Owner& owner : owners_of(key).list) {
      if (servers.size() < count) add_once(servers, owner.server);
    }
    return followed(std::move(servers), count);
  }

  std::optional<std::size_t> server_of_when_down(std::string_view key,
                                                 const std::vector<bool>& down) const override {
    RouteWalk walk(*routes_, operation_, &down);
    const Owners owners = walk.follow(routes_->root, key.substr(routing_prefix(key).size()));
    return owners.list.empty() ? std::nullopt : std::optional(owners.list.front().server);
  }

  // Returns those of one weighted hash over servers, as keys are spread while no server is down.
  std::vector<double> route_weights() const override {
    const auto usual = [&](std::size_t index) -> const Route& {
      const Route* route = &routes_->routes[index];
      while (route->kind == Route::Kind::failover || route->kind == Route::Kind::miss_failover)
        route = &routes_->routes[route->children.front()];
      return *route;
    };
    const Route& root = usual(routes_->root);
    if (root.kind != Route::Kind::hash || root.hash.weights.empty()) return {};
    std::vector<double> weights(pool_.size());
    for (std::size_t i = 0; i < root.children.size(); ++i) {
      const Route& child = usual(root.children[i]);
      if (child.kind != Route::Kind::server) return {};
      weights[child.server] += root.hash.weights[i];
    }
    return weights;
  }

 private:
  Pool pool_;
  std::shared_ptr<const Routes> routes_;
  Operation operation_;
};

}  // namespace

std::shared_ptr<const Placement> make_routed_placement(Pool pool, std::shared_ptr<const Routes> routes,
                                                       Operation operation) {
  return std::make_shared<RoutedPlacement>(std::move(pool), std::move(routes), operation);
}

}  // namespace mcds
