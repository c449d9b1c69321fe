// Clients written in C, C++, C#, Go and Rust, and for the JVM. JVM clients hash UTF-16 code units if the hash
// is their own, otherwise UTF-8.
#include "common/placement/profiles/families.hpp"

// Families use the same name for different hashes, so each has its own namespace.
namespace mcds::families::compiled_clients {

namespace {

using namespace key_hash;

constexpr Client apr{"apr_memcache (apr-util)", "1.6.3", "C"};
constexpr Client last_fm{"libketama (Last.fm)", "18cf9a7", "C"};
constexpr Client douban{"libmc (douban)", "1.4.15", "C++ and Python"};
constexpr Client gomemcache_client{"gomemcache", "20141109, HEAD", "Go"};
constexpr Client memcachier{"memcachier/mc", "718baa3", "Go"};
constexpr Client pior{"pior/memcache", "0d16def", "Go"};
constexpr Client thanos{"Thanos, Mimir, Loki", "HEAD", "Go"};
constexpr Client rust{"memcache crate", "0.20.0", "Rust"};
constexpr Client enyim{"EnyimMemcached", "2.16", "C#"};
constexpr Client criteo{"Criteo.Memcache", "c69ddbe", "C#"};
constexpr Client enyimcore{"EnyimMemcachedCore", "3.4.6", "C#"};

constexpr const char* unfinished =
    "depends on the client's hash objects starting from 0 instead of their initial value";
constexpr const char* shifted =
    "the client's table of hash names is shifted, and some of its hashes start from 0";

constexpr Rule apr_rule(KeyHash hash) {
  return failing_over(Failover::next_hash, modulo(hash));
}
constexpr Rule libmc(KeyHash hash) {
  Rule rule = ring(hash, points::hash_100, identity::elided);
  rule.point_hash = md5;
  return rule;
}
constexpr Rule enyim_ring(KeyHash hash, PointMaker points, Identity identity) {
  Rule rule = last_added_stays(without_weights(ring(hash, points, identity)));
  rule.search = Search::enyim;
  rule.failover = Failover::rebuilt;
  return rule;
}
constexpr Rule enyim_ketama(KeyHash hash, PointMaker points) {
  return enyim_ring(hash, points, identity::address_port);
}
constexpr Rule sorted_jump(KeyHash hash) {
  return {.distribution = Distribution::jump,
          .hash = hash,
          .identity = identity::host_port,
          .order = Order::natural};
}

constexpr Client spymemcached{"spymemcached", "2.12.3", "Java"};
constexpr Client xmemcached{"xmemcached", "2.4.9", "Java"};
constexpr Client whalin{"Memcached-Java-Client (whalin)", "3.0.2", "Java"};
constexpr Client aws{"AWS ElastiCache Cluster Client", "1.2.4", "Java"};
constexpr Client folsom{"folsom", "1.21.0", "Java"};

constexpr const char* resolves =
    "a server given by name is hashed with the address it resolves to; give IP addresses to be sure";
constexpr const char* looks_up =
    "servers are hashed by the names a reverse DNS look-up on the client's machine gives for their addresses";

constexpr Rule spy_modulo(KeyHash hash) {
  return failing_over(Failover::next_server, modulo(hash));
}
constexpr Rule spy_ring(KeyHash hash, PointMaker points, Identity identity) {
  return failing_over(Failover::spymemcached, last_added_stays(ring(hash, points, identity)));
}
constexpr Rule spy_consistent(KeyHash hash) {
  return without_weights(spy_ring(hash, points::hash_160, identity::spymemcached));
}
// A closed connection is removed from the list; in failure mode (eject=no) it stays, and its keys are lost.
constexpr Rule xm(Rule rule) {
  rule.failover = Failover::rebuilt;
  rule.ejects = true;
  return rule;
}
constexpr Rule xm_modulo(KeyHash hash) {
  return xm(weighted_modulo(hash));
}
constexpr Rule xm_ketama(Identity identity) {
  return xm(last_added_stays(ring(md5, points::ketama_40, identity)));
}
constexpr Rule elect(KeyHash hash, Identity identity) {
  return xm({.distribution = Distribution::election, .hash = hash, .identity = identity});
}

constexpr Profile profiles[] = {
    {"apr-memcache", &apr, "default", apr_rule(crc15_or_1)},
    {"apr-memcache-crc32", &apr, "hash_func = apr_memcache_hash_crc32", apr_rule(crc32_or_1)},
    {"libketama", &last_fm, "default", ring(md5, points::ketama_of_libketama, identity::host_port)},
    {"libmc", &douban, "default (md5)", libmc(md5)},
    {"libmc-fnv1_32", &douban, "hash_fn: fnv1_32", libmc(fnv1_32)},
    {"libmc-fnv1a_32", &douban, "hash_fn: fnv1a_32", libmc(fnv1a_32)},
    {"libmc-crc32", &douban, "hash_fn: crc_32", libmc(crc32)},
    {"gomemcache", &gomemcache_client, "default", failing_over(Failover::lost, modulo(crc32))},
    {"memcachier-mc", &memcachier, "default",
     holding_any_byte(failing_over(Failover::next_server, modulo(fnv1a_32)))},
    {"pior-memcache", &pior, "default", {.distribution = Distribution::jump, .hash = xxh3}},
    {"thanos-jump", &thanos, "default", sorted_jump(xxh64)},
    {"rust-memcache", &rust, "default", modulo(siphash13),
     "depends on the hash of Rust's standard library, which may change"},

    {"enyim-default", &enyim, "DefaultNodeLocator",
     enyim_ring(fnv1a_32_from_0, points::enyim_default, identity::address_port), unfinished},
    {"enyim-ketama", &enyim, "KetamaNodeLocator (md5)", enyim_ketama(md5, points::ketama_40),
     "a server given by name is hashed by the address it resolves to"},
    {"enyim-ketama-sha1", &enyim, "KetamaNodeLocator, sha1", enyim_ketama(sha1, points::enyim_sha1),
     "a server given by name is hashed by the address it resolves to"},
    {"enyim-ketama-crc", &enyim, "KetamaNodeLocator, crc", enyim_ketama(crc15, points::hash_160), shifted},
    {"enyim-ketama-murmur", &enyim, "KetamaNodeLocator, murmur", enyim_ketama(murmur2, points::hash_160),
     shifted},
    {"enyim-ketama-oneatatime", &enyim, "KetamaNodeLocator, oneatatime",
     enyim_ketama(always_0, points::hash_160),
     "the client never stores this hash's result: every key goes to the last server"},
    {"enyim-ketama-fnv1_32", &enyim, "KetamaNodeLocator, fnv1_32",
     enyim_ketama(fnv1_32, points::enyim_words<1, fnv1_32, fnv1_32_from_0>), shifted},
    {"enyim-ketama-fnv1_64", &enyim, "KetamaNodeLocator, fnv1_64",
     enyim_ketama(fnv1a_32, points::enyim_words<1, fnv1a_32, fnv1a_32_from_0>), shifted},
    {"enyim-ketama-fnv1a_32", &enyim, "KetamaNodeLocator, fnv1a_32",
     enyim_ketama(fnv1_64_low, points::enyim_words<2, fnv1_64, fnv1_64_from_0>), shifted},
    {"enyim-ketama-fnv1a_64", &enyim, "KetamaNodeLocator, fnv1a_64",
     enyim_ketama(fnv1a_64_low, points::enyim_words<2, fnv1a_64, fnv1a_64_from_0>), shifted},
    {"enyimcore-default", &enyimcore, "DefaultNodeLocator",
     enyim_ring(fnv1a_32, points::enyimcore_default, identity::enyimcore)},
    {"criteo-memcache", &criteo, "KetamaLocator (default)",
     holding_any_byte(failing_over(
         Failover::rebuilt,
         last_added_stays(without_weights(ring(md5, points::ketama_40, identity::address_port)))))},
    {"enyimcore-legacy", &enyimcore, "UseLegacyNodeLocator",
     enyim_ring(fnv1a_32_from_0, points::enyim_default, identity::enyimcore), unfinished},
    {"spymemcached-default", &spymemcached, "default", spy_modulo(key_hash::java)},
    {"spymemcached-mod-crc", &spymemcached, "ARRAY_MOD, CRC_HASH", spy_modulo(crc15)},
    {"spymemcached-mod-fnv1-64", &spymemcached, "ARRAY_MOD, FNV1_64_HASH", spy_modulo(java_fnv1_64)},
    {"spymemcached-mod-fnv1a-64", &spymemcached, "ARRAY_MOD, FNV1A_64_HASH", spy_modulo(java_fnv1a_64)},
    {"spymemcached-mod-fnv1-32", &spymemcached, "ARRAY_MOD, FNV1_32_HASH", spy_modulo(java_fnv1_32)},
    {"spymemcached-mod-fnv1a-32", &spymemcached, "ARRAY_MOD, FNV1A_32_HASH", spy_modulo(java_fnv1a_32)},
    {"spymemcached-mod-ketama", &spymemcached, "ARRAY_MOD, KETAMA_HASH", spy_modulo(md5)},
    {"spymemcached-ketama", &spymemcached, "KetamaConnectionFactory",
     without_weights(spy_ring(md5, points::ketama_40, identity::spymemcached)), resolves},
    {"spymemcached-ketama-spyformat-weighted", &spymemcached, "KetamaConnectionFactory with weights",
     spy_ring(md5, points::ketama, identity::spymemcached), resolves},
    {"spymemcached-ketama-libmemcached", &spymemcached,
     "KetamaConnectionFactory, Format.LIBMEMCACHED, weights",
     spy_ring(md5, points::ketama, identity::java_name_elided), looks_up},
    {"spymemcached-ketama-libmemcached-unweighted", &spymemcached,
     "KetamaConnectionFactory, Format.LIBMEMCACHED, no weights",
     without_weights(spy_ring(md5, points::ketama_40, identity::java_name_elided)), looks_up},
    {"spymemcached-consistent-native", &spymemcached, "CONSISTENT", spy_consistent(key_hash::java), resolves},
    {"spymemcached-consistent-crc", &spymemcached, "CONSISTENT, CRC_HASH", spy_consistent(crc15), resolves},
    {"spymemcached-consistent-fnv1-64", &spymemcached, "CONSISTENT, FNV1_64_HASH",
     spy_consistent(java_fnv1_64), resolves},
    {"spymemcached-consistent-fnv1a-64", &spymemcached, "CONSISTENT, FNV1A_64_HASH",
     spy_consistent(java_fnv1a_64), resolves},
    {"spymemcached-consistent-fnv1-32", &spymemcached, "CONSISTENT, FNV1_32_HASH",
     spy_consistent(java_fnv1_32), resolves},
    {"spymemcached-consistent-fnv1a-32", &spymemcached, "CONSISTENT, FNV1A_32_HASH",
     spy_consistent(java_fnv1a_32), resolves},

    {"xmemcached-default", &xmemcached, "default", xm_modulo(key_hash::java)},
    {"xmemcached-array-crc32", &xmemcached, "ArrayMemcachedSessionLocator, CRC32_HASH", xm_modulo(crc15)},
    {"xmemcached-array-ketama-hash", &xmemcached, "ArrayMemcachedSessionLocator, KETAMA_HASH",
     xm_modulo(md5)},
    {"xmemcached-php", &xmemcached, "PHPMemcacheSessionLocator", xm_modulo(java_bits_16_to_30)},
    {"xmemcached-php-crc32", &xmemcached, "PHPMemcacheSessionLocator, CRC32_HASH",
     xm_modulo(crc15_bits_16_to_30),
     "the client shifts a hash of 15 bits by 16: every key goes to the first server"},
    {"xmemcached-election", &xmemcached, "ElectionMemcachedSessionLocator", elect(md5, identity::xmemcached),
     looks_up},
    {"xmemcached-ketama", &xmemcached, "KetamaMemcachedSessionLocator", xm_ketama(identity::xmemcached),
     looks_up},
    {"xmemcached-ketama-nginx", &xmemcached, "KetamaMemcachedSessionLocator(true)",
     xm_ketama(identity::address_elided), resolves},
    {"xmemcached-ketama-gwhalin", &xmemcached, "KetamaMemcachedSessionLocator in gwhalin mode",
     xm_ketama(identity::java_name_port), looks_up},
    {"xmemcached-libmemcached", &xmemcached, "LibmemcachedMemcachedSessionLocator",
     xm(last_added_stays(ring(one_at_a_time, points::hash_100, identity::java_name_elided))), looks_up},

    {"java-memcached-whalin-native", &whalin, "NATIVE_HASH (default)", weighted_modulo(java_abs)},
    {"java-memcached-whalin-oldcompat", &whalin, "OLD_COMPAT_HASH", weighted_modulo(java_times_33)},
    {"java-memcached-whalin-newcompat", &whalin, "NEW_COMPAT_HASH", weighted_modulo(crc15)},
    {"java-memcached-whalin-consistent", &whalin, "CONSISTENT_HASH",
     last_added_stays(ring(md5, points::ketama_of_whalin, identity::host_port))},

    {"aws-elasticache-java-default", &aws, "default", spy_modulo(key_hash::java)},
    {"aws-elasticache-java-mod-ketama", &aws, "ARRAY_MOD, KETAMA_HASH (SHA-384 since 1.2.0)",
     spy_modulo(sha384)},
    {"aws-elasticache-java-ketama", &aws, "KetamaConnectionFactory (SHA-384 since 1.2.0)",
     last_added_stays(without_weights(ring(sha384, points::sha384_40, identity::address_port))), resolves},

    {"folsom-ketama", &folsom, "default",
     without_weights(ring(murmur3_signed_order, points::folsom, identity::host_port))},
};

}  // namespace

}  // namespace mcds::families::compiled_clients

std::span<const mcds::Profile> mcds::families::compiled() {
  return compiled_clients::profiles;
}
