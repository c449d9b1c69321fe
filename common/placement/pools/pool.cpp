#include "common/placement/pools/pool.hpp"

#include <arpa/inet.h>

#include <map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"

namespace mcds {

namespace {

constexpr std::uint32_t max_weight = 100'000;

[[noreturn]] void refuse(std::string_view entry, const std::string& why) {
  throw InvalidInput("server '" + std::string(entry) + "': " + why);
}

// Removes `/?WEIGHT` from the end of `rest`.
std::uint32_t take_weight(std::string_view entry, std::string_view& rest) {
  const auto at = rest.rfind("/?");
  if (at == std::string_view::npos) return 1;
  const auto weight = parse_u64(rest.substr(at + 2));
  if (!weight || *weight > max_weight)
    refuse(entry, "the weight after '/?' must be a number from 0 to 100000");
  rest = rest.substr(0, at);
  return static_cast<std::uint32_t>(*weight);
}

// Removes `NAME=` from the front of `rest`.
std::string take_name(std::string_view entry, std::string_view& rest) {
  const auto at = rest.find('=');
  if (rest.starts_with("unix:") || at == std::string_view::npos) return {};
  if (at == 0) refuse(entry, "the name before '=' is empty");
  const std::string name(rest.substr(0, at));
  if (name.find('?') != std::string::npos) refuse(entry, "write a weight as /?NUMBER");
  rest = rest.substr(at + 1);
  return name;
}

std::uint16_t port_of(std::string_view entry, std::string_view text) {
  if (text.empty()) refuse(entry, "the port after ':' is missing");
  const auto port = parse_u64(text);
  if (!port || *port == 0 || *port > 65535) refuse(entry, "the port must be a number from 1 to 65535");
  return static_cast<std::uint16_t>(*port);
}

// Removes `tls://` from the front of `rest`.
bool take_tls(std::string_view entry, std::string_view& rest) {
  if (rest.starts_with("tls://")) {
    rest.remove_prefix(6);
    if (rest.starts_with("unix:")) refuse(entry, "TLS is not possible on a unix socket; omit tls://");
    return true;
  }
  if (rest.starts_with("tls:")) refuse(entry, "write tls://HOST:PORT for TLS");
  if (const auto at = rest.find("://"); at != std::string_view::npos) {
    refuse(entry, "the scheme " + std::string(rest.substr(0, at + 3)) +
                      " is unknown; write HOST:PORT, or tls://HOST:PORT");
  }
  return false;
}

// The text before an @ may contain a password.
void refuse_logins(std::string_view text) {
  while (!text.empty()) {
    const auto entry = trimmed(take_word(text, ','));
    const auto equals = entry.find('=');
    const auto name = equals == std::string_view::npos ? entry.substr(0, 0) : entry.substr(0, equals);
    const auto address = equals == std::string_view::npos ? entry : entry.substr(equals + 1);
    const bool is_path = entry.starts_with("unix:") || address.starts_with("unix:/");
    const bool in_name = name.find('@') != std::string_view::npos && name.find(':') != std::string_view::npos;
    if (!is_path && (in_name || address.find('@') != std::string_view::npos)) {
      throw InvalidInput(
          "a login is not allowed in the server list; give --user NAME and --password-file FILE (or "
          "MCDS_USER and MCDS_PASSWORD)");
    }
  }
}

bool is_ipv6_address(std::string_view host) {
  in6_addr ignored;
  return inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), &ignored) == 1;
}

void read_bracketed(std::string_view entry, std::string_view rest, Server& server) {
  const auto end = rest.find(']');
  if (end == std::string_view::npos) refuse(entry, "']' is missing");
  server.host = rest.substr(1, end - 1);
  if (!is_ipv6_address(server.host)) refuse(entry, "between '[' and ']' there must be an IPv6 address");
  const auto after = rest.substr(end + 1);
  server.has_port = !after.empty();
  if (after.empty()) return;
  if (!after.starts_with(':')) refuse(entry, "after ']' only ':PORT' may follow");
  server.port = port_of(entry, after.substr(1));
}

// Also accepts leading zeros, which `ring check` reports.
bool is_ipv4(std::string_view host) {
  int numbers = 0;
  for (;; host.remove_prefix(host.find('.') + 1)) {
    const auto number = parse_u64(host.substr(0, host.find('.')));
    if (!number || *number > 255) return false;
    ++numbers;
    if (host.find('.') == std::string_view::npos) return numbers == 4;
  }
}

// Refuses HOST:PORT with an extra colon: an IPv6 address, or a weight in the syntax of other clients.
[[noreturn]] void refuse_colons(std::string_view entry, std::string_view rest) {
  const auto last = rest.rfind(':');
  const std::string before(rest.substr(0, last)), after(rest.substr(last + 1));
  if (is_ipv6_address(rest))
    refuse(entry, "an IPv6 address needs brackets: [" + std::string(rest) + "]:11211");
  if (is_ipv6_address(before)) refuse(entry, "an IPv6 address needs brackets: [" + before + "]:" + after);
  if (before.find(':') == before.rfind(':') && parse_u64(after)) {
    refuse(entry, "more than one colon; write HOST:PORT, with a weight " + before + "/?" + after);
  }
  refuse(entry, "more than one colon; write HOST:PORT, or NAME=HOST:PORT");
}

