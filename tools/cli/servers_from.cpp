#include "tools/cli/servers_from.hpp"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/cluster/elasticache.hpp"
#include "common/cluster/libmemcached/configured.hpp"
#include "common/cluster/name_lookup.hpp"

namespace mcds {

namespace {

// Returns the result of `work`, or nullopt if it takes longer than `longest`. Its thread then continues, so
// `work` must own everything that it uses. It must not throw.
template <typename Work>
std::optional<std::invoke_result_t<Work>> within(Duration longest, Work work) {
  std::promise<std::invoke_result_t<Work>> promise;
  auto result = promise.get_future();
  std::thread([work = std::move(work), promise = std::move(promise)]() mutable {
    promise.set_value(work());
  }).detach();
  if (result.wait_for(longest) != std::future_status::ready) return std::nullopt;
  return result.get();
}

Duration lookup_time(const RunLimits& limits) {
  const SteadyTime now = SystemClock().steady();
  return limits.earlier(now + max_lookup) - now;
}

Addresses look_for(const RunLimits& limits, const std::string& name, int flags, int family) {
  return std::move(look_up(name, "", lookup_time(limits), flags, family).addresses);
}

std::optional<std::string> text_of(const RunLimits& limits, Addresses found, int flags) {
  if (found == nullptr) return std::nullopt;
  const auto name = within(lookup_time(limits), [found = std::shared_ptr<addrinfo>(std::move(found)), flags] {
    return host_of(found->ai_addr, found->ai_addrlen, flags);
  });
  return name.value_or(std::nullopt);
}

Failure no_answer(const std::string& what) {
  return {ErrorCode::unavailable, what};
}

constexpr std::size_t max_pool_file_size = std::size_t{4} << 20;

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
  if (source.kind == "libmemcached") return source;  // its string contains # and any other character
  if (const auto hash = source.where.rfind('#'); hash != std::string::npos) {
    source.pool = source.where.substr(hash + 1);
    source.where.resize(hash);
  }
  if (source.where.empty())
    throw InvalidInput("--servers-from: a value is missing after " + source.kind + ":");
  return source;
}

// Parses one server written by the user: [tls://]HOST[:PORT].
Server one_server(const std::string& kind, const std::string& text) {
  const Pool servers = parse_pool(text);
  const Server& server = servers.front();
  if (servers.size() > 1 || server.is_unix() || server.weight != 1 || !server.name.empty())
    throw InvalidInput("--servers-from: write one [tls://]HOST[:PORT] after " + kind + ":");
  return server;
}

// Returns the addresses of a name. A certificate is checked against the name.
FoundServers servers_of_name(const std::string& where, const ConnectOptions& options, const Clock& clock) {
  const Server asked = one_server("dns", where);
  const std::string port = std::to_string(asked.port);
  const NameLookup found = look_up(asked.host, port, options.left(clock, max_lookup), 0);
  options.check_deadline(clock);
  if (found.addresses == nullptr)
    throw no_answer("the name " + asked.host + " has no address: " + found.error);
  std::map<std::pair<std::string, std::string>, Server>
      servers;  // keyed by the packed bytes: sorted numerically, each once
  for (const addrinfo* entry = found.addresses.get(); entry != nullptr; entry = entry->ai_next) {
    const auto host = host_of(entry->ai_addr, entry->ai_addrlen);
    if (!host) continue;
    const bool v4 = entry->ai_family == AF_INET;
    const void* packed =
        v4 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(entry->ai_addr)->sin_addr)
           : &reinterpret_cast<const sockaddr_in6*>(entry->ai_addr)->sin6_addr;
    Server server;
    server.host = *host;
    server.port = asked.port;
    servers.emplace(std::pair(std::string(static_cast<const char*>(packed), v4 ? 4 : 16), server.host),
                    server);
  }
  FoundServers result{{}, true, asked.tls, asked.host};
  for (const auto& [packed, server] : servers) result.file.pool.push_back(server);
  return result;
}

// Returns the records with the lowest priority number, sorted by name and port.
std::vector<ServiceRecord> usable(std::vector<ServiceRecord> records) {
  std::erase_if(records, [](const ServiceRecord& record) {
    return record.target.empty();
  });  // "." means: no such service
  std::ranges::sort(records, [](const auto& a, const auto& b) {
    return std::tie(a.priority, a.target, a.port) < std::tie(b.priority, b.target, b.port);
  });
  const auto spare = std::ranges::find_if(
      records, [&](const auto& record) { return record.priority != records.front().priority; });
  records.erase(spare, records.end());
  return records;
}

// Returns the servers of a service. Name servers give equal records any equal weight, such as 33, and 0 to
// rarely used ones. For a client, weights multiply points, so equal weights become 1, the minimum.
FoundServers servers_of_service(const std::string& where, const ConnectOptions& options, const Clock& clock) {
  const bool tls = where.starts_with("tls://");
  const std::string name = tls ? where.substr(6) : where;
  const auto answer = look_up_service(name, options.left(clock, max_lookup));
  options.check_deadline(clock);
  if (!answer) throw no_answer("the name server does not answer for " + name + " in time");
  const auto records = usable(parse_service_records(*answer));
  if (records.empty()) throw no_answer("the name " + name + " has no SRV records");
  const bool equal = std::ranges::all_of(
      records, [&](const auto& record) { return record.weight == records.front().weight; });
  FoundServers result{{}, true, tls, ""};
  for (const auto& record : records) {
    const std::string port = std::to_string(record.port);
    Server server = discovered_server(record.target, port, record.target + ':' + port);
    server.weight = equal ? 1 : std::max(record.weight, 1U);
    result.file.pool.push_back(std::move(server));
  }
  return result;
}

