// parse_mcrouter: selects a route of a configuration, and reduces it to a pool and a profile if possible.

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"
#include "common/placement/mcrouter/builder.hpp"
#include "common/placement/pools/files.hpp"

namespace mcds {

namespace {

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
    if (!used[i]) continue;
    for (const std::size_t child : routes[i].children) used[child] = true;
    if (routes[i].kind != Route::Kind::prefixes) continue;
    for (const auto& [prefix, child] : routes[i].prefixes) used[child] = true;
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
  file.routes = std::make_shared<Routes>(std::move(routes), root.route, root.aliases);
  return file;
}

}  // namespace mcds
