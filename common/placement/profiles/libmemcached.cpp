// libmemcached and clients built on it. Their options take effect in the order in which they are set.
// DISTRIBUTION=CONSISTENT makes points with the key hash in use at that time, and ignores weights until a
// server that weighs more is added.
#include "common/placement/profiles/families.hpp"

// Families use the same name for different hashes, so each has its own namespace.
namespace mcds::families::libmemcached_clients {

namespace {

using namespace key_hash;

constexpr Client c{"libmemcached", "1.1.4, 1.0.18", "C"};
constexpr Client php{"php-memcached", "3.2.0 on libmemcached 1.1.4", "PHP"};
constexpr Client php_session{"php-memcached session handler", "3.2.0 on libmemcached 1.1.4", "PHP"};
constexpr Client pylibmc{"pylibmc", "1.6.3 on libmemcached 1.1.4", "Python"};

constexpr KeyHash standard = one_at_a_time_signed;
constexpr KeyHash crc = crc15;
constexpr KeyHash fnv1_64 = fnv1_64_low_signed;
constexpr KeyHash fnv1a_64 = fnv1a_64_low_signed;
constexpr KeyHash fnv1_32 = fnv1_32_signed;
constexpr KeyHash fnv1a_32 = fnv1a_32_signed;
constexpr KeyHash murmur = murmur2;
constexpr KeyHash murmur3 = murmur3_length_seeded;

constexpr Rule lm_ring(KeyHash hash, PointMaker points) {
  Rule rule = ring(hash, points, identity::libmemcached);
  rule.zero_weight_is_one = true;
  rule.failover = Failover::lost;
  rule.ejects = true;                            // REMOVE_FAILED_SERVERS, AUTO_EJECT_HOSTS
  rule.replication = Replication::next_servers;  // NUMBER_OF_REPLICAS
  return rule;
}
// The distribution is set before the servers are added.
constexpr Rule consistent(KeyHash hash) {
  return lm_ring(hash, points::hash_100_or_ketama);
}
// The distribution is set afterwards, so weights no longer count.
constexpr Rule consistent_late(KeyHash hash) {
  return lm_ring(hash, points::hash_100);
}
constexpr Rule weighted(KeyHash hash) {
  return lm_ring(hash, points::ketama);
}
constexpr Rule modula(KeyHash hash) {
  Rule rule = failing_over(Failover::lost, modulo(hash));
  rule.replication = Replication::next_servers;
  return rule;
}

constexpr Rule points_hashed_by(KeyHash hash, Rule rule) {
  rule.point_hash = hash;
  return rule;
}
constexpr auto sorted = with<&Rule::order, Order::by_host_and_port>;
// memcached_server_add() names a unix socket by its path; all other functions add `:0`.
constexpr auto added_one_by_one = with<&Rule::identity, identity::elided>;
constexpr auto spy = with<&Rule::identity, identity::libmemcached_spy>;
constexpr auto bucket_mask = with<&Rule::distribution, Distribution::mask>;

constexpr Profile profiles[] = {
    {"ketama", &c, "KETAMA_WEIGHTED=1", weighted(md5)},
    {"libmemcached-default", &c, "default", modula(standard)},
    {"libmemcached-modula-md5", &c, "HASH=MD5", modula(md5)},
    {"libmemcached-modula-crc", &c, "HASH=CRC", modula(crc)},
    {"libmemcached-modula-fnv1_64", &c, "HASH=FNV1_64", modula(fnv1_64)},
    {"libmemcached-modula-fnv1a_64", &c, "HASH=FNV1A_64", modula(fnv1a_64)},
    {"libmemcached-modula-fnv1_32", &c, "HASH=FNV1_32", modula(fnv1_32)},
    {"libmemcached-modula-fnv1a_32", &c, "HASH=FNV1A_32", modula(fnv1a_32)},
    {"libmemcached-modula-murmur", &c, "HASH=MURMUR", modula(murmur)},
    {"libmemcached-modula-murmur3", &c, "HASH=MURMUR3", modula(murmur3)},
    {"libmemcached-modula-jenkins", &c, "HASH=JENKINS", modula(jenkins)},
    {"libmemcached-modula-sorted", &c, "SORT_HOSTS=1", sorted(modula(standard))},
    {"libmemcached-consistent", &c, "DISTRIBUTION=CONSISTENT", consistent(standard)},
    {"libmemcached-consistent-md5", &c, "HASH=MD5, DISTRIBUTION=CONSISTENT", consistent(md5)},
    {"libmemcached-consistent-crc", &c, "HASH=CRC, DISTRIBUTION=CONSISTENT", consistent(crc)},
    {"libmemcached-consistent-fnv1_64", &c, "HASH=FNV1_64, DISTRIBUTION=CONSISTENT", consistent(fnv1_64)},
    {"libmemcached-consistent-fnv1a_64", &c, "HASH=FNV1A_64, DISTRIBUTION=CONSISTENT", consistent(fnv1a_64)},
    {"libmemcached-consistent-fnv1_32", &c, "HASH=FNV1_32, DISTRIBUTION=CONSISTENT", consistent(fnv1_32)},
    {"libmemcached-consistent-fnv1a_32", &c, "HASH=FNV1A_32, DISTRIBUTION=CONSISTENT", consistent(fnv1a_32)},
    {"libmemcached-consistent-murmur", &c, "HASH=MURMUR, DISTRIBUTION=CONSISTENT", consistent(murmur)},
    {"libmemcached-consistent-murmur3", &c, "HASH=MURMUR3, DISTRIBUTION=CONSISTENT", consistent(murmur3)},
    {"libmemcached-consistent-jenkins", &c, "HASH=JENKINS, DISTRIBUTION=CONSISTENT", consistent(jenkins)},
    {"libmemcached-consistent-sorted", &c, "SORT_HOSTS=1, DISTRIBUTION=CONSISTENT",
     sorted(consistent(standard))},
    {"libmemcached-consistent-late", &c, "servers, then DISTRIBUTION=CONSISTENT", consistent_late(standard)},
    {"libmemcached-consistent-late-md5key", &c, "servers, then DISTRIBUTION=CONSISTENT, then HASH=MD5",
     points_hashed_by(standard, consistent_late(md5))},
    {"libmemcached-ketama", &c, "KETAMA=1", consistent(standard)},
    {"libmemcached-ketama-weighted", &c, "KETAMA_WEIGHTED=1", weighted(md5)},
    {"libmemcached-ketama-weighted-late", &c, "servers, then KETAMA_WEIGHTED=1", weighted(md5)},
    {"libmemcached-ketama-weighted-default", &c, "KETAMA_WEIGHTED=1, HASH=DEFAULT", weighted(standard)},
    {"libmemcached-ketama-weighted-crc", &c, "KETAMA_WEIGHTED=1, HASH=CRC", weighted(crc)},
    {"libmemcached-ketama-weighted-fnv1a_32", &c, "KETAMA_WEIGHTED=1, HASH=FNV1A_32", weighted(fnv1a_32)},
    {"libmemcached-ketama-weighted-fnv1a_64", &c, "KETAMA_WEIGHTED=1, HASH=FNV1A_64", weighted(fnv1a_64)},
    {"libmemcached-ketama-weighted-murmur", &c, "KETAMA_WEIGHTED=1, HASH=MURMUR", weighted(murmur)},
    {"libmemcached-ketama-weighted-hash-with-prefix", &c,
     "KETAMA_WEIGHTED=1, HASH_WITH_PREFIX_KEY=1, PREFIX_KEY", weighted(md5)},
    {"libmemcached-ketama-spy", &c, "HASH=MD5, DISTRIBUTION=CONSISTENT_KETAMA_SPY", spy(consistent(md5))},
    {"libmemcached-ketama-spy-weighted", &c, "KETAMA_WEIGHTED=1, DISTRIBUTION=CONSISTENT_KETAMA_SPY",
     spy(weighted(md5))},
    {"libmemcached-prefix", &c, "PREFIX_KEY", prefix_not_hashed(modula(standard))},
    {"libmemcached-hash-with-prefix", &c, "HASH_WITH_PREFIX_KEY=1, PREFIX_KEY", modula(standard)},
    {"libmemcached-vbucket", &c, "DISTRIBUTION=VIRTUAL_BUCKET without a map", bucket_mask(modula(standard))},
    {"libmemcached-configured",
     &c,
     "the string of --servers-from libmemcached:STRING",
     {.distribution = Distribution::asked}},

    {"php-memcached-default", &php, "default", modula(standard)},
    {"php-memcached-binary", &php, "OPT_BINARY_PROTOCOL", holding_any_byte(modula(standard))},
    {"php-memcached-modula-md5", &php, "OPT_HASH=HASH_MD5", modula(md5)},
    {"php-memcached-modula-crc", &php, "OPT_HASH=HASH_CRC", modula(crc)},
    {"php-memcached-modula-fnv1_64", &php, "OPT_HASH=HASH_FNV1_64", modula(fnv1_64)},
    {"php-memcached-modula-fnv1a_64", &php, "OPT_HASH=HASH_FNV1A_64", modula(fnv1a_64)},
    {"php-memcached-modula-fnv1_32", &php, "OPT_HASH=HASH_FNV1_32", modula(fnv1_32)},
    {"php-memcached-modula-fnv1a_32", &php, "OPT_HASH=HASH_FNV1A_32", modula(fnv1a_32)},
    {"php-memcached-modula-murmur", &php, "OPT_HASH=HASH_MURMUR", modula(murmur)},
    {"php-memcached-sorted", &php, "OPT_SORT_HOSTS", sorted(modula(standard))},
    {"php-memcached-prefix", &php, "OPT_PREFIX_KEY", prefix_not_hashed(modula(standard))},
    {"php-memcached-consistent", &php, "OPT_DISTRIBUTION=CONSISTENT, addServers", consistent(standard)},
    {"php-memcached-consistent-addserver", &php, "OPT_DISTRIBUTION=CONSISTENT, addServer",
     added_one_by_one(consistent(standard))},
    {"php-memcached-consistent-md5", &php, "OPT_HASH=HASH_MD5, OPT_DISTRIBUTION=CONSISTENT", consistent(md5)},
    {"php-memcached-consistent-late", &php, "addServers, then OPT_DISTRIBUTION=CONSISTENT",
     consistent_late(standard)},
    {"php-memcached-consistent-late-md5", &php,
     "addServers, then OPT_DISTRIBUTION=CONSISTENT, then OPT_HASH=HASH_MD5",
     points_hashed_by(standard, consistent_late(md5))},
    {"php-memcached-consistent-then-ketama-compatible", &php,
     "OPT_DISTRIBUTION=CONSISTENT, then OPT_LIBKETAMA_COMPATIBLE", weighted(md5)},
    {"php-memcached-ketama-compatible", &php, "OPT_LIBKETAMA_COMPATIBLE", weighted(md5)},
    {"php-memcached-ketama-compatible-late", &php, "addServers, then OPT_LIBKETAMA_COMPATIBLE",
     weighted(md5)},
    {"php-memcached-ketama-compatible-crc", &php, "OPT_LIBKETAMA_COMPATIBLE, then OPT_HASH=HASH_CRC",
     weighted(crc)},
    {"php-memcached-ketama-compatible-murmur", &php, "OPT_LIBKETAMA_COMPATIBLE, then OPT_HASH=HASH_MURMUR",
     weighted(murmur)},
    {"php-memcached-ketama-compatible-prefix", &php, "OPT_LIBKETAMA_COMPATIBLE, OPT_PREFIX_KEY",
     prefix_not_hashed(weighted(md5))},
    {"php-memcached-ketama-compatible-hash-with-prefix", &php,
     "OPT_LIBKETAMA_COMPATIBLE, OPT_HASH_WITH_PREFIX_KEY, OPT_PREFIX_KEY", weighted(md5)},
    {"php-memcached-ketama-compatible-then-consistent", &php,
     "OPT_LIBKETAMA_COMPATIBLE, then OPT_DISTRIBUTION=CONSISTENT", consistent(md5)},
    {"php-memcached-binary-ketama-compatible", &php, "OPT_BINARY_PROTOCOL, OPT_LIBKETAMA_COMPATIBLE",
     holding_any_byte(weighted(md5))},
    {"php-memcached-vbucket", &php, "OPT_DISTRIBUTION=VIRTUAL_BUCKET, setBucket",
     bucket_mask(modula(standard))},
    {"php-memcached-session", &php_session, "session.save_handler=memcached",
     prefix_not_hashed(consistent_late(standard), "memc.sess.key.")},

    {"pylibmc-default", &pylibmc, "default", modula(standard)},
    {"pylibmc-modula-md5", &pylibmc, "hash: md5", modula(md5)},
    {"pylibmc-modula-crc", &pylibmc, "hash: crc", modula(crc)},
    {"pylibmc-modula-fnv1_64", &pylibmc, "hash: fnv1_64", modula(fnv1_64)},
    {"pylibmc-modula-fnv1a_64", &pylibmc, "hash: fnv1a_64", modula(fnv1a_64)},
    {"pylibmc-modula-fnv1_32", &pylibmc, "hash: fnv1_32", modula(fnv1_32)},
    {"pylibmc-modula-fnv1a_32", &pylibmc, "hash: fnv1a_32", modula(fnv1a_32)},
    {"pylibmc-modula-murmur", &pylibmc, "hash: murmur", modula(murmur)},
    {"pylibmc-modula-jenkins", &pylibmc, "hash: jenkins", modula(jenkins)},
    {"pylibmc-consistent", &pylibmc, "distribution: consistent", consistent(standard)},
    {"pylibmc-consistent-md5", &pylibmc, "hash: md5, distribution: consistent", consistent(md5)},
    {"pylibmc-consistent-ketama-md5", &pylibmc, "hash: md5, distribution: consistent ketama",
     consistent(md5)},
    {"pylibmc-ketama", &pylibmc, "ketama: True", consistent(standard)},
    {"pylibmc-ketama-crc", &pylibmc, "ketama: True, hash: crc", consistent(crc)},
    {"pylibmc-ketama-murmur", &pylibmc, "ketama: True, hash: murmur", consistent(murmur)},
    {"pylibmc-ketama-weighted", &pylibmc, "ketama_weighted: True", weighted(md5)},
    {"pylibmc-ketama-weighted-plus-ketama", &pylibmc, "ketama: True, ketama_weighted: True", weighted(md5)},
};

}  // namespace

}  // namespace mcds::families::libmemcached_clients

std::span<const mcds::Profile> mcds::families::libmemcached() {
  return libmemcached_clients::profiles;
}
