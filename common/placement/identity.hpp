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

// Return how many groups of points a client's arithmetic gives to a weight.
using GroupsOf = std::size_t (*)(std::uint32_t weight, const Shares& shares);
std::size_t groups_of_libmemcached(std::uint32_t weight, const Shares& shares);
std::size_t groups_of_libketama(std::uint32_t weight, const Shares& shares);
std::size_t groups_of_whalin(std::uint32_t weight, const Shares& shares);
std::size_t groups_of_uhashring(std::uint32_t weight, const Shares& shares);
std::size_t groups_of_hashring(std::uint32_t weight, const Shares& shares);
std::size_t groups_by_weight(std::uint32_t weight, const Shares& shares);  // 40 per weight
template <std::size_t groups>
std::size_t fixed_groups(std::uint32_t, const Shares&) {
  return groups;
}

std::string numbered(const std::string& name, std::size_t number);

// The first `words` words of the digest of NAME-GROUP.
template <GroupsOf groups_of, auto digest_words = key_hash::md5_words, std::size_t words = 4>
void in_groups(const Member& member, const Shares& shares, KeyHash, Values& values) {
  const std::size_t groups = groups_of(member.weight, shares);
  for (std::size_t group = 0; group < groups; ++group) {
    const auto digest = digest_words(numbered(member.name, group));
    values.insert(values.end(), digest.begin(), digest.begin() + words);
  }
}
constexpr PointMaker ketama = in_groups<groups_of_libmemcached>;
constexpr PointMaker ketama_of_libketama = in_groups<groups_of_libketama>;
constexpr PointMaker ketama_of_whalin = in_groups<groups_of_whalin>;
constexpr PointMaker ketama_of_uhashring = in_groups<groups_of_uhashring>;
constexpr PointMaker ketama_40 = in_groups<groups_by_weight>;
// npm's hashring: four words of this digest; with compatibility 'hash_ring', three words of md5.
template <auto digest_words>
constexpr PointMaker of_hashring = in_groups<groups_of_hashring, digest_words>;
constexpr PointMaker hash_ring_of_hashring = in_groups<groups_of_hashring, key_hash::md5_words, 3>;
// npm's hashring 0.0: three words of key_hash::crc32_digits.
constexpr PointMaker of_crc32_digits = in_groups<groups_of_uhashring, key_hash::crc32_digits, 3>;
// AWS's Java client since 1.2.0: ketama_40 with SHA-384, without weights.
constexpr PointMaker sha384_40 = in_groups<fixed_groups<40>, key_hash::sha384_words>;

// hash(NAME-J): 50, 100, or 160 per weight.
template <std::size_t count, bool by_weight = false>
void hashed(const Member& member, const Shares&, KeyHash hash, Values& values) {
  const std::size_t all = by_weight ? count * member.weight : count;
  for (std::size_t j = 0; j < all; ++j) values.push_back(hash(numbered(member.name, j)));
}
constexpr PointMaker hash_50 = hashed<50>;
constexpr PointMaker hash_100 = hashed<100>;
constexpr PointMaker hash_160 = hashed<160, true>;
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
constexpr PointMaker enyim_sha1 = in_groups<fixed_groups<32>, key_hash::sha1_words, 5>;
template <std::size_t words, KeyHash hash, KeyHash from_0>
void enyim_words(const Member& member, const Shares&, KeyHash, Values& values) {
  for (std::size_t j = 0; j < 160 / words; ++j) {
    const auto digest = (member.index == 0 && j == 0 ? from_0 : hash)(numbered(member.name, j));
    values.push_back(digest & 0xffffffffU);
    if (words == 2) values.push_back(digest >> 32);
  }
}

}  // namespace mcds::points
