// The names that clients hash for a server. A user's own name (NAME=HOST:PORT) takes precedence.
#pragma once

#include "common/placement/profiles/profile.hpp"

namespace mcds::identity {

// HOST:PORT as configured; the path alone for a unix socket.
std::string host_port(const Server& server, std::size_t, const Resolver&);
// The entry as it is in the list: HOST or HOST:PORT.
std::string as_written(const Server& server, std::size_t, const Resolver&);
// Same as `elided`, except that an IPv6 address always has its port.
std::string npm(const Server& server, std::size_t, const Resolver&);
// HOSTPORT without a separator; the path alone for a unix socket.
std::string run_together(const Server& server, std::size_t, const Resolver&);
// HOST alone if the port is 11211.
std::string elided(const Server& server, std::size_t, const Resolver&);
// Same as `elided`, but PATH:0 for a unix socket.
std::string libmemcached(const Server& server, std::size_t, const Resolver&);
// /HOST:PORT, never elided.
std::string libmemcached_spy(const Server& server, std::size_t, const Resolver&);
// Same as `elided`, but `PATH:` for a unix socket.
std::string twemproxy(const Server& server, std::size_t, const Resolver&);
// node0, node1 … if no name is given.
std::string numbered_node(const Server& server, std::size_t index, const Resolver&);
// HOST:PORT with an IPv6 address in brackets; the path alone for a unix socket.
std::string bracketed(const Server& server, std::size_t, const Resolver&);
std::string pecl_memcache(const Server& server, std::size_t, const Resolver&);
// The entry as written, then _USER_PASSWORD, without credentials.
std::string bmemcached(const Server& server, std::size_t, const Resolver&);
// HOST/HOST:PORT.
std::string evcache(const Server& server, std::size_t, const Resolver&);

// Java's InetSocketAddress as text: ADDRESS:PORT, or NAME/ADDRESS:PORT.
std::string spymemcached(const Server& server, std::size_t, const Resolver& resolver);
// The host name, looked up from an address if necessary, elided.
std::string java_name_elided(const Server& server, std::size_t, const Resolver& resolver);
std::string java_name_port(const Server& server, std::size_t, const Resolver& resolver);
// NAME/ADDRESS:PORT after a reverse lookup, /ADDRESS:PORT without a name.
std::string xmemcached(const Server& server, std::size_t, const Resolver& resolver);
// The resolved address: ADDRESS:PORT, or elided.
std::string address_port(const Server& server, std::size_t, const Resolver& resolver);
std::string address_elided(const Server& server, std::size_t, const Resolver& resolver);
// .NET's EndPoint as text: ADDRESS:PORT, or Unspecified/NAME:PORT.
std::string enyimcore(const Server& server, std::size_t, const Resolver&);

}  // namespace mcds::identity

// Makers of one server's points on the continuum, as each client computes them. NAME is Member::name; J and
// GROUP count from 0.

namespace mcds::points {

using Values = std::vector<std::uint64_t>;

// The four words of md5(NAME-GROUP), for as many groups as the client's arithmetic gives to a weight.
void ketama(const Member& member, const Shares& shares, KeyHash, Values& values);  // libmemcached, in floats
void ketama_of_libketama(const Member& member, const Shares& shares, KeyHash, Values& values);
void ketama_of_whalin(const Member& member, const Shares& shares, KeyHash, Values& values);
void ketama_of_uhashring(const Member& member, const Shares& shares, KeyHash, Values& values);
void ketama_40(const Member& member, const Shares& shares, KeyHash, Values& values);

// npm's hashring: four words of this digest; with compatibility 'hash_ring', three words of md5.
template <auto digest_words>
void of_hashring(const Member& member, const Shares& shares, KeyHash, Values& values);
void hash_ring_of_hashring(const Member& member, const Shares& shares, KeyHash, Values& values);
// npm's hashring 0.0: three words of key_hash::crc32_digits.
void of_crc32_digits(const Member& member, const Shares& shares, KeyHash, Values& values);
// AWS's Java client since 1.2.0: ketama_40 with SHA-384.
void sha384_40(const Member& member, const Shares& shares, KeyHash, Values& values);

// hash(NAME-J): 50, 100, or 160 per weight.
void hash_50(const Member& member, const Shares& shares, KeyHash hash, Values& values);
void hash_100(const Member& member, const Shares& shares, KeyHash hash, Values& values);
void hash_160(const Member& member, const Shares& shares, KeyHash hash, Values& values);
// npm memcache: hash(NAME, NUL, J), J from 1: 50 per weight.
void hash_nul_50(const Member& member, const Shares& shares, KeyHash hash, Values& values);
// libmemcached CONSISTENT: hash_100, but ketama if any weight is above 1.
void hash_100_or_ketama(const Member& member, const Shares& shares, KeyHash hash, Values& values);

// CRC-32 of HOST, NUL, PORT and the previous point: Shares::points_per_weight of them per weight.
void crc_chain(const Member& member, const Shares& shares, KeyHash, Values& values);
// murmur3 of NAME, then of the previous point, ordered as signed integers.
void folsom(const Member& member, const Shares& shares, KeyHash, Values& values);
// The first 32 bits of sha1(NAME:J).
void dalli(const Member& member, const Shares& shares, KeyHash, Values& values);

// 100 points hash(NAME-J) or hash(J-NAME). In the former, the first hash of each server starts from 0.
void enyim_default(const Member& member, const Shares& shares, KeyHash, Values& values);
void enyimcore_default(const Member& member, const Shares& shares, KeyHash, Values& values);
// 160 points from the words of the digest of NAME-J. The first FNV digest of the pool starts from 0.
void enyim_sha1(const Member& member, const Shares& shares, KeyHash, Values& values);
template <std::size_t words, KeyHash hash, KeyHash from_0>
void enyim_words(const Member& member, const Shares& shares, KeyHash, Values& values);

}  // namespace mcds::points
