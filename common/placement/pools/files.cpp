#include "common/placement/pools/files.hpp"

#include <yaml.h>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"
#include "common/placement/mcrouter/json_tree.hpp"

namespace mcds {

namespace {

constexpr int deepest = 32;
// Aliases count each time they are expanded.
constexpr std::size_t max_nodes = 200'000;
constexpr std::size_t max_scalar_bytes = std::size_t{16} << 20;

Failure too_much(const std::string& what) {
  return {ErrorCode::configuration, "the YAML " + what + "; is this a pool file?"};
}

struct Parser {
  yaml_parser_t parser;
  yaml_document_t document;
  bool loaded = false;

  explicit Parser(std::string_view text) {
    if (yaml_parser_initialize(&parser) == 0)
      throw Failure(ErrorCode::system, "no memory for the YAML parser");
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Parser() {
    if (loaded) yaml_document_delete(&document);
    yaml_parser_delete(&parser);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
};

// libyaml spends time and memory on any input, so too deep or long texts are refused event by event.
void check_size(std::string_view text) {
  Parser events_of(text);
  int depth = 0;
  for (std::size_t events = 0;; ++events) {
    yaml_event_t event;
    if (yaml_parser_parse(&events_of.parser, &event) == 0) return;  // the loader reports where
    const yaml_event_type_t type = event.type;
    yaml_event_delete(&event);
    if (type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT) return;
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) ++depth;
    if (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT) --depth;
    if (depth > deepest) throw too_much("nests too deep");
    if (events > max_nodes) throw too_much("is too large");
  }
}

struct Budget {
  std::size_t nodes = max_nodes;
  std::size_t scalar_bytes = max_scalar_bytes;
};

JsonNode convert(yaml_document_t& document, const yaml_node_t& node, int depth, Budget& left) {
  if (depth > deepest) throw too_much("nests too deep");
  if (left.nodes-- == 0) throw too_much("is too large once its aliases are written out");
  const auto child = [&](int index) {
    return convert(document, *yaml_document_get_node(&document, index), depth + 1, left);
  };
  JsonNode result;
  if (node.type == YAML_SCALAR_NODE) {
    if (node.data.scalar.length > left.scalar_bytes)
      throw too_much("is too large once its aliases are written out");
    left.scalar_bytes -= node.data.scalar.length;
    result = std::string(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
  } else if (node.type == YAML_SEQUENCE_NODE) {
    result = JsonNode::array();
    for (const auto* item = node.data.sequence.items.start; item != node.data.sequence.items.top; ++item) {
      result.push_back(child(*item));
    }
  } else if (node.type == YAML_MAPPING_NODE) {
    result = JsonNode::object();
    for (const auto* pair = node.data.mapping.pairs.start; pair != node.data.mapping.pairs.top; ++pair) {
      const std::string key = text_of(child(pair->key));
      if (result.contains(key))
        throw bad_configuration("the file has " + in_quotes(key) +
                                " twice in one place, with which twemproxy does not start; remove one");
      result[key] = child(pair->value);
    }
  }
  return result;
}

// Parses the first document, with every scalar as a string. Throws Failure(configuration), with the line, for
// invalid YAML. Too deep or too large text, with aliases expanded, takes no memory.
JsonNode parse_yaml(std::string_view text) {
  check_size(text);
  Parser parser(text);
  parser.loaded = yaml_parser_load(&parser.parser, &parser.document) != 0;
  if (!parser.loaded) {
    throw Failure(ErrorCode::configuration,
                  "invalid YAML at line " + std::to_string(parser.parser.problem_mark.line + 1));
  }
  const yaml_node_t* root = yaml_document_get_root_node(&parser.document);
  Budget budget;
  return root == nullptr ? JsonNode{} : convert(parser.document, *root, 0, budget);
}

// Converts `host:port:weight [name]` or `/path:weight [name]` to an entry of parse_pool. IPv6 hosts have no
// brackets there.
std::string nutcracker_entry(std::string_view text) {
  const auto space = text.rfind(' ');
  const std::string name = space == std::string_view::npos ? "" : std::string(text.substr(space + 1)) + '=';
  const std::string_view address = text.substr(0, space);
  const auto refused = [&](const char* why) {
    return bad_configuration("the server " + in_quotes(text) + " has " + why);
  };
  constexpr const char* no_weight = "no weight; twemproxy writes host:port:weight";
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size()) throw refused(no_weight);
  const std::string weight = "/?" + std::string(address.substr(colon + 1));
  if (weight == "/?0") throw refused("the weight 0, with which twemproxy does not start");
  const std::string place(address.substr(0, colon));
  if (place.find("://") != std::string::npos)
    throw refused("a scheme, but twemproxy has no TLS; give the servers and --as");
  if (place.starts_with('/')) return name + "unix:" + place + weight;
  const auto port = place.rfind(':');
  if (port == std::string::npos) throw refused(no_weight);
  const bool bare_v6 = place.find(':') < port && !place.starts_with('[');
  return name + (bare_v6 ? '[' + place.substr(0, port) + ']' + place.substr(port) : place) + weight;
}

std::string nutcracker_profile(const JsonNode& pool) {
  const std::string distribution = string_at(pool, "distribution", "ketama");
  if (distribution != "ketama" && distribution != "modula") {
    throw bad_configuration("distribution " + distribution +
                            " does not place keys on fixed servers; use ketama or modula");
  }
  const bool ejects = string_at(pool, "auto_eject_hosts") == "true";
  return "twemproxy-" + distribution + '-' + string_at(pool, "hash", "fnv1a_64") +
         (ejects ? ":eject=yes" : "");
}

}  // namespace

std::string_view without_quotes(std::string_view text) {
  return trimmed(text, " \t\r\n\"'");
}

std::vector<std::string_view> entries_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find_first_of(separators);
    if (const auto part = trimmed(text.substr(0, end), " \t\r\n"); !part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

PoolFile parse_nutcracker(std::string_view yaml, std::string_view pool_name) {
  const JsonNode root = parse_yaml(yaml);
  if (members_of(root).empty()) throw bad_configuration("the file names no pool; is it a nutcracker.yml?");
  const JsonNode* pool = pool_name.empty() && members_of(root).size() == 1 ? &members_of(root).begin()->second
                                                                           : member_of(root, pool_name);
  if (pool == nullptr) {
    throw bad_configuration("no such pool; the file has " +
                            joined(members_of(root), ", ", &JsonNode::object_t::value_type::first) +
                            " (write FILE#POOL)");
  }
  const JsonNode* servers = member_of(*pool, "servers");
  if (servers == nullptr || elements_of(*servers).empty()) throw bad_configuration("the pool has no servers");
  if (string_at(*pool, "redis", "false") == "true")
    throw bad_configuration("the pool has Redis servers; choose a memcached pool");
  std::string profile = nutcracker_profile(*pool);
  const std::string tag = string_at(*pool, "hash_tag");
  if (member_of(*pool, "hash_tag") != nullptr && tag.size() != 2)
    throw bad_configuration("hash_tag " + in_quotes(tag) + " is not two characters");
  std::vector<FileEntry> entries;
  for (const JsonNode& server : elements_of(*servers))
    entries.push_back({nutcracker_entry(text_of(server)), text_of(server)});
  return {pool_of(entries, "host:port:weight [name]"), std::move(profile), tag};
}

Pool pool_of(const std::vector<FileEntry>& entries, const char* form) {
  if (entries.empty()) throw bad_configuration(std::string("the list names no server; write ") + form);
  Pool pool;
  for (const FileEntry& server : entries) {
    const auto read = attempt([&] { return parse_pool(server.entry); });
    if (!read.failure() && read.value().size() == 1) {
      pool.push_back(read.value().front());
      continue;
    }
    const std::string& text = server.written;
    const bool secret = text.find('@') != std::string::npos, name = text.starts_with("dns");
    if (name && text.find('+') != std::string::npos)
      throw bad_configuration("the server " + in_quotes(text) + " must be looked up; give --servers-from " +
                              (text.starts_with("dns+") ? "dns:HOST:PORT" : "dnssrv:NAME"));
    const std::string why = read.failure() ? read.failure()->what() : "";
    const auto port = std::min(why.find("the port"), why.size());
    throw bad_configuration("the server " + (secret ? "with a login" : in_quotes(text)) + " is not " + form +
                            (port < why.size() ? ": " : "") + why.substr(port));
  }
  return pool;
}

namespace {

const JsonNode* child_of(const JsonNode& node, std::string_view name) {
  if (!node.is_array()) return member_of(node, name);
  const auto index = parse_u64(name);
  return index && *index < node.size() ? &node[*index] : nullptr;
}

const JsonNode& at_pointer(const JsonNode& root, std::string_view pointer) {
  const JsonNode* node = &root;
  if (!pointer.empty() && pointer.front() != '/')
    throw bad_configuration("a JSON pointer begins with /: FILE#/stores/memcached/servers");
  for (std::string_view left = pointer; node != nullptr && !left.empty();) {
    left.remove_prefix(1);
    std::string name(left.substr(0, left.find('/')));
    left.remove_prefix(name.size());
    for (const auto& [escape, c] : {std::pair{"~1", '/'}, {"~0", '~'}}) {
      for (auto at = name.find(escape); at != std::string::npos; at = name.find(escape, at + 1))
        name.replace(at, 2, 1, c);
    }
    node = child_of(*node, name);
  }
  if (node == nullptr) throw bad_configuration("the JSON has nothing at " + std::string(pointer));
  return *node;
}

FileEntry json_entry(const JsonNode& server) {
  if (server.is_string()) return {text_of(server), text_of(server)};
  std::string host, port, weight;
  for (const auto& [name, value] : members_of(server)) {
    if (name == "host") host = text_of(value);
    if (name == "port") port = text_of(value) == "0" ? "" : text_of(value);
    if (name == "weight") weight = text_of(value);
    if (name != "host" && name != "port" && name != "weight")
      throw bad_configuration("a server has " + in_quotes(name) +
                              ", which is not supported; give host, port, weight");
  }
  if (host.empty()) throw bad_configuration("the array has an entry that is not a server");
  const std::string written = host + (port.empty() ? "" : ':' + port);
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[' && host.front() != '/';
  if (bare_v6) host = '[' + host + ']';
  return {(host.front() == '/' ? "unix:" : "") + host + (port.empty() ? "" : ':' + port) +
              (weight.empty() ? "" : "/?" + weight),
          written};
}

}  // namespace

PoolFile parse_json_servers(std::string_view json, std::string_view pointer) {
  const JsonNode root = parse_json_tree(json);
  const JsonNode& list = at_pointer(root, pointer);
  std::vector<FileEntry> entries;
  const std::string text = list.is_string() ? text_of(list) : "";
  for (const auto server : entries_of(text, ","))
    entries.push_back({std::string(server), std::string(server)});
  for (const JsonNode& server : elements_of(list)) entries.push_back(json_entry(server));
  if (entries.empty()) throw bad_configuration("the JSON has no array of servers; write FILE#/PATH/TO/ARRAY");
  return {pool_of(entries, "HOST:PORT")};
}

PoolFile parse_libketama(std::string_view text) {
  std::vector<FileEntry> entries;
  while (!text.empty()) {
    const bool ended = text.find('\n') != std::string_view::npos;
    const std::string_view line = take_line(text);
    if (line.empty() || line.front() == '#') continue;
    const auto words = entries_of(line, " \t");
    // libketama cuts off the last byte of the memory, which should be the line end.
    if (words.size() != 2 || !ended || line.find_first_of("\"'") != std::string_view::npos ||
        line.ends_with(' ') || line.ends_with('\t'))
      throw bad_configuration("libketama does not read " + in_quotes(line) +
                              " as HOST:PORT, blanks, memory and the end of the line");
    entries.push_back({std::string(words[0]) + "/?" + std::string(words[1]), std::string(line)});
    if (words[0].size() > 22 || words[0].find(':') == std::string_view::npos ||
        parse_u64(words[1]).value_or(0) == 0)
      throw bad_configuration("libketama needs HOST:PORT of at most 22 bytes and a memory above 0, not " +
                              in_quotes(line));
  }
  return {pool_of(entries, "HOST:PORT with a memory of at most 100000"), "libketama"};
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
                    "the endpoint sent an entry that is not host|ip|port: " + in_quotes(entry));
    servers.push_back(
        discovered_server(std::string(entry.substr(0, first)), entry.substr(second + 1), entry));
  }
  if (servers.empty()) throw Failure(ErrorCode::refused, "the endpoint sent a configuration without servers");
  return {std::move(servers)};
}

PoolFile parse_server_list(std::string_view text) {
  if (text.find("pools{") != std::string_view::npos ||
      text.find("mcp_config_pools") != std::string_view::npos)
    throw bad_configuration(
        "the file is Lua for memcached's built-in proxy, which is not supported; list its servers and give "
        "--as memcached-proxy-default");
  std::vector<std::string> entries;
  for (const auto line : entries_of(text, "\n")) {
    for (const auto entry : entries_of(line.substr(0, line.find('#')), ", \t"))
      entries.emplace_back(without_quotes(entry));
  }
  return {parse_pool(joined(entries))};
}

}  // namespace mcds
