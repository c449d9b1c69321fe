#include "common/placement/identity.hpp"

namespace mcds::identity {

namespace {

std::string joined(const std::string& host, std::uint16_t port) {
  return host + ':' + std::to_string(port);
}

// Without the port when it is 11211.
std::string elided(const std::string& host, std::uint16_t port) {
  return port == default_port ? host : joined(host, port);
}

}  // namespace

std::string host_port(const Server& server, std::size_t, const Resolver&) {
  if (!server.name.empty()) return server.name;
  return server.is_unix() ? server.socket_path : joined(server.host, server.port);
}

std::string libmemcached(const Server& server, std::size_t, const Resolver&) {
  if (!server.name.empty()) return server.name;
  return server.is_unix() ? server.socket_path + ":0" : elided(server.host, server.port);
}

}  // namespace mcds::identity
