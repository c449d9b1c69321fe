// The texts that some clients hash instead of the key. `buffer` holds the text if it is a new one.
#pragma once

#include <string>
#include <string_view>

namespace mcds::rewrite {

// Returns the text between the first `open` and the next `close`, or the key if there is none.
std::string_view tagged(std::string_view key, char open, char close);
// Return the text between the first '{' and the next '}', if any; twemproxy requires at least one byte.
std::string_view twemproxy_tag(std::string_view key, std::string& buffer);
std::string_view proxy_tag(std::string_view key, std::string& buffer);
// Removes mcrouter's /region/cluster/ prefix, which it does not send to servers.
std::string_view without_route(std::string_view key, std::string& buffer);
// Removes this prefix, and everything from `|#|` on.
std::string_view mcrouter(std::string_view key, std::string& buffer);
// PECL memcache: replaces control bytes and spaces by '_' and cuts the key to 250 bytes.
std::string_view pecl_memcache(std::string_view key, std::string& buffer);
// PECL memcache's sessions: returns ID-0, also for the lock ID.lock.
std::string_view pecl_session(std::string_view key, std::string& buffer);
// npm memcached: returns the hex MD5 of a key longer than 250. It inserts keys by String.replace(), which
// writes `$` for `$$` and the whole key for `$&`; keys with "$`" or "$'" break the command and are stored
// nowhere.
std::string_view npm_memcached(std::string_view key, std::string& buffer);
// Cache::Memcached::Fast::Safe: encodes blanks, control bytes and bytes above 126 as %XX, then returns the
// hex SHA-1 of a text longer than 200.
std::string_view fast_safe(std::string_view key, std::string& buffer);
// OpenStack Swift: returns the hex MD5, or the key if it is 32 hex digits already.
std::string_view swift(std::string_view key, std::string& buffer);
// dalli: replaces the middle of a key longer than 250 characters by its MD5.
std::string_view dalli(std::string_view key, std::string& buffer);
std::string_view dalli_with_namespace(std::string_view key, std::string& buffer);
// pymemcache hashes characters cut to 8 bits; for a bytes key, its Python repr: b'…'.
std::string_view pymemcache_str(std::string_view key, std::string& buffer);
std::string_view pymemcache_bytes(std::string_view key, std::string& buffer);

}  // namespace mcds::rewrite
