#include "common/placement/pools/files.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/placement/pools/yaml.hpp"

namespace mcds {

namespace {

std::string_view unquoted(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r\n\"'");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n\"'") - from + 1);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find_first_of(separators);
    if (const auto part = unquoted(text.substr(0, end)); !part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::string joined(const std::vector<std::string>& entries) {
  std::string list;
  for (const auto& entry : entries) list += (list.empty() ? "" : ",") + entry;
  return list;
}

// `host:port:weight [name]` or `/path:weight [name]` as one entry of parse_pool. IPv6 hosts have no brackets there.
std::string nutcracker_entry(std::string_view text) {
  const auto space = text.find(' ');
  const std::string name =
      space == std::string_view::npos ? "" : std::string(unquoted(text.substr(space))) + '=';
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

std::string nutcracker_profile(const YamlNode& pool) {
  const std::string distribution = pool.text("distribution", "ketama");
  if (distribution != "ketama" && distribution != "modula") {
    throw bad_configuration("distribution " + distribution +
                            " does not place keys on fixed servers; use ketama or modula");
  }
  return "twemproxy-" + distribution + '-' + pool.text("hash", "fnv1a_64");
}

// A value ends with its closing quote, or else before a comment.
std::string_view ini_text(std::string_view rest) {
  const auto from = rest.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  rest.remove_prefix(from);
  if (rest.starts_with('"') || rest.starts_with('\'')) {
    const auto end = rest.find(rest[0], 1);
    return rest.substr(1, end == std::string_view::npos ? end : end - 1);
  }
  return unquoted(rest.substr(0, rest.find(';')));
}

std::string ini_value(std::string_view ini, std::string_view wanted) {
  std::string value;
  for (std::size_t from = 0; from < ini.size();) {
    const std::size_t end = std::min(ini.find('\n', from), ini.size());
    const std::string_view line = ini.substr(from, end - from);
    from = end + 1;
    const auto equals = line.find('=');
    if (line.starts_with(';') || equals == std::string_view::npos ||
        unquoted(line.substr(0, equals)) != wanted)
      continue;
    value = ini_text(line.substr(equals + 1));
  }
  return value;
}

bool ini_yes(const std::string& value, bool otherwise) {
  if (value.empty()) return otherwise;
  return value == "1" || value == "On" || value == "on" || value == "true" || value == "yes";
}

// The session handler of php-memcached adds its prefix to the session's id after placing it.
std::string hashing_of_sessions(std::string_view ini) {
  if (!ini_yes(ini_value(ini, "memcached.sess_consistent_hash"), true)) return "php-memcached-prefix";
  const std::string type = ini_value(ini, "memcached.sess_consistent_hash_type");
  return type == "ketama_weighted" ? "php-memcached-ketama-compatible-prefix" : "php-memcached-session";
}

// `:copies=N` behind a profile where the file asks for another number than `usual`.
std::string with_copies(std::string_view ini, std::string_view setting, std::uint64_t more,
                        std::uint64_t usual) {
  const std::string text = ini_value(ini, setting);
  const auto number = text.empty() ? usual - more : parse_u64(text).value_or(usual - more);
  const std::uint64_t copies = std::max<std::uint64_t>(number + more, 1);
  return copies == usual ? "" : ":copies=" + std::to_string(copies);
}

// The session handler of PECL memcache hashes as the extension is configured, and keeps several copies.
std::string memcache_profile(std::string_view ini) {
  const std::string strategy = ini_value(ini, "memcache.hash_strategy"),
                    function = ini_value(ini, "memcache.hash_function");
  const std::string hashing =
      (strategy.empty() ? "consistent" : strategy) + '-' + (function.empty() ? "crc32" : function);
  return "php-memcache-session" + (hashing == "consistent-crc32" ? "" : '-' + hashing) +
         with_copies(ini, "memcache.session_redundancy", 0, 2);
}

std::string session_profile(std::string_view ini) {
  // Replicas are written over the binary protocol only.
  const bool binary = ini_yes(ini_value(ini, "memcached.sess_binary_protocol"), true);
  return hashing_of_sessions(ini) +
         (binary ? with_copies(ini, "memcached.sess_number_of_replicas", 1, 1) : "");
}

// PECL memcache: `tcp://host:port?weight=2&…` or `unix:///path`.
std::string memcache_url_entry(std::string_view url) {
  const auto question = url.find('?');
  std::string weight;
  if (question != std::string_view::npos) {
    for (const auto part : split(url.substr(question + 1), "&")) {
      if (part.starts_with("weight=")) weight = "/?" + std::string(part.substr(7));
    }
  }
  std::string_view address = url.substr(0, question);
  if (address.starts_with("unix://")) {
    address.remove_prefix(7);
    if (address.ends_with(":0")) address.remove_suffix(2);
    return "unix:" + std::string(address) + weight;
  }
  if (address.starts_with("tcp://")) address.remove_prefix(6);
  return std::string(address) + weight;
}

// php-memcached: `host[:port[:weight]]` or `/path[:0[:weight]]`.
std::string memcached_session_entry(std::string_view text) {
  const bool is_unix = text.starts_with('/');
  const auto parts = split(text, ":");
  if (parts.empty()) throw bad_configuration("session.save_path has a server without a host");
  std::string entry = (is_unix ? "unix:" : "") + std::string(parts[0]);
  if (parts.size() > 1 && !is_unix) entry += ':' + std::string(parts[1]);
  if (parts.size() > 2) entry += "/?" + std::string(parts[2]);
  return entry;
}

}  // namespace

PoolFile parse_nutcracker(std::string_view yaml, std::string_view pool_name) {
  const YamlNode root = parse_yaml(yaml);
  if (root.members.empty()) throw bad_configuration("the file names no pool; is it a nutcracker.yml?");
  const YamlNode* pool =
      pool_name.empty() && root.members.size() == 1 ? &root.members[0] : root.find(pool_name);
  if (pool == nullptr) {
    std::string names;
    for (const YamlNode& member : root.members) names += (names.empty() ? "" : ", ") + member.name;
    throw bad_configuration("no such pool; the file has " + names + " (write FILE#POOL)");
  }
  const YamlNode* servers = pool->find("servers");
  if (servers == nullptr || servers->elements.empty()) throw bad_configuration("the pool has no servers");
  if (pool->text("redis", "false") == "true") throw bad_configuration("the pool is one of redis servers");
  std::vector<std::string> entries;
  for (const YamlNode& server : servers->elements) entries.push_back(nutcracker_entry(server.scalar));
  return {parse_pool(joined(entries)), nutcracker_profile(*pool), pool->text("hash_tag", "")};
}

PoolFile parse_php_ini(std::string_view ini) {
  const std::string path = ini_value(ini, "session.save_path");
  if (path.empty()) throw bad_configuration("the file has no session.save_path");
  const std::string handler = ini_value(ini, "session.save_handler");
  std::vector<std::string> entries;
  if (handler == "memcache" || path.find("://") != std::string::npos) {
    for (const auto url : split(path, ",")) entries.push_back(memcache_url_entry(url));
    return {parse_pool(joined(entries)), memcache_profile(ini), ""};
  }
  for (const auto text : split(path, ",")) {
    const auto space = text.rfind(' ');  // PERSISTENT=name before the first server
    entries.push_back(
        memcached_session_entry(space == std::string_view::npos ? text : text.substr(space + 1)));
  }
  const std::string prefix = ini_value(ini, "memcached.sess_prefix");
  return {parse_pool(joined(entries)), session_profile(ini), "", prefix.empty() ? "memc.sess.key." : prefix};
}

PoolFile parse_elasticache(std::string_view text) {
  const auto version_end = text.find('\n');
  if (version_end == std::string_view::npos)
    throw Failure(ErrorCode::refused, "the endpoint sent no cluster configuration");
  Pool servers;
  for (const auto entry : split(text.substr(version_end + 1), " \n")) {
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
  for (const auto line : split(text, "\n")) {
    for (const auto entry : split(line.substr(0, line.find('#')), ", \t")) entries.emplace_back(entry);
  }
  return {parse_pool(joined(entries)), "", ""};
}

}  // namespace mcds
