// Pools in the files of other programs: pure functions of the text. The hashing that a file specifies is
// returned as a profile; the caller reads files, DNS and sockets.
#pragma once

#include "common/placement/pools/pool.hpp"

namespace mcds {

class AskedClient;
class Routes;

struct PoolFile {
  Pool pool;
  std::string profile;   // empty: not specified
  std::string hash_tag;  // twemproxy: two characters, or empty
  std::string key_prefix =
      {};  // put before every key and not hashed, for instance `memc.sess.key.`; or empty
  std::shared_ptr<const Routes> routes = nullptr;      // of the profile mcrouter-routes
  std::shared_ptr<const AskedClient> asked = nullptr;  // of the profile libmemcached-configured
  std::string user = {}, password = {};  // the login that the source has, for its own servers alone
};

// All throw Failure(configuration) with a message that names what is missing or wrong, and InvalidInput as
// parse_pool.

// nutcracker.yml of twemproxy 0.5: `pool` names one of its pools; empty is fine when there is only one.
// servers `host:port:weight [name]` or `/path:weight [name]`; hash (default fnv1a_64), distribution (ketama),
// hash_tag.
PoolFile parse_nutcracker(std::string_view yaml, std::string_view pool);

// mcrouter's JSON config, comments and trailing commas allowed. `selection` is a pool, a routing prefix
// /region/cluster/, or the one behind the other; empty is fine where all keys take one route. Profile
// mcrouter-ch3 or mcrouter-crc32 where the route is no more than that, else mcrouter-routes with `routes`.
// Unsupported constructs are refused by name.
PoolFile parse_mcrouter(std::string_view json, std::string_view selection);

// php.ini: session.save_path (with session.save_handler memcached or memcache),
// memcached.sess_consistent_hash, memcached.sess_consistent_hash_type, memcached.sess_prefix;
// memcache.hash_strategy, memcache.hash_function. Or php-fpm's `php_admin_value[session.save_path]` and the
// like in the section of `pool`; empty is fine if only one sets it. Another handler is refused by name.
PoolFile parse_php_ini(std::string_view ini, std::string_view pool = {});

// Symfony's DSNs, one or several between blanks: memcached://[USER:PASSWORD@]HOST[:PORT][?weight=N],
// memcached:///SOCKET, memcached:?host[HOST:PORT]=WEIGHT&…. Options that change where keys are are refused by
// name.
PoolFile parse_dsn(std::string_view text);

// dalli's MEMCACHE_SERVERS: HOST[:PORT[:WEIGHT]], /SOCKET[:WEIGHT] or memcached://USER:PASSWORD@HOST:PORT,
// with commas.
PoolFile parse_dalli(std::string_view text);

// Django's CACHES as JSON, or an object that has it under that name; `cache` is one of them, empty for the
// only one or `default`. Django's own backends for memcached, django-pylibmc and django-bmemcached; all
// others are refused by name.
PoolFile parse_django(std::string_view json, std::string_view cache);

// Configuration files of OpenStack: memcache_servers, memcached_servers or `backend_argument = url:…` of a
// section; empty for [cache], or the only one that has servers.
PoolFile parse_oslo(std::string_view ini, std::string_view section);

// JSON with an array of servers: "HOST[:PORT]", or objects with host, port and weight. `pointer` (RFC 6901)
// leads to the array; empty for the whole text. A string in its place has one or several, with commas.
PoolFile parse_json_servers(std::string_view json, std::string_view pointer);

// libketama's servers file: HOST:PORT and its memory, the weight, on a line.
PoolFile parse_libketama(std::string_view text);

// The reply of ElastiCache's `config get cluster`, without the CONFIG line and END: a version line, then
// `host|ip|port` entries separated by spaces. Throws Failure(refused) for anything else.
PoolFile parse_elasticache(std::string_view text);

// A server of a file: as parse_pool takes it, and as it stands there.
struct FileEntry {
  std::string entry, written;
};
// Returns the servers. Throws Failure(configuration) with the file's own words for an entry that is none;
// `form`: what its program reads.
Pool pool_of(const std::vector<FileEntry>& entries, const char* form);

// Without blanks and quotes around it.
std::string_view without_quotes(std::string_view text);
// What stands between any of the separators, the same way; nothing that is empty.
std::vector<std::string_view> entries_of(std::string_view text, std::string_view separators);

// Server lists as parse_pool reads them, one or several per line; `#` starts a comment.
PoolFile parse_server_list(std::string_view text);

}  // namespace mcds
