#include "common/placement/pools/files.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/placement/pools/entries.hpp"
#include "common/placement/pools/yaml.hpp"

namespace mcds {

namespace {

// `host:port:weight [name]` or `/path:weight [name]` as one entry of parse_pool. IPv6 hosts have no brackets
// there.
std::string nutcracker_entry(std::string_view text) {
  const auto space = text.find(' ');
  const std::string name =
      space == std::string_view::npos ? "" : std::string(without_quotes(text.substr(space))) + '=';
  const std::string_view address = text.substr(0, space);
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size()) {
    throw bad_configuration("the server \"" + std::string(text) +
                            "\" has no weight; twemproxy writes host:port:weight");
  }
  const std::string weight = "/?" + std::string(address.substr(colon + 1));
  const std::string place(address.substr(0, colon));
  if (place.find("://") != std::string::npos)
    throw bad_configuration("the server \"" + std::string(text) +
                            "\" has a scheme; twemproxy has no TLS, give the servers and --as");
  if (place.starts_with('/')) return name + "unix:" + place + weight;
  const auto port = place.rfind(':');
  if (port == std::string::npos) {
    throw bad_configuration("the server \"" + std::string(text) +
                            "\" has no weight; twemproxy writes host:port:weight");
  }
  const bool bare_v6 = port != std::string::npos && place.find(':') < port && !place.starts_with('[');
  return name + (bare_v6 ? '[' + place.substr(0, port) + ']' + place.substr(port) : place) + weight;
}

std::string nutcracker_profile(const JsonNode& pool) {
  const std::string distribution = pool.string_at("distribution", "ketama");
  if (distribution != "ketama" && distribution != "modula") {
    throw bad_configuration("distribution " + distribution +
                            " does not place keys on fixed servers; use ketama or modula");
  }
  return "twemproxy-" + distribution + '-' + pool.string_at("hash", "fnv1a_64");
}

}  // namespace

PoolFile parse_nutcracker(std::string_view yaml, std::string_view pool_name) {
  const JsonNode root = parse_yaml(yaml);
  if (root.members.empty()) throw bad_configuration("the file names no pool; is it a nutcracker.yml?");
  const JsonNode* pool =
      pool_name.empty() && root.members.size() == 1 ? &root.members[0].second : root.find(pool_name);
  if (pool == nullptr) {
    throw bad_configuration("no such pool; the file has " +
                            joined(root.members, ", ", &JsonNode::Member::first) + " (write FILE#POOL)");
  }
  const JsonNode* servers = pool->find("servers");
  if (servers == nullptr || servers->elements.empty()) throw bad_configuration("the pool has no servers");
  if (pool->string_at("redis", "false") == "true")
    throw bad_configuration("the pool is one of redis servers");
  std::vector<std::string> entries;
  for (const JsonNode& server : servers->elements) entries.push_back(nutcracker_entry(server.text));
  return {parse_pool(joined(entries)), nutcracker_profile(*pool), pool->string_at("hash_tag")};
}

PoolFile parse_elasticache(std::string_view text) {
  const auto version_end = text.find('\n');
  if (version_end == std::string_view::npos)
    throw Failure(ErrorCode::refused, "the endpoint sent no cluster configuration");
  Pool servers;
  for (const auto entry : entries_of(text.substr(version_end + 1), " \n")) {
    const auto first = entry.find('|');
    const auto second = first == std::string_view::npos ? first : entry.find('|', first + 1);
    if (second == std::string_view::npos)
      throw Failure(ErrorCode::refused,
                    "the endpoint sent an entry that is not host|ip|port: " + json_quote(entry));
    servers.push_back(
        discovered_server(std::string(entry.substr(0, first)), entry.substr(second + 1), entry));
  }
  if (servers.empty()) throw Failure(ErrorCode::refused, "the endpoint sent a configuration without servers");
  return {std::move(servers), "", ""};
}

PoolFile parse_server_list(std::string_view text) {
  std::vector<std::string> entries;
  for (const auto line : entries_of(text, "\n")) {
    for (const auto entry : entries_of(line.substr(0, line.find('#')), ", \t")) entries.emplace_back(entry);
  }
  return {parse_pool(joined(entries)), "", ""};
}

}  // namespace mcds
