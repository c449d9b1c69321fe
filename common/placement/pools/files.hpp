// Reads pools from the files of other programs. The functions depend only on the text. Hashing that a file
// specifies is returned as a profile. The caller reads files, DNS and sockets.
#pragma once

#include "common/placement/pools/pool.hpp"

namespace mcds {

class AskedClient;
struct Routes;

struct PoolFile {
  Pool pool = {};
  std::string profile = {};     // empty: not specified
  std::string hash_tag = {};    // twemproxy: two characters, or empty
  std::string key_prefix = {};  // put before every key and not hashed, such as `memc.sess.key.`; may be empty
  std::shared_ptr<const Routes> routes = nullptr;      // for the profile mcrouter-routes
  std::shared_ptr<const AskedClient> asked = nullptr;  // for the profile libmemcached-configured
  std::string user = {}, password = {};                // the login in the source, for its own servers only
};

// All throw Failure(configuration), which names what is missing or wrong, and InvalidInput like parse_pool.

// Reads nutcracker.yml of twemproxy 0.5. `pool` names one of its pools; it may be empty if there is only one.
// Servers are `host:port:weight [name]` or `/path:weight [name]`; also hash (default fnv1a_64), distribution
// (ketama), hash_tag and auto_eject_hosts (false) are read.
PoolFile parse_nutcracker(std::string_view yaml, std::string_view pool);

// Reads mcrouter's JSON config; comments and trailing commas are allowed. `selection` is a pool, a routing
// prefix /region/cluster/, or the prefix followed by the pool; it may be empty if all keys take one route.
// The profile is mcrouter-ch3 or mcrouter-crc32 if the route is a plain hash, otherwise mcrouter-routes with
// `routes`. Unsupported constructs are refused by name.
PoolFile parse_mcrouter(std::string_view json, std::string_view selection);

// Reads php.ini: session.save_path (with session.save_handler memcached or memcache),
// memcached.sess_consistent_hash, memcached.sess_consistent_hash_type, memcached.sess_prefix;
// memcache.session_save_path, memcache.hash_strategy, memcache.hash_function. Or reads php-fpm's
// `php_admin_value[session.save_path]` and similar lines in the section of `pool`, which may be empty if only
// one sets it. Other handlers are refused by name.
PoolFile parse_php_ini(std::string_view ini, std::string_view pool = {});

// Reads Symfony's DSNs, separated by blanks: memcached://[USER:PASSWORD@]HOST[:PORT][/WEIGHT],
// memcached:///SOCKET, memcached:?host[HOST:PORT]=WEIGHT&…. Options that affect placement are refused.
PoolFile parse_dsn(std::string_view text);

// Reads dalli's MEMCACHE_SERVERS: HOST[:PORT[:WEIGHT]], /SOCKET[:WEIGHT] or
// memcached://USER:PASSWORD@HOST:PORT, separated by commas.
PoolFile parse_dalli(std::string_view text);

// Reads Django's CACHES as JSON, or an object with a member of that name. `cache` names one of them; if
// empty, the only one or `default` is used. Supported are Django's own backends for memcached, django-pylibmc
// and django-bmemcached; others are refused by name.
PoolFile parse_django(std::string_view json, std::string_view cache);

// Reads configuration files of OpenStack: memcache_servers, memcached_servers or `backend_argument = url:…`
// of a section. If `section` is empty, [cache] is used, or the only section that has servers.
PoolFile parse_oslo(std::string_view ini, std::string_view section);

// Reads a JSON array of servers: "HOST[:PORT]", or objects with host, port and weight. `pointer` (RFC 6901)
// leads to the array; empty: the whole text. A string of servers separated by commas is accepted too.
PoolFile parse_json_servers(std::string_view json, std::string_view pointer);

// Reads libketama's servers file: each line has HOST:PORT and its memory, which is the weight.
PoolFile parse_libketama(std::string_view text);

// Reads the reply to ElastiCache's `config get cluster`, without the CONFIG line and END: a version line,
// then `host|ip|port` entries separated by spaces. Throws Failure(refused) for anything else.
PoolFile parse_elasticache(std::string_view text);

// A server of a file: in the form of parse_pool, and as it is written there.
struct FileEntry {
  std::string entry, written;
};
// Returns the servers. Throws Failure(configuration), which quotes the file, for an invalid entry; `form` is
// the format that the file's program reads.
Pool pool_of(const std::vector<FileEntry>& entries, const char* form);

// Returns the text without surrounding blanks and quotes.
std::string_view without_quotes(std::string_view text);
// Returns the parts between separators, without surrounding blanks and without empty parts.
std::vector<std::string_view> entries_of(std::string_view text, std::string_view separators);

// Reads server lists in the form of parse_pool, one or several per line; `#` starts a comment.
PoolFile parse_server_list(std::string_view text);

}  // namespace mcds