// Returns the servers of an endpoint. They use TLS if the endpoint does. No login is sent to the endpoint.
FoundServers servers_of_endpoint(const std::string& where, const Access& access,
                                 const ConnectOptions& options, const Clock& clock) {
  Server endpoint = one_server("elasticache", where);
  endpoint.tls = endpoint.tls || access.tls_for_all;
  endpoint.credentials = std::make_shared<const Credentials>(Credentials{access.credentials.tls, {}, {}});
  return {parse_elasticache(elasticache_config(endpoint, options, clock)), true, endpoint.tls, ""};
}

// Reads a configuration string from the command line or from @FILE.
PoolFile configured_by_libmemcached(const std::string& where, const ConnectOptions& options,
                                    const Clock& clock) {
  const std::string text =
      where.starts_with('@') ? small_file(where.substr(1), max_pool_file_size).bytes : where;
  PoolFile file;
  file.asked = libmemcached::configured_client(text, options.left(clock, max_lookup));
  file.pool = file.asked->servers();
  file.profile = "libmemcached-configured";
  file.key_prefix = file.asked->key_prefix();
  return file;
}

std::string bytes_of(const Source& source) {
  return std::string(without_byte_order_mark(small_file(source.where, max_pool_file_size).bytes));
}

struct OtherProgram {
  std::string_view kind;
  bool is_file;  // false: a variable of the environment
  PoolFile (*parse)(std::string_view text, std::string_view pool);
};

constexpr std::array<OtherProgram, 9> other_programs{
    {{"nutcracker", true, parse_nutcracker},
     {"mcrouter", true, parse_mcrouter},
     {"php-ini", true, parse_php_ini},
     {"django", true, parse_django},
     {"oslo", true, parse_oslo},
     {"json", true, parse_json_servers},
     {"libketama", true, [](std::string_view text, std::string_view) { return parse_libketama(text); }},
     {"dsn", false, [](std::string_view text, std::string_view) { return parse_dsn(text); }},
     {"dalli", false, [](std::string_view text, std::string_view) { return parse_dalli(text); }}}};

// Parses the source. A bad server is an error of the file, which is named, and not of the command.
PoolFile parsed(const OtherProgram& program, const Source& source) {
  const std::string text = program.is_file ? bytes_of(source) : environment_list(source.where);
  try {
    return program.parse(text, source.pool);
  } catch (const Failure& failure) {
    if (failure.code() != ErrorCode::configuration && failure.code() != ErrorCode::usage) throw;
    throw bad_configuration(source.where + ": " + failure.what());
  }
}

}  // namespace

Resolver system_resolver(const std::shared_ptr<const RunLimits>& limits) {
  const auto address_of = [limits](const std::string& name) {
    Addresses found = look_for(*limits, name, 0, AF_INET);
    if (found == nullptr) found = look_for(*limits, name, 0, AF_INET6);
    return text_of(*limits, std::move(found), NI_NUMERICHOST);
  };
  const auto host_name_of = [limits](const std::string& address) {
    return text_of(*limits, look_for(*limits, address, AI_NUMERICHOST, AF_UNSPEC), NI_NAMEREQD);
  };
  return {address_of, host_name_of};
}

FoundServers find_servers(std::string_view text, const Access& access, const ConnectOptions& options,
                          const Clock& clock) {
  const Source source = parse_source(text);
  if (source.kind == "file") return {parse_server_list(bytes_of(source))};
  if (source.kind == "dns") return servers_of_name(source.where, options, clock);
  if (source.kind == "dnssrv") return servers_of_service(source.where, options, clock);
  if (source.kind == "elasticache") return servers_of_endpoint(source.where, access, options, clock);
  if (source.kind == "libmemcached") return {configured_by_libmemcached(source.where, options, clock)};
  if (source.kind == "env") return {{parse_pool(environment_list(source.where + "_SERVERS")), "", ""}};
  const auto program = std::ranges::find(other_programs, source.kind, &OtherProgram::kind);
  if (program != other_programs.end()) return {parsed(*program, source)};
  throw InvalidInput("--servers-from: unknown kind " + in_quotes(source.kind) +
                     "; there are nutcracker, mcrouter, php-ini, django, oslo, json, libketama, file, dns, "
                     "dnssrv, elasticache, dsn, dalli, libmemcached, env");
}

std::optional<std::vector<unsigned char>> look_up_service(const std::string& name, Duration longest) {
  // The resolver's settings belong to a thread; the new thread uses a copy of ours.
  if ((_res.options & RES_INIT) == 0) static_cast<void>(res_init());
  return within(longest, [name, settings = _res]() mutable {
    std::vector<unsigned char> bytes(65535);
    const int size =
        res_nquery(&settings, name.c_str(), ns_c_in, ns_t_srv, bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(std::min(static_cast<std::size_t>(std::max(size, 0)), bytes.size()));
    return bytes;
  });
}

std::vector<ServiceRecord> parse_service_records(std::span<const unsigned char> answer) {
  ns_msg message;
  std::vector<ServiceRecord> records;
  if (ns_initparse(answer.data(), static_cast<int>(answer.size()), &message) != 0) return records;
  for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
    ns_rr record;
    if (ns_parserr(&message, ns_s_an, i, &record) != 0 || ns_rr_type(record) != ns_t_srv ||
        ns_rr_rdlen(record) < 7)
      continue;
    const unsigned char* data = ns_rr_rdata(record);
    std::array<char, NS_MAXDNAME> name{};
    if (dn_expand(ns_msg_base(message), ns_msg_end(message), data + 6, name.data(), name.size()) < 0)
      continue;
    records.push_back({name.data(), ns_get16(data), ns_get16(data + 2), ns_get16(data + 4)});
  }
  return records;
}

}  // namespace mcds
