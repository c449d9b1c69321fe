// Clients written in C, C++, C#, Go and Rust.
#include "common/placement/profiles/families.hpp"

// Families give the same name to different hashes: each has a namespace.
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
     enyim_ketama(fnv1_32, points::enyim_fnv1_32), shifted},
    {"enyim-ketama-fnv1_64", &enyim, "KetamaNodeLocator, fnv1_64",
     enyim_ketama(fnv1a_32, points::enyim_fnv1a_32), shifted},
    {"enyim-ketama-fnv1a_32", &enyim, "KetamaNodeLocator, fnv1a_32",
     enyim_ketama(fnv1_64_low, points::enyim_fnv1_64), shifted},
    {"enyim-ketama-fnv1a_64", &enyim, "KetamaNodeLocator, fnv1a_64",
     enyim_ketama(fnv1a_64_low, points::enyim_fnv1a_64), shifted},
    {"enyimcore-default", &enyimcore, "DefaultNodeLocator",
     enyim_ring(fnv1a_32, points::enyimcore_default, identity::enyimcore)},
    {"criteo-memcache", &criteo, "KetamaLocator (default)",
     holding_any_byte(failing_over(
         Failover::rebuilt,
         last_added_stays(without_weights(ring(md5, points::ketama_40, identity::address_port)))))},
    {"enyimcore-legacy", &enyimcore, "UseLegacyNodeLocator",
     enyim_ring(fnv1a_32_from_0, points::enyim_default, identity::enyimcore), unfinished},
};

}  // namespace

}  // namespace mcds::families::compiled_clients

std::span<const mcds::Profile> mcds::families::compiled() {
  return compiled_clients::profiles;
}
