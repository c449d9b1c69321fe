// Native clients of PHP, Perl, Python, Ruby and Node.
#include "common/placement/profiles/families.hpp"

// Families use the same name for different hashes, so each has its own namespace.
namespace mcds::families::scripting_clients {

namespace {

using namespace key_hash;

constexpr Client pecl{"php-memcache (PECL memcache)", "4.0.5.2", "PHP"};
constexpr Client perl{"Cache::Memcached", "1.30", "Perl"};
constexpr Client fast{"Cache::Memcached::Fast", "0.28", "Perl"};
constexpr Client fast_safe{"Cache::Memcached::Fast::Safe", "0.06", "Perl"};
constexpr Client any_event{"AnyEvent::Memcached", "0.08", "Perl"};

constexpr Rule pecl_rule(Rule rule) {
  rule.replication = Replication::next_tries;  // memcache.redundancy
  rule.wire = rewrite::pecl_memcache;
  return failing_over(Failover::pecl_memcache, rewriting(rewrite::pecl_memcache, rule));
}
// A ring sampled at 1024 positions.
constexpr Rule pecl_consistent(KeyHash hash) {
  Rule rule = ring(hash, points::hash_160, identity::pecl_memcache);
  rule.distribution = Distribution::bucketed;
  return pecl_rule(rule);
}
// The session handler keeps `memcache.session_redundancy` copies.
constexpr Rule pecl_session(Rule rule) {
  rule.rewrite = rewrite::pecl_session;
  rule.failover = Failover::unknown;
  rule.replication = Replication::next_tries;
  rule.copies = 2;
  return rule;
}
constexpr Rule perl_slots() {
  return failing_over(Failover::cache_memcached, weighted_modulo(crc15));
}
constexpr Rule fast_slots() {
  return failing_over(Failover::lost, weighted_modulo(crc15));
}
constexpr Rule fast_ketama() {
  Rule rule = failing_over(Failover::lost, ring(crc32, points::crc_chain, identity::host_port));
  rule.points_per_weight = 150;
  rule.takes_points = true;
  return rule;
}

constexpr Rule safe(Rule rule) {
  rule.wire = rewrite::fast_safe;
  return holding_any_byte(rewriting(rewrite::fast_safe, rule));
}

constexpr Client pymemcache{"pymemcache HashClient", "3.5.2, 4.0.0", "Python"};
constexpr Client python_memcached{"python-memcached", "1.59, 1.62", "Python"};
constexpr Client bmemcached{"python-binary-memcached", "0.31.1", "Python"};
constexpr Client uhashring{"uhashring", "2.1", "Python"};
constexpr Client meta_memcache{"meta-memcache-py", "2.5.0", "Python"};
constexpr Client openstack_swift{"OpenStack Swift", "2.38", "Python"};
constexpr Client emcache_client{"emcache", "1.3.3", "Python"};
constexpr Client ruby{"dalli", "3.0.6, 5.0.6", "Ruby"};

constexpr Rule rendezvous(Rewrite rewrite) {
  return {.distribution = Distribution::rendezvous,
          .hash = murmur3,
          .rewrite = rewrite,
          .identity = identity::host_port,
          .failover = Failover::rebuilt};
}
constexpr Rule slots(KeyHash hash) {
  return failing_over(Failover::python_memcached, weighted_modulo(hash));
}

// The client uses all 128 bits of MD5; the first 64 decide.
constexpr Rule md5_ring(Identity identity) {
  Rule rule = last_added_stays(ring(md5_top64, points::hash_160, identity));
  rule.search = Search::after;
  rule.bits = 64;
  return rule;
}
constexpr Rule uhashring_ketama() {
  Rule rule = last_added_stays(ring(md5, points::ketama_of_uhashring, identity::as_written));
  rule.search = Search::after;
  return rule;
}
constexpr Rule swift_ring() {
  Rule rule = without_weights(ring(hex_top64, points::hash_50, identity::as_written));
  rule.point_hash = md5_top64;
  rule.rewrite = rule.wire = rewrite::swift;
  rule.search = Search::second_after;
  rule.bits = 64;
  return holding_any_byte(rule);
}
constexpr Rule emcache() {
  Rule rule = {.distribution = Distribution::rendezvous_key_first,
               .hash = murmur3_of_emcache,
               .identity = identity::run_together,
               .failover = Failover::lost};
  rule.ejects = true;  // purge_unhealthy_nodes=True
  return rule;
}
constexpr Rule dalli_ring(Rewrite rewrite) {
  Rule rule = rewriting(rewrite, ring(crc32, points::dalli, identity::host_port));
  rule.search = Search::at_or_before;
  rule.wire = rewrite;
  rule.failover = Failover::dalli;
  return holding_any_byte(rule);
}

constexpr Client memcached{"npm memcached", "2.2.2", "Node.js"};
constexpr Client memcached_0{"npm memcached 0.2", "0.2.8", "Node.js"};
constexpr Client memcache{"npm memcache (jaredwray)", "1.7.0, 1.10.0", "Node.js"};
constexpr Client plus{"npm memcache-plus", "0.3.1", "Node.js"};
constexpr Client js{"npm memjs", "1.3.2", "Node.js"};

constexpr Rule npm(KeyHash hash, PointMaker points, Identity identity) {
  Rule rule = failing_over(Failover::lost, ring(hash, points, identity));
  rule.wire = rewrite::npm_memcached;
  rule.ejects = true;  // remove: true
  return rule;
}
template <auto digest_words>
constexpr NamedHash digest_ring(std::string_view name, KeyHash hash) {
  return {name, hash, points::of_hashring<digest_words>};
}
constexpr NamedHash algorithms[] = {
    digest_ring<md5_words>("md5", md5),          digest_ring<sha1_words>("sha1", sha1),
    digest_ring<sha256_words>("sha256", sha256), digest_ring<sha384_words>("sha384", sha384),
    digest_ring<sha512_words>("sha512", sha512),
};
constexpr HashNames algorithm{"algorithm", algorithms};

constexpr Rule npm_default(const NamedHash& named = algorithms[0]) {
  Rule rule = npm(named.hash, named.points, identity::npm);
  rule.named_hashes = &algorithm;
  return rule;
}

constexpr Rule npm_of_crc32() {
  Rule rule = last_added_stays(npm(first_crc32_digits, points::of_crc32_digits, identity::as_written));
  rule.search = Search::after;
  return rule;
}

constexpr NamedHash modula_hashes[] = {
    {"md5", big_endian<md5>, nullptr},       {"sha1", big_endian<sha1>, nullptr},
    {"sha256", big_endian<sha256>, nullptr}, {"sha384", big_endian<sha384>, nullptr},
    {"sha512", big_endian<sha512>, nullptr},
};
constexpr HashNames modula_hash{"hash", modula_hashes};
constexpr Rule npm_memcache(Rule rule) {
  rule.identity = identity::bracketed;
  rule.zero_weight_is_one = true;
  return rule;
}
constexpr Rule modula(KeyHash hash) {
  Rule rule = npm_memcache(weighted_modulo(hash));
  rule.named_hashes = &modula_hash;
  return rule;
}

constexpr Profile profiles[] = {
    {"php-memcache-default", &pecl, "default (consistent, crc32)", pecl_consistent(crc32)},
    {"php-memcache-consistent-crc32", &pecl, "hash_strategy=consistent, hash_function=crc32",
     pecl_consistent(crc32)},
    {"php-memcache-consistent-fnv", &pecl, "hash_strategy=consistent, hash_function=fnv",
     pecl_consistent(fnv1a_32_signed)},
    {"php-memcache-standard-crc32", &pecl, "hash_strategy=standard, hash_function=crc32",
     pecl_rule(weighted_modulo(crc15_or_1))},
    {"php-memcache-standard-fnv", &pecl, "hash_strategy=standard, hash_function=fnv",
     pecl_rule(weighted_modulo(fnv1a_15_signed_or_1))},
    {"php-memcache-session", &pecl, "session.save_handler=memcache, memcache.session_redundancy=2",
     pecl_session(pecl_consistent(crc32))},
    {"php-memcache-session-consistent-fnv", &pecl,
     "session.save_handler=memcache, hash_strategy=consistent, hash_function=fnv",
     pecl_session(pecl_consistent(fnv1a_32_signed))},
    {"php-memcache-session-standard-crc32", &pecl,
     "session.save_handler=memcache, hash_strategy=standard, hash_function=crc32",
     pecl_session(pecl_rule(weighted_modulo(crc15_or_1)))},
    {"php-memcache-session-standard-fnv", &pecl,
     "session.save_handler=memcache, hash_strategy=standard, hash_function=fnv",
     pecl_session(pecl_rule(weighted_modulo(fnv1a_15_signed_or_1)))},

    {"perl-cache-memcached", &perl, "default", perl_slots()},
    {"perl-cache-memcached-namespace", &perl, "namespace", prefix_not_hashed(perl_slots())},
    {"perl-cache-memcached-fast", &fast, "default", fast_slots()},
    {"perl-cache-memcached-fast-namespace", &fast, "namespace", prefix_not_hashed(fast_slots())},
    {"perl-cache-memcached-fast-hash-namespace", &fast, "namespace, hash_namespace => 1", fast_slots()},
    {"perl-cache-memcached-fast-ketama", &fast, "ketama_points => 150", fast_ketama()},
    {"perl-cache-memcached-fast-ketama-namespace", &fast, "ketama_points => 150, namespace",
     prefix_not_hashed(fast_ketama())},
    {"perl-cache-memcached-fast-ketama-hash-namespace", &fast,
     "ketama_points => 150, namespace, hash_namespace => 1", fast_ketama()},
    {"perl-cache-memcached-fast-safe", &fast_safe, "default", safe(fast_slots())},
    {"perl-cache-memcached-fast-safe-namespace", &fast_safe, "namespace",
     safe(prefix_not_hashed(fast_slots()))},
    {"perl-cache-memcached-fast-safe-ketama", &fast_safe, "ketama_points => 150", safe(fast_ketama())},
    {"perl-cache-memcached-fast-safe-ketama-namespace", &fast_safe, "ketama_points => 150, namespace",
     safe(prefix_not_hashed(fast_ketama()))},
    {"perl-anyevent-memcached", &any_event, "default", weighted_modulo(crc15)},
    {"pymemcache-rendezvous", &pymemcache, "default, str keys", rendezvous(rewrite::pymemcache_str)},
    {"pymemcache-rendezvous-bytes", &pymemcache, "bytes keys", rendezvous(rewrite::pymemcache_bytes),
     "the client hashes Python's repr of the key: b'...'"},
    {"pymemcache-rendezvous-prefix", &pymemcache, "key_prefix",
     prefix_not_hashed(rendezvous(rewrite::pymemcache_str))},

    {"python-memcached", &python_memcached, "default", slots(crc15_or_1)},
    {"python-memcached-oldhash", &python_memcached, "useOldServerHashFunction()", slots(crc32_or_1)},
    {"python-memcached-prefix", &python_memcached, "key_prefix of set_multi", slots(crc15_or_1)},

    {"bmemcached-replicating", &bmemcached, "Client, ReplicatingClient", holding_any_byte(on_every_server())},
    {"bmemcached-distributed", &bmemcached, "DistributedClient",
     holding_any_byte(failing_over(Failover::lost, without_weights(md5_ring(identity::bmemcached)))),
     "user and password are part of what is hashed for a server: user=NAME, the password as for a login"},
    {"uhashring-default", &uhashring, "default", md5_ring(identity::as_written)},
    {"uhashring-ketama", &uhashring, "hash_fn=\"ketama\"", uhashring_ketama()},

    {"meta-memcache", &meta_memcache, "default", without_weights(md5_ring(identity::bracketed)),
     "a routing_key, where one is given, is hashed instead of the key"},
    {"meta-memcache-nonconsistent", &meta_memcache, "NonConsistentHashPoolProvider", modulo(crc32),
     "a routing_key, where one is given, is hashed instead of the key"},
    {"swift", &openstack_swift, "default", swift_ring(),
     "a key of 32 hex digits is taken for one that Swift has hashed"},
    {"emcache", &emcache_client, "default", emcache(),
     "the client puts its hash together from signed bytes: on a machine whose C char is unsigned, such as "
     "ARM, it is another"},

    {"dalli", &ruby, "default", dalli_ring(rewrite::dalli)},
    {"dalli-namespace", &ruby, "namespace", dalli_ring(rewrite::dalli_with_namespace)},
    {"node-memcached", &memcached, "default", npm_default()},
    {"node-memcached-namespace", &memcached, "namespace", npm_default()},
    {"node-memcached-hash_ring", &memcached, "compatibility: 'hash_ring'",
     npm(md5, points::hash_ring_of_hashring, identity::as_written)},
    {"node-memcached-crc32", &memcached_0, "default (hashring 0.0)", npm_of_crc32()},
    {"node-memcached-sha1", &memcached, "algorithm: 'sha1'", npm_default(algorithms[1])},
    {"node-memcache", &memcache, "default",
     npm_memcache(ring(js_fnv1a_32_signed_order, points::hash_nul_50, identity::bracketed))},
    {"node-memcache-modula", &memcache, "ModulaHash", modula(js_fnv1a_32)},
    {"node-memcache-modula-md5", &memcache, "ModulaHash, md5", modula(modula_hashes[0].hash)},
    {"node-memcache-modula-sha1", &memcache, "ModulaHash, sha1", modula(modula_hashes[1].hash)},
    {"node-memcache-broadcast", &memcache, "BroadcastHash", on_every_server()},
    {"node-memcache-plus", &plus, "default",
     without_weights(ring(md5, points::of_hashring<md5_words>, identity::as_written))},
    {"memjs", &js, "default", holding_any_byte(failing_over(Failover::next_server, modulo(java_abs)))},
};

}  // namespace

}  // namespace mcds::families::scripting_clients

std::span<const mcds::Profile> mcds::families::scripting() {
  return scripting_clients::profiles;
}
