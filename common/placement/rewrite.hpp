// What some clients hash instead of the key as it was given. `buffer` holds the text if it is a new one.
#pragma once

#include <string>
#include <string_view>

namespace mcds::rewrite {

// The text between the first `open` and the next `close` after it, if both are there and something is between
// them.
std::string_view tagged(std::string_view key, char open, char close);
// The text between the first '{' and the next '}', if there is any; twemproxy wants at least one byte of it.
std::string_view twemproxy_tag(std::string_view key, std::string& buffer);
std::string_view proxy_tag(std::string_view key, std::string& buffer);
// Without mcrouter's /region/cluster/ prefix and what follows `|#|`.
std::string_view mcrouter(std::string_view key, std::string& buffer);
// PECL memcache: control bytes and spaces become '_', at most 250 bytes.
std::string_view pecl_memcache(std::string_view key, std::string& buffer);
// PECL memcache's sessions: ID-0, of the lock ID.lock as well.
std::string_view pecl_session(std::string_view key, std::string& buffer);
// npm memcached: the hex MD5 of a key longer than 250. It pastes keys by String.replace(), which writes `$`
// for `$$` and the whole key for `$&`; keys with "$`" or "$'" become broken commands, and are stored nowhere.
std::string_view npm_memcached(std::string_view key, std::string& buffer);
// Cache::Memcached::Fast::Safe: blanks, control bytes and those above 126 as %XX; the hex SHA-1 of what is
// longer than 200 then.
std::string_view fast_safe(std::string_view key, std::string& buffer);
// OpenStack Swift: the hex MD5; a key that is 32 hex digits is one already.
std::string_view swift(std::string_view key, std::string& buffer);
// dalli: the middle of a key longer than 250 characters gives way to its MD5.
std::string_view dalli(std::string_view key, std::string& buffer);
std::string_view dalli_with_namespace(std::string_view key, std::string& buffer);
// pymemcache hashes characters, cut to 8 bits; of a bytes key, its Python repr: b'…'.
std::string_view pymemcache_str(std::string_view key, std::string& buffer);
std::string_view pymemcache_bytes(std::string_view key, std::string& buffer);

}  // namespace mcds::rewrite