void read_host(std::string_view entry, std::string_view rest, Server& server) {
  const auto colon = rest.find(':');
  if (rest.find_first_of(";|") != std::string_view::npos) refuse(entry, "separate servers by commas");
  if (rest.starts_with('/')) refuse(entry, "write a unix socket as unix:" + std::string(rest));
  if (rest.find_first_of("${}") != std::string_view::npos)
    refuse(
        entry,
        "a variable that was not expanded; omit the single quotes, or give --servers-from env:NAME for the "
        "variable NAME_SERVERS");
  for (const char* quote : {"'", "\"", "`", "\xe2\x80", "\xc2\xab"}) {
    if (rest.find(quote) != std::string_view::npos) refuse(entry, "omit the quotes");
  }
  if (colon != rest.rfind(':')) refuse_colons(entry, rest);
  if (const auto slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string before(rest.substr(0, slash));
    if (parse_u64(rest.substr(slash + 1)))
      refuse(entry, "write a weight as " + before + "/?" + std::string(rest.substr(slash + 1)));
    refuse(entry, "omit what follows " + before + "; a weight is written /?NUMBER");
  }
  server.host = rest.substr(0, colon);
  if (server.host.empty()) refuse(entry, "the host is missing");
  if (colon == std::string_view::npos && parse_u64(server.host)) {
    refuse(entry, "a number is not a host; write 127.0.0.1:" + server.host + " if that is the port");
  }
  if (server.host.find_first_not_of("0123456789.") == std::string::npos && !is_ipv4(server.host)) {
    refuse(entry, "'" + server.host + "' is not an IPv4 address of four numbers from 0 to 255");
  }
  // Thanos, Loki, Mimir and Cortex look up such names.
  for (const auto& [mark, source] :
       {std::pair{"dns+", "dns:HOST:PORT"}, {"dnssrv+", "dnssrv:NAME"}, {"dnssrvnoa+", "dnssrv:NAME"}}) {
    if (server.host.starts_with(mark))
      refuse(entry, std::string("give a name that must be looked up as --servers-from ") + source);
  }
  if (server.host.find_first_of("?[]=@#\\()<>*!&^+") != std::string::npos) {
    refuse(entry, "expected HOST[:PORT][/?WEIGHT], [IPv6]:PORT, tls://HOST:PORT or unix:/path");
  }
  server.has_port = colon != std::string_view::npos;
  if (server.has_port) server.port = port_of(entry, rest.substr(colon + 1));
}

Server parse_server(std::string_view entry) {
  if (entry.empty())
    throw InvalidInput("the server list has an empty entry: two commas in a row, or one at an end");
  if (entry.find_first_of(" \t\n") != std::string_view::npos)
    refuse(entry, "separate servers by commas, without spaces, tabs and line ends");
  if (!is_one_word(entry)) refuse(entry, "control characters are not allowed");
  std::string_view rest = entry;
  Server server;
  server.name = take_name(entry, rest);
  server.weight = take_weight(entry, rest);
  server.tls = take_tls(entry, rest);
  if (rest.starts_with("unix:")) {
    server.socket_path = rest.substr(5);
    if (!server.is_unix() || server.socket_path.front() != '/')
      refuse(entry, "write a unix socket as unix:/absolute/path");
  } else if (rest.starts_with('[')) {
    read_bracketed(entry, rest, server);
  } else {
    read_host(entry, rest, server);
  }
  return server;
}

}  // namespace

std::string Server::address() const {
  if (is_unix()) return "unix:" + socket_path;
  const auto shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return shown + ":" + std::to_string(port);
}

Pool parse_pool(std::string_view text) {
  if (trimmed(text).empty())
    throw InvalidInput("the server list is empty; give HOST:PORT, several separated by commas");
  if (text.find('\0') != std::string_view::npos)
    throw InvalidInput("the server list has a NUL byte; is it text?");
  refuse_logins(text);
  Pool pool;
  for (const std::string_view entry : split(text, ',')) pool.push_back(parse_server(trimmed(entry)));
  return pool;
}

bool is_address(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

bool is_host_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > 253 || text.starts_with('-')) return false;
  char before = '.';
  for (const char c : text) {
    const bool word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!word && (c != '.' || before == '.')) return false;
    before = c;
  }
  return before != '.';
}

Server discovered_server(const std::string& host, std::string_view port, std::string_view entry) {
  Server server;
  server.host = host;
  const auto number = parse_u64(port);
  const bool numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  const bool named = is_address(host) || (is_host_name(host) && !numeric);
  if (!named || !number || *number == 0 || *number > 65535) {
    throw Failure(ErrorCode::refused,
                  "the entry " + in_quotes(entry) + " is not a host name or an address with a port");
  }
  server.port = static_cast<std::uint16_t>(*number);
  return server;
}

std::string list_entry(const Server& server) {
  const std::string port = ":" + std::to_string(default_port);
  std::string entry = server.address();
  if (!server.has_port && entry.ends_with(port)) entry.resize(entry.size() - port.size());
  if (server.tls) entry = "tls://" + entry;
  if (!server.name.empty()) entry = server.name + "=" + entry;
  return server.weight == 1 ? entry : entry + "/?" + std::to_string(server.weight);
}

std::vector<std::size_t> first_of_each(const Pool& pool) {
  std::map<std::string, std::size_t> seen;
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    const std::string address = pool[i].is_unix() ? pool[i].address() : lower_case(pool[i].address());
    firsts.push_back(seen.emplace(address, i).first->second);
  }
  return firsts;
}

Pool without_repeats(const Pool& pool) {
  const std::vector<std::size_t> firsts = first_of_each(pool);
  Pool each;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (firsts[i] == i) each.push_back(pool[i]);
  }
  return each;
}

std::vector<std::size_t> indexes_without_repeats(const Pool& pool) {
  const std::vector<std::size_t> firsts = first_of_each(pool);
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0, next = 0; i < firsts.size(); ++i)
    indexes.push_back(firsts[i] == i ? next++ : indexes[firsts[i]]);
  return indexes;
}

}  // namespace mcds
