#include "tools/cli/servers_from.hpp"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/elasticache.hpp"
#include "common/cluster/name_lookup.hpp"
#include "tools/cli/access.hpp"
#include "tools/cli/input.hpp"
#include "tools/cli/service_records.hpp"

namespace mcds {

namespace {

Failure no_answer(const std::string& what) {
  return {ErrorCode::unavailable, what};
}

constexpr std::size_t largest_pool_file = std::size_t{4} << 20;

struct Source {
  std::string kind, where, pool;
};

Source parse_source(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    throw InvalidInput(
        "--servers-from: write KIND:WHERE, for instance nutcracker:/etc/nutcracker.yml#pool or "
        "dns:cache.local");
  }
  Source source{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1)), {}};
  if (const auto hash = source.where.rfind('#'); hash != std::string::npos) {
    source.pool = source.where.substr(hash + 1);
    source.where.resize(hash);
  }
  if (source.where.empty())
    throw InvalidInput("--servers-from: a value is missing after " + source.kind + ":");
  return source;
}

std::pair<std::string, std::string> host_and_port(const std::string& text) {
  const Server server = parse_pool(text).front();
  return {server.host, std::to_string(server.port)};
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : '[' + host + ']';
}

constexpr Duration longest_lookup = std::chrono::seconds(5);

PoolFile pool_from_dns(const std::string& where) {
  const auto [host, port] = host_and_port(where);
  const NameLookup found = look_up(host, port, longest_lookup, 0);
  if (found.addresses == nullptr) throw no_answer("the name " + host + " has no address: " + found.error);
  std::set<std::pair<std::string, std::string>> addresses;  // by packed bytes: numerical order, each once
  for (const addrinfo* entry = found.addresses.get(); entry != nullptr; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
      continue;
    const bool v4 = entry->ai_family == AF_INET;
    const void* packed =
        v4 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(entry->ai_addr)->sin_addr)
           : &reinterpret_cast<const sockaddr_in6*>(entry->ai_addr)->sin6_addr;
    addresses.emplace(std::string(static_cast<const char*>(packed), v4 ? 4 : 16), text.data());
  }
  std::string list;
  for (const auto& [packed, text] : addresses)
    list += (list.empty() ? "" : ",") + bracketed(text) + ':' + port;
  return {parse_pool(list), "", ""};
}

// The records of the most urgent priority, by name and port.
std::vector<ServiceRecord> usable(std::vector<ServiceRecord> records) {
  std::erase_if(records, [](const ServiceRecord& record) {
    return record.target.empty();
  });  // "." means: no such service
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::tie(a.priority, a.target, a.port) < std::tie(b.priority, b.target, b.port);
  });
  const auto spare = std::ranges::find_if(
      records, [&](const auto& record) { return record.priority != records.front().priority; });
  records.erase(spare, records.end());
  return records;
}

// Name servers give equals any equal weight, 33 say, and 0 to those hardly wanted; to a client, weights multiply points
// and slots: equals are 1, and 1 is the least.
PoolFile pool_from_srv(const std::string& name) {
  std::array<unsigned char, 65535> answer{};
  const int size = res_query(name.c_str(), ns_c_in, ns_t_srv, answer.data(), answer.size());
  const auto records = usable(size < 0 ? std::vector<ServiceRecord>{}
                                       : parse_service_records(std::span(answer).first(
                                             std::min(static_cast<std::size_t>(size), answer.size()))));
  if (records.empty()) throw no_answer("the name " + name + " has no SRV records");
  const bool equal = std::ranges::all_of(
      records, [&](const auto& record) { return record.weight == records.front().weight; });
  std::string list;
  for (const auto& record : records) {
    list += (list.empty() ? "" : ",") + record.target + ':' + std::to_string(record.port) + "/?" +
            std::to_string(equal ? 1 : std::max(record.weight, 1U));
  }
  return {parse_pool(list), "", ""};
}

// Its servers are as it is: all have TLS, or none has.
PoolFile pool_from_elasticache(const std::string& where, bool tls, const ConnectOptions& options,
                               const Clock& clock) {
  Server endpoint = parse_pool(where).front();
  endpoint.tls = endpoint.tls || tls;
  PoolFile found = parse_elasticache(elasticache_config(endpoint, options, clock));
  for (Server& server : found.pool) server.tls = endpoint.tls;
  return found;
}

}  // namespace

PoolFile pool_from(std::string_view text, bool tls, const ConnectOptions& options, const Clock& clock) {
  const Source source = parse_source(text);
  const auto file = [&] { return configuration_bytes(source.where, largest_pool_file); };
  if (source.kind == "nutcracker") return parse_nutcracker(file(), source.pool);
  if (source.kind == "mcrouter") return parse_mcrouter(file(), source.pool);
  if (source.kind == "php-ini") return parse_php_ini(file());
  if (source.kind == "file") return parse_server_list(file());
  if (source.kind == "dns") return pool_from_dns(source.where);
  if (source.kind == "dnssrv") return pool_from_srv(source.where);
  if (source.kind == "elasticache") return pool_from_elasticache(source.where, tls, options, clock);
  if (source.kind == "env") return {parse_pool(servers_of_environment(source.where)), "", ""};
  throw InvalidInput("--servers-from: unknown kind " + json_quote(source.kind) +
                     "; there are nutcracker, mcrouter, php-ini, file, dns, dnssrv, elasticache, env");
}

}  // namespace mcds
