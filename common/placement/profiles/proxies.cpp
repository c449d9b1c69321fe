// Proxies: twemproxy, mcrouter, nginx, and memcached's own.
#include "common/placement/profiles/families.hpp"

// Families use the same name for different hashes, so each has its own namespace.
namespace mcds::families::proxies_clients {

namespace {

using namespace key_hash;

constexpr Client twemproxy{"twemproxy (nutcracker)", "0.5.0", "C proxy"};
constexpr Client router{"mcrouter", "2026.08.17", "C++ proxy"};
constexpr Client web{"nginx upstream hash", "1.22.1", "C proxy"};
constexpr Client own{"memcached built-in proxy", "1.6.45", "C and Lua proxy"};

constexpr KeyHash fnv1_64 = fnv1_64_low_signed;
constexpr KeyHash fnv1a_64 = fnv1a_64_low_signed;
constexpr KeyHash fnv1_32 = fnv1_32_signed;
constexpr KeyHash fnv1a_32 = fnv1a_32_signed;
constexpr KeyHash one_at_a_time = one_at_a_time_signed;

// twemproxy sorts the servers to find duplicates, and leaves them sorted.
constexpr Rule sorted(Rule rule, Identity identity = identity::twemproxy) {
  rule.identity = identity;
  rule.order = Order::shorter_name_first;
  rule.takes_tag = true;
  rule.failover = Failover::lost;
  rule.ejects = true;  // auto_eject_hosts: true
  return rule;
}
constexpr Rule ketama(KeyHash hash, Identity identity = identity::twemproxy) {
  return sorted(ring(hash, points::ketama, identity), identity);
}
constexpr Rule modula(KeyHash hash) {
  return sorted(weighted_modulo(hash));
}

// The option `seed = TEXT` uses xxh3 of the text.
constexpr std::uint64_t seed_failover = 0xfdc660d1498c5886U;

constexpr Rule jump(std::uint64_t seed = 0) {
  return {.distribution = Distribution::jump, .hash = xxh3, .seeded = xxh3_seeded, .seed = seed};
}
constexpr Rule seeded(SeededHash hash, Rule rule) {
  rule.seeded = hash;
  return rule;
}
constexpr Rule proxy_ring(PointMaker points, KeyHash hash, Identity identity) {
  return without_weights(ring(hash, points, identity));
}
constexpr Rule routed(Rule rule) {
  rule.takes_salt = true;
  rule.wire = rewrite::without_route;
  return failing_over(Failover::lost, rewriting(rewrite::mcrouter, rule));
}

constexpr Profile profiles[] = {
    {"twemproxy-default", &twemproxy, "default (ketama, fnv1a_64)", ketama(fnv1a_64)},
    {"twemproxy-ketama-one_at_a_time", &twemproxy, "hash: one_at_a_time", ketama(one_at_a_time)},
    {"twemproxy-ketama-md5", &twemproxy, "hash: md5", ketama(md5)},
    {"twemproxy-ketama-md5-named", &twemproxy, "hash: md5, servers named node0, node1, …",
     ketama(md5, identity::numbered_node)},
    {"twemproxy-ketama-crc16", &twemproxy, "hash: crc16", ketama(crc16)},
    {"twemproxy-ketama-crc32", &twemproxy, "hash: crc32", ketama(crc15)},
    {"twemproxy-ketama-crc32a", &twemproxy, "hash: crc32a", ketama(crc32)},
    {"twemproxy-ketama-fnv1_64", &twemproxy, "hash: fnv1_64", ketama(fnv1_64)},
    {"twemproxy-ketama-fnv1a_64", &twemproxy, "hash: fnv1a_64", ketama(fnv1a_64)},
    {"twemproxy-ketama-fnv1_32", &twemproxy, "hash: fnv1_32", ketama(fnv1_32)},
    {"twemproxy-ketama-fnv1a_32", &twemproxy, "hash: fnv1a_32", ketama(fnv1a_32)},
    {"twemproxy-ketama-hsieh", &twemproxy, "hash: hsieh", ketama(hsieh)},
    {"twemproxy-ketama-murmur", &twemproxy, "hash: murmur", ketama(murmur2)},
    {"twemproxy-ketama-jenkins", &twemproxy, "hash: jenkins", ketama(jenkins)},
    {"twemproxy-ketama-hashtag", &twemproxy, "hash: fnv1a_64, hash_tag: \"{}\"",
     rewriting(rewrite::twemproxy_tag, ketama(fnv1a_64))},
    {"twemproxy-modula-one_at_a_time", &twemproxy, "distribution: modula, hash: one_at_a_time",
     modula(one_at_a_time)},
    {"twemproxy-modula-md5", &twemproxy, "distribution: modula, hash: md5", modula(md5)},
    {"twemproxy-modula-crc16", &twemproxy, "distribution: modula, hash: crc16", modula(crc16)},
    {"twemproxy-modula-crc32", &twemproxy, "distribution: modula, hash: crc32", modula(crc15)},
    {"twemproxy-modula-crc32a", &twemproxy, "distribution: modula, hash: crc32a", modula(crc32)},
    {"twemproxy-modula-fnv1_64", &twemproxy, "distribution: modula, hash: fnv1_64", modula(fnv1_64)},
    {"twemproxy-modula-fnv1a_64", &twemproxy, "distribution: modula, hash: fnv1a_64", modula(fnv1a_64)},
    {"twemproxy-modula-fnv1_32", &twemproxy, "distribution: modula, hash: fnv1_32", modula(fnv1_32)},
    {"twemproxy-modula-fnv1a_32", &twemproxy, "distribution: modula, hash: fnv1a_32", modula(fnv1a_32)},
    {"twemproxy-modula-hsieh", &twemproxy, "distribution: modula, hash: hsieh", modula(hsieh)},
    {"twemproxy-modula-murmur", &twemproxy, "distribution: modula, hash: murmur", modula(murmur2)},
    {"twemproxy-modula-jenkins", &twemproxy, "distribution: modula, hash: jenkins", modula(jenkins)},

    {"mcrouter-ch3", &router, "default (Ch3)",
     routed({.distribution = Distribution::furc, .hash = murmur64a})},
    {"mcrouter-crc32", &router, "hash: Crc32", routed(modulo(crc31))},
    {"mcrouter-routes",
     &router,
     "the routes of --servers-from mcrouter:FILE",
     {.distribution = Distribution::routes, .failover = Failover::next_route}},

    {"nginx-hash", &web, "hash $key", failing_over(Failover::cache_memcached, weighted_modulo(crc15))},
    {"nginx-hash-consistent", &web, "hash $key consistent",
     failing_over(Failover::next_point, ring(crc32, points::crc_chain, identity::bracketed))},

    {"memcached-proxy-default", &own, "default", jump()},
    {"memcached-proxy-jump-seed", &own, "seed = \"failover\"", jump(seed_failover)},
    {"memcached-proxy-tags", &own, "filter = \"tags\", filter_conf = \"{}\"",
     rewriting(rewrite::proxy_tag, jump())},
    {"memcached-proxy-ring", &own, "dist = mcp.dist_ring_hash",
     seeded(xxh3_low32_seeded, proxy_ring(points::hash_160, xxh3_low32, identity::host_port))},
    {"memcached-proxy-ring-ketama", &own, "dist and hash of mcp.dist_ring_hash, omode = \"ketama\"",
     proxy_ring(points::ketama_40, md5, identity::host_port)},
    {"memcached-proxy-ring-twemproxy", &own, "dist and hash of mcp.dist_ring_hash, omode = \"twemproxy\"",
     proxy_ring(points::ketama_40, md5, identity::elided)},
    {"memcached-proxy-ring-evcache", &own, "dist and hash of mcp.dist_ring_hash, omode = \"evcache\"",
     proxy_ring(points::ketama_40, md5, identity::evcache)},
};

}  // namespace

}  // namespace mcds::families::proxies_clients

std::span<const mcds::Profile> mcds::families::proxies() {
  return proxies_clients::profiles;
}
