#include "common/placement/identity.hpp"

#include <arpa/inet.h>

#include <tuple>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"

namespace mcds::identity {

namespace {

std::string joined(const std::string& host, std::uint16_t port) {
  return host + ':' + std::to_string(port);
}

// Omits the port if it is 11211.
std::string without_default_port(const std::string& host, std::uint16_t port) {
  return port == default_port ? host : joined(host, port);
}

bool is_literal(const std::string& host) {
  in_addr ignored;
  return is_ipv6(host) || inet_pton(AF_INET, host.c_str(), &ignored) == 1;
}

std::string in_brackets(const std::string& host) {
  return is_ipv6(host) ? '[' + host + ']' : host;
}

// Returns an IPv6 address as Java prints it: eight groups, not compressed. Other texts stay unchanged.
std::string java_address(const std::string& address) {
  std::array<std::uint8_t, 16> bytes;
  if (!is_ipv6(address) || inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return address;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::array<char, 8> group;
    std::snprintf(group.data(), group.size(), "%x", static_cast<unsigned>(bytes[i] << 8 | bytes[i + 1]));
    text += (i == 0 ? "" : ":") + std::string(group.data());
  }
  return text;
}

std::string address_of(const Server& server, const Resolver& resolver) {
  if (is_literal(server.host)) return server.host;
  const auto address = resolver.address_of ? resolver.address_of(server.host) : std::nullopt;
  if (!address)
    throw InvalidInput("the profile hashes the address of " + server.host +
                       ", which does not resolve; give the IP address");
  return *address;
}

// Returns the server's host name, or an empty string if it has none.
std::string name_of(const Server& server, const Resolver& resolver) {
  if (!is_literal(server.host)) return server.host;
  return (resolver.name_of ? resolver.name_of(server.host) : std::nullopt).value_or("");
}

// Java's getHostName(): the address itself if it has no name. In tests, IPv6 addresses had none.
std::string java_host(const Server& server, const Resolver& resolver) {
  if (is_ipv6(server.host)) return java_address(server.host);
  const auto name = name_of(server, resolver);
  return name.empty() ? server.host : name;
}

// The part that all clients share: returns a given name, or a socket's path between `before` and `behind`.
template <typename Tcp>
std::string named(const Server& server, Tcp tcp, const char* before = "", const char* behind = "") {
  if (!server.name.empty()) return server.name;
  return server.is_unix() ? before + server.socket_path + behind : tcp();
}

}  // namespace

std::string host_port(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] { return joined(server.host, server.port); });
}

std::string as_written(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] { return server.has_port ? joined(server.host, server.port) : server.host; });
}

std::string run_together(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] { return server.host + std::to_string(server.port); });
}

// connection-parse finds no port in an IPv6 address, so it does not omit one.
std::string npm(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] {
    return is_ipv6(server.host) ? joined(server.host, server.port)
                                : without_default_port(server.host, server.port);
  });
}

std::string elided(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] { return without_default_port(server.host, server.port); });
}

std::string libmemcached(const Server& server, std::size_t, const Resolver&) {
  return named(
      server, [&] { return without_default_port(server.host, server.port); }, "", ":0");
}

std::string libmemcached_spy(const Server& server, std::size_t, const Resolver&) {
  return named(
      server, [&] { return '/' + joined(server.host, server.port); }, "/", ":0");
}

std::string twemproxy(const Server& server, std::size_t, const Resolver&) {
  return named(
      server, [&] { return without_default_port(server.host, server.port); }, "", ":");
}

std::string numbered_node(const Server& server, std::size_t index, const Resolver&) {
  return server.name.empty() ? "node" + std::to_string(index) : server.name;
}

std::string bracketed(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] { return joined(in_brackets(server.host), server.port); });
}

std::string pecl_memcache(const Server& server, std::size_t, const Resolver&) {
  return named(
      server, [&] { return joined(server.host, server.port); }, "unix://", ":0");
}

