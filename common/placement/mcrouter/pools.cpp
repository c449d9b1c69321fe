#include "common/placement/mcrouter/pools.hpp"

#include "common/base/errors.hpp"

namespace mcds {

bool mcrouter_tls(std::string_view mechanism) {
  if (mechanism == "plain" || mechanism == "notls") return false;
  for (const char* tls : {"tls", "ssl", "tls13_fizz", "tls13", "ktls12"}) {
    if (mechanism == tls) return true;
  }
  throw bad_configuration("the security mechanism \"" + std::string(mechanism) +
                          "\" is not supported; use tls or plain");
}

std::string mcrouter_address(std::string_view server, std::uint64_t port_override, bool pool_has_tls) {
  const std::string shown = '"' + std::string(server) + '"';
  if (server.starts_with("unix:") || server.starts_with('/'))
    throw bad_configuration("the server " + shown +
                            " is a unix socket, which is not supported; give the servers and --as");
  const std::size_t bracket = server.starts_with('[') ? server.find(']') : 0;
  if (server.empty() || bracket == std::string_view::npos)
    throw bad_configuration("a server of the pool is not host:port: " + shown);
  const std::size_t colon = server.find(':', bracket);
  if (colon == std::string_view::npos && port_override == 0)
    throw bad_configuration("a server of the pool is not host:port: " + shown);
  // host:port:protocol:mechanism
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

McrouterPools::McrouterPools(const JsonNode& config) {
  const JsonNode* pools = config.find("pools");
  if (pools == nullptr) return;
  if (!pools->is(JsonNode::Kind::object)) throw bad_configuration("\"pools\" is not an object");
  for (const auto& [name, json] : pools->members) known_[name] = &json;
}

McrouterPools::Named McrouterPools::pool(const JsonNode& reference) {
  if (reference.is_string()) {
    const auto found = known_.find(reference.text);
    if (found == known_.end())
      throw bad_configuration("a route names the pool \"" + reference.text +
                              "\", which the file does not have");
    return {found->first, found->second};
  }
  const std::string name = reference.string_at("name");
  if (name.empty())
    throw bad_configuration("a route has a pool that is neither a name nor an object with a \"name\"");
  return {name, known_.try_emplace(name, &reference).first->second};
}

const JsonNode* McrouterPools::member(const Named& pool, std::string_view name) const {
  const JsonNode* json = pool.json;
  for (std::size_t steps = 0; steps <= known_.size(); ++steps) {
    if (!json->is(JsonNode::Kind::object))
      throw bad_configuration("the pool \"" + pool.name + "\" is not an object");
    if (const JsonNode* found = json->find(name)) return found;
    const std::string parent = json->string_at("inherit");
    if (parent.empty()) return nullptr;
    const auto next = known_.find(parent);
    if (next == known_.end())
      throw bad_configuration("the pool \"" + pool.name + "\" inherits from \"" + parent +
                              "\", which the file does not have");
    json = next->second;
  }
  throw bad_configuration("the pool \"" + pool.name + "\" inherits from itself");
}

}  // namespace mcds
