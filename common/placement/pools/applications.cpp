// Reads servers from applications' own settings: DSNs, dalli's variable, Django's CACHES, oslo's sections.
#include <algorithm>
#include <array>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"
#include "common/placement/mcrouter/json_tree.hpp"
#include "common/placement/pools/files.hpp"

namespace mcds {

namespace {

constexpr std::string_view dsn_scheme = "memcached:";

// No entry is quoted in messages: if the `@` of a login is missing, it contains the password.
Pool servers_of(const std::vector<std::string>& entries, const char* if_none) {
  if (entries.empty()) throw bad_configuration(if_none);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto read = attempt([&] { return parse_pool(entries[i]); });
    if (read.failure() || read.value().size() != 1 || !read.value().front().name.empty())
      throw bad_configuration("server " + std::to_string(i + 1) +
                              " is neither HOST, HOST:PORT, [v6]:PORT nor the path of a socket; it is not "
                              "shown here, because it may hold a password");
  }
  return parse_pool(joined(entries));
}

std::string decoded(std::string_view text) {
  if (auto bytes = percent_decode(text)) return *std::move(bytes);
  throw bad_configuration("a percent sign in the DSN is not followed by two hex digits");
}

// Converts HOST, HOST:PORT, [v6]:PORT or the path of a socket to an entry of parse_pool.
std::string dsn_entry(std::string_view place, std::string_view weight) {
  if (place.find("://") != std::string_view::npos)
    throw bad_configuration("a server has a scheme, which is not supported by its client; write HOST:PORT");
  if (place.ends_with(':')) place.remove_suffix(1);
  if (place.empty()) throw bad_configuration("a server has no host");
  const std::string address = (place.starts_with('/') ? "unix:" : "") + std::string(place);
  return address + (weight.empty() ? "" : "/?" + std::string(weight));
}

// Sets the login, which any of the servers may state, for all servers of the list.
void take_login(std::string_view user_info, PoolFile& into) {
  const auto colon = user_info.find(':');
  const std::string user = decoded(user_info.substr(0, colon));
  const std::string password = colon == std::string_view::npos ? "" : decoded(user_info.substr(colon + 1));
  if (!into.user.empty() && (into.user != user || into.password != password))
    throw bad_configuration("the servers have different logins; give each login a pool of its own");
  into.user = user;
  into.password = password;
}

// Reads `host[HOST:PORT]=WEIGHT` and php-memcached's options. Symfony does not use the `weight=N` of a query.
void read_dsn_options(std::string_view query, std::vector<std::string>& entries) {
  constexpr std::array placing = {
      "libketama_compatible", "hash",       "distribution",       "prefix_key",
      "hash_with_prefix_key", "sort_hosts", "number_of_replicas", "remove_failed_servers",
      "auto_eject_hosts"};
  for (const auto option : entries_of(query, "&")) {
    const auto equals = std::min(option.find('='), option.size());
    std::string name = decoded(option.substr(0, equals));
    const std::string_view value = option.substr(std::min(equals + 1, option.size()));
    if (name.starts_with("host[") && name.ends_with(']')) {
      entries.push_back(dsn_entry(name.substr(5, name.size() - 6), value));
      continue;
    }
    name = lower_case(std::move(name));
    if (std::ranges::find(placing, name) != placing.end())
      throw bad_configuration("the DSN sets " + name +
                              ", which changes where keys are; give the servers and --as");
  }
}

// Reads memcached://[USER:PASSWORD@]HOST[:PORT][/WEIGHT][?OPTIONS], memcached:///SOCKET or
// memcached:?host[HOST]&….
void read_dsn(std::string_view dsn, std::vector<std::string>& entries, PoolFile& into) {
  if (!dsn.starts_with(dsn_scheme))
    throw bad_configuration("a DSN begins with memcached://; give other servers with --servers");
  dsn.remove_prefix(dsn_scheme.size());
  if (dsn.starts_with("//")) dsn.remove_prefix(2);
  if (const auto at = dsn.find('@'); at != std::string_view::npos) {
    take_login(dsn.substr(0, at), into);
    dsn.remove_prefix(at + 1);
  }
  const auto question = std::min(dsn.find('?'), dsn.size());
  std::string_view place = dsn.substr(0, question);
  std::vector<std::string> others;
  read_dsn_options(dsn.substr(std::min(question + 1, dsn.size())), others);
  std::string_view weight;
  if (const auto slash = place.rfind('/');
      slash != std::string_view::npos && is_digits(place.substr(slash + 1))) {
    weight = place.substr(slash + 1);
    place = place.substr(0, slash);
  }
  if (!place.starts_with('/') && place.ends_with('/')) place.remove_suffix(1);
  if (!place.empty()) entries.push_back(dsn_entry(decoded(place), weight));
  entries.insert(entries.end(), others.begin(), others.end());
}

// Reads dalli's HOST[:PORT[:WEIGHT]], /SOCKET[:WEIGHT] or memcached://USER:PASSWORD@HOST:PORT. dalli drops no
// blanks, and reads numbers with a leading zero as octal ones.
std::string dalli_entry(std::string_view text, PoolFile& into) {
  if (text.starts_with("memcached://")) {
    std::vector<std::string> entries;
    read_dsn(text, entries, into);
    if (entries.size() != 1) throw bad_configuration("a URL in the list has no host");
    return entries.front().substr(0, entries.front().find("/?"));  // dalli's URLs have no weight
  }
  const auto host = text.substr(0, text.find(':', text.starts_with('[') ? text.find(']') : 0));
  auto numbers = split(text.substr(host.size()), ':');
  numbers.erase(numbers.begin());  // what precedes the first colon
  const auto is_number = [](std::string_view number) {
    return is_digits(number) && (number.size() == 1 || !number.starts_with('0'));
  };
  const bool is_socket = host.starts_with('/');
  if (host.find_first_of(" \t") != std::string_view::npos || !std::ranges::all_of(numbers, is_number) ||
      numbers.size() > (is_socket ? 1 : 2))
    throw bad_configuration(
        "dalli reads a server of the list otherwise than as HOST, HOST:PORT, HOST:PORT:WEIGHT or "
        "/SOCKET:WEIGHT; write it so, without blanks and leading zeros");
  const auto weight = numbers.size() == (is_socket ? 1 : 2) ? numbers.back() : std::string_view();
  return dsn_entry(text.substr(0, text.size() - (weight.empty() ? 0 : weight.size() + 1)), weight);
}

// Returns the profile that pylibmc's behaviors select. Behaviors that do not affect placement are ignored.
std::string pylibmc_profile(const JsonNode& behaviors) {
  constexpr std::array placing = {"ketama",       "ketama_weighted", "ketama_hash",   "hash",
                                  "distribution", "num_replicas",    "remove_failed", "auto_eject"};
  std::string chosen;
  for (const auto& [name, value] : members_of(behaviors)) {
    if (std::ranges::find(placing, name) == placing.end()) continue;
    const std::string text = text_of(value);
    if (text != "false" && text != "0") append_all(chosen, {chosen.empty() ? "" : ",", name, "=", text});
  }
  const auto yes = [](const std::string& text) { return text == "true" || text == "1"; };
  if (chosen.empty()) return "pylibmc-default";
  if (chosen.starts_with("ketama=") && yes(chosen.substr(7))) return "pylibmc-ketama";
  if (chosen.starts_with("ketama_weighted=") && yes(chosen.substr(16))) return "pylibmc-ketama-weighted";
  throw bad_configuration("the cache's behaviors " + in_quotes(chosen) +
                          " are not supported; give the servers and --as");
}

struct Backend {
  std::string_view name;
  const char* profile;  // null: selected by its behaviors
};

std::string django_profile(const std::string& backend, const JsonNode& options) {
  constexpr Backend backends[] = {
      {"django.core.cache.backends.memcached.PyMemcacheCache", "pymemcache-rendezvous"},
      {"django.core.cache.backends.memcached.MemcachedCache", "python-memcached"},
      {"django.core.cache.backends.memcached.PyLibMCCache", nullptr},
      {"django_pylibmc.memcached.PyLibMCCache", nullptr},
      {"django_bmemcached.memcached.BMemcached", "bmemcached-replicating"}};
  const auto* known = std::ranges::find(backends, backend, &Backend::name);
  if (known == std::end(backends)) {
    // Other backends that use memcached, with advice according to their client.
    for (const auto& [module, step] :
         {std::pair{"django_elasticache.", "give --servers-from elasticache:LOCATION and --as"},
          {"django_elastipymemcache.", "give --servers-from elasticache:LOCATION --as pymemcache-rendezvous"},
          {"django_pymemcache.", "give the servers and --as pymemcache-rendezvous"},
          {"johnny.backends.memcached.", "give the servers and --as python-memcached or pylibmc-default"}}) {
      if (backend.starts_with(module))
        throw bad_configuration("the cache's BACKEND is " + in_quotes(backend) +
                                ", which is not supported; " + step);
    }
    throw bad_configuration("the cache's BACKEND is " + in_quotes(backend) +
                            ", which is not a known backend for memcached; give the servers and --as");
  }
  const bool flat = backend.starts_with("django_pylibmc.");  // all its options are behaviors
  const JsonNode* behaviors = flat ? &options : member_of(options, "behaviors");
  if (known->profile == nullptr)
    return behaviors == nullptr ? "pylibmc-default" : pylibmc_profile(*behaviors);
  for (const char* name : {"hasher", "key_prefix"}) {
    if (member_of(options, name) != nullptr)
      throw bad_configuration("OPTIONS has " + std::string(name) +
                              ", which changes where keys are; give the servers and --as");
  }
  return known->profile;
}

// Converts a string, or a pair: of host and port for pymemcache, otherwise of server and weight.
std::string django_entry(const JsonNode& location, const std::string& profile) {
  if (location.is_string()) {
    std::string_view place = location.get_ref<const std::string&>();
    if (place.empty() || place.find_first_of(" \t\n,;") != std::string_view::npos)
      throw bad_configuration(
          "LOCATION has a server that is empty or has a blank or comma, which Django reads as part of its "
          "name; list one server in each entry");
    if (place.starts_with("unix:")) place.remove_prefix(5);
    return dsn_entry(place, "");
  }
  const bool pair = location.is_array() && location.size() == 2;
  if (!pair || !location[0].is_string())
    throw bad_configuration("LOCATION has an entry that is not a server");
  const std::string first = text_of(location[0]), second = text_of(location[1]);
  if (!profile.starts_with("pymemcache")) return dsn_entry(first, second);
  if (!is_digits(second)) throw bad_configuration("LOCATION has a pair whose port is not a number");
  const bool bare_v6 = first.find(':') != std::string::npos && first.find_first_of("[/") == std::string::npos;
  return dsn_entry((bare_v6 ? '[' + first + ']' : first) + ':' + second, "");
}

struct OsloSection {
  std::string name, backend = {}, user = {}, password = {};
  std::vector<std::string> servers = {};
  bool tls = false, sasl = false;
  bool advanced_pool = true;  // keystone's; the other one ignores TLS
  bool has_url = false;       // the servers are of backend_argument
  bool swift = false;         // read by its own client instead of oslo's
};

void read_oslo_option(const std::string& name, std::string value, OsloSection& into) {
  const std::string text = lower_case(value);
  const bool yes = text == "true" || text == "1" || text == "on" || text == "yes";  // as oslo.config reads it
  // Elsewhere than in oslo.cache's own section, a username is for another service.
  const bool is_cache = into.name == "cache";
  if (name == "backend") into.backend = value;
  if (name == "use") into.swift = value.ends_with("swift#memcache");
  if (name == "memcache_username" || (is_cache && name == "username")) into.user = value;
  if (name == "memcache_password" || (is_cache && name == "password")) into.password = value;
  if (name == "tls_enabled" || name == "memcache_tls_enabled") into.tls = yes;
  if (name == "memcache_sasl_enabled") into.sasl = yes;
  if (name == "memcache_use_advanced_pool") into.advanced_pool = yes;
  if (name == "backend_argument" && !value.starts_with("url:")) return;
  if (name == "backend_argument") value = value.substr(4);
  if (name != "backend_argument" && name != "memcache_servers" && name != "memcached_servers") return;
  // oslo.cache uses memcache_servers only without an url among the arguments, wherever it stands.
  if (name != "backend_argument" && into.has_url) return;
  into.has_url = name == "backend_argument";
  into.servers.clear();
  for (std::string_view server : entries_of(value, ",")) {
    if (server.starts_with("inet6:")) server.remove_prefix(6);
    into.servers.emplace_back(server);
  }
}

// Returns the text without quotes around all of it, which oslo.config removes once.
std::string_view without_one_pair(std::string_view text) {
  const bool is_quoted =
      text.size() > 1 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<OsloSection> oslo_sections(std::string_view ini) {
  std::vector<OsloSection> sections;
  std::string name, value;  // of an option that an indented next line may continue
  const auto finish = [&] {
    if (!name.empty() && !sections.empty())
      read_oslo_option(name, std::string(without_one_pair(trimmed(value, " \t\r\n"))), sections.back());
    name.clear();
  };
  while (!ini.empty()) {
    const std::string_view whole = take_line(ini), line = trimmed(whole, " \t\r\n");
    if (!name.empty() && !line.empty() && (whole.front() == ' ' || whole.front() == '\t')) {
      append_all(value, {"\n", line});
      continue;
    }
    if (line.starts_with('#') || line.starts_with(';')) continue;
    finish();
    if (line.starts_with('[')) {
      const std::string section(line.substr(1, line.find(']') - 1));
      const auto same = std::ranges::find(sections, section, &OsloSection::name);
      if (same == sections.end())
        sections.push_back({.name = section});
      else
        std::rotate(same, same + 1, sections.end());  // a repeated section continues
      continue;
    }
    const auto end = std::min(line.find_first_of("=:"), line.size());
    name = trimmed(line.substr(0, end), " \t");
    value = line.substr(std::min(end + 1, line.size()));
  }
  finish();
  std::erase_if(sections, [](const OsloSection& section) { return section.servers.empty(); });
  return sections;
}

// Returns the section's client. The pool of oslo.cache, and keystone's, are python-memcached's, or with a
// login or TLS bmemcached's, which writes every key to all servers.
std::string oslo_profile(const OsloSection& section) {
  constexpr Backend backends[] = {{"", "python-memcached"},
                                  {"dogpile.cache.memcached", "python-memcached"},
                                  {"oslo_cache.memcache_pool", "python-memcached"},
                                  {"dogpile.cache.pymemcache", "pymemcache-rendezvous"},
                                  {"dogpile.cache.bmemcached", "bmemcached-replicating"},
                                  {"dogpile.cache.pylibmc", "pylibmc-default"}};
  const bool pool = section.backend.empty() || section.backend == "oslo_cache.memcache_pool";
  if (pool && (section.sasl || section.tls)) return "bmemcached-replicating";
  if (const auto* known = std::ranges::find(backends, section.backend, &Backend::name);
      known != std::end(backends))
    return known->profile;
  throw bad_configuration("the backend of [" + section.name + "] is " + in_quotes(section.backend) +
                          ": its keys are not placed on one of these servers");
}

}  // namespace

PoolFile parse_dsn(std::string_view text) {
  PoolFile file{.profile = "php-memcached-ketama-compatible"};
  std::vector<std::string> entries;
  for (const auto dsn : entries_of(text, " \t\n")) read_dsn(dsn, entries, file);
  file.pool = servers_of(entries, "the DSN has no server");
  return file;
}

PoolFile parse_dalli(std::string_view text) {
  PoolFile file{.profile = "dalli"};
  std::vector<std::string> entries;
  while (text.ends_with(',')) text.remove_suffix(1);  // as Ruby's split does
  if (text.empty()) throw bad_configuration("the list has no server");
  for (const auto server : split(text, ',')) entries.push_back(dalli_entry(server, file));
  file.pool = servers_of(entries, "the list has no server");
  return file;
}

PoolFile parse_django(std::string_view json, std::string_view wanted) {
  const JsonNode all = parse_json_tree(json);
  const JsonNode* caches = member_of(all, "CACHES") == nullptr ? &all : member_of(all, "CACHES");
  const bool single = wanted.empty() && members_of(*caches).size() == 1;
  const JsonNode* cache =
      single ? &members_of(*caches).begin()->second : member_of(*caches, wanted.empty() ? "default" : wanted);
  if (cache == nullptr || !cache->is_object()) {
    throw bad_configuration("no such cache; the file has " +
                            joined(members_of(*caches), ", ", &JsonNode::object_t::value_type::first) +
                            " (write FILE#CACHE)");
  }
  const JsonNode* given = member_of(*cache, "OPTIONS");
  const JsonNode options = given == nullptr ? JsonNode() : *given;
  PoolFile file{.profile = django_profile(string_at(*cache, "BACKEND"), options),
                .user = string_at(options, "username"),
                .password = string_at(options, "password")};
  const JsonNode* location = member_of(*cache, "LOCATION");
  if (location == nullptr) throw bad_configuration("the cache has no LOCATION");
  std::vector<std::string> entries;
  if (location->is_string()) {
    std::string text = text_of(*location);
    std::ranges::replace(text, ';', ',');
    for (const auto server : split(text, ','))
      entries.push_back(django_entry(JsonNode(server), file.profile));
  }
  for (const JsonNode& server : elements_of(*location)) entries.push_back(django_entry(server, file.profile));
  file.pool = servers_of(entries, "the cache has no LOCATION");
  return file;
}

PoolFile parse_oslo(std::string_view ini, std::string_view wanted) {
  const std::vector<OsloSection> sections = oslo_sections(ini);
  if (sections.empty())
    throw bad_configuration("no section of the file has memcache_servers, memcached_servers or a url");
  const std::string_view name = wanted.empty() ? "cache" : wanted;
  const auto named = std::ranges::find(sections, name, &OsloSection::name);
  const bool only = wanted.empty() && sections.size() == 1;
  if (named == sections.end() && !only)
    throw bad_configuration("no such section; those with servers are " +
                            joined(sections, ", ", &OsloSection::name) + " (write FILE#SECTION)");
  OsloSection section = named == sections.end() ? sections.front() : *named;
  const bool swift = section.swift || section.name == "memcache";
  section.tls = section.tls && (section.advanced_pool || !section.backend.empty());
  PoolFile file{.profile = swift ? "swift" : oslo_profile(section)};
  // Other clients do not log in.
  if (file.profile == "bmemcached-replicating" &&
      (section.sasl || section.backend == "dogpile.cache.bmemcached"))
    file.user = section.user, file.password = section.password;
  std::vector<std::string> entries;
  for (const std::string& server : section.servers) entries.push_back((section.tls ? "tls://" : "") + server);
  file.pool = servers_of(entries, "the section has no servers");
  return file;
}

}  // namespace mcds