std::string bmemcached(const Server& server, std::size_t index, const Resolver& resolver) {
  return server.name.empty() ? as_written(server, index, resolver) + '_' + resolver.login : server.name;
}

std::string evcache(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] { return server.host + '/' + joined(server.host, server.port); });
}

std::string spymemcached(const Server& server, std::size_t, const Resolver& resolver) {
  return named(server, [&] {
    const auto address = joined(in_brackets(java_address(address_of(server, resolver))), server.port);
    return is_literal(server.host) ? address : server.host + '/' + address;
  });
}

std::string java_name_elided(const Server& server, std::size_t, const Resolver& resolver) {
  return named(server, [&] { return without_default_port(java_host(server, resolver), server.port); });
}

std::string java_name_port(const Server& server, std::size_t, const Resolver& resolver) {
  return named(server, [&] { return joined(java_host(server, resolver), server.port); });
}

std::string xmemcached(const Server& server, std::size_t, const Resolver& resolver) {
  return named(server, [&] {
    const auto address = in_brackets(java_address(address_of(server, resolver)));
    return name_of(server, resolver) + '/' + joined(address, server.port);
  });
}

std::string address_port(const Server& server, std::size_t, const Resolver& resolver) {
  return named(server, [&] { return joined(in_brackets(address_of(server, resolver)), server.port); });
}

std::string address_elided(const Server& server, std::size_t, const Resolver& resolver) {
  return named(server, [&] { return without_default_port(address_of(server, resolver), server.port); });
}

std::string enyimcore(const Server& server, std::size_t, const Resolver&) {
  return named(server, [&] {
    const auto text = joined(in_brackets(server.host), server.port);
    return is_literal(server.host) ? text : "Unspecified/" + text;
  });
}

}  // namespace mcds::identity

// Members: a pool as one client sees it, with names, weights and order.

namespace mcds {

namespace {

// Compares digits as numbers and other characters as bytes: node-9 comes before node-10.
bool natural(std::string_view a, std::string_view b) {
  const auto run = [&](std::string_view text) {
    std::size_t size = 1;
    while (size < text.size() && is_digit(text[size]) == is_digit(text[0])) ++size;
    return text.substr(0, size);
  };
  while (!a.empty() && !b.empty()) {
    auto left = run(a), right = run(b);
    a.remove_prefix(left.size());
    b.remove_prefix(right.size());
    if (is_digit(left[0]) && is_digit(right[0])) {
      left.remove_prefix(std::min(left.find_first_not_of('0'), left.size()));
      right.remove_prefix(std::min(right.find_first_not_of('0'), right.size()));
      if (left.size() != right.size()) return left.size() < right.size();
    }
    if (left != right) return left < right;
  }
  return a.empty() && !b.empty();
}

std::uint32_t weight_of(const Rule& rule, const Server& server) {
  const bool is_one = rule.no_weights || (server.weight == 0 && rule.zero_weight_is_one);
  return is_one ? 1 : server.weight;
}

}  // namespace

std::vector<Member> members_of(const Rule& rule, const Pool& pool, const Resolver& resolver) {
  std::vector<Member> members;
  for (const auto& server : pool) {
    const auto index = static_cast<std::uint32_t>(members.size());
    members.push_back({rule.identity == nullptr ? "" : rule.identity(server, index, resolver),
                       weight_of(rule, server), index});
  }
  switch (rule.order) {
    case Order::as_given: break;
    case Order::natural: std::ranges::stable_sort(members, natural, &Member::name); break;
    case Order::by_host_and_port:
      std::ranges::stable_sort(members, {}, [&](const Member& member) {
        const Server& server = pool[member.index];
        return std::tie(server.host, server.socket_path, server.port);
      });
      break;
    case Order::shorter_name_first:
      std::ranges::stable_sort(members, {}, [](const Member& member) {
        return std::pair(member.name.size(), std::string_view(member.name));
      });
      break;
  }
  return members;
}

}  // namespace mcds
