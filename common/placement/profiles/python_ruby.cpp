// Python's and Ruby's own clients.
#include "common/placement/profiles/families.hpp"

// Families give the same name to different hashes: each has a namespace.
namespace mcds::families::python_ruby_clients {

namespace {

using namespace key_hash;

constexpr Client pymemcache{"pymemcache HashClient", "3.5.2, 4.0.0", "Python"};
constexpr Client python_memcached{"python-memcached", "1.59, 1.62", "Python"};
constexpr Client bmemcached{"python-binary-memcached", "0.31.1", "Python"};
constexpr Client uhashring{"uhashring", "2.1", "Python"};
constexpr Client meta_memcache{"meta-memcache-py", "2.5.0", "Python"};
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

// The whole 128 bits of MD5, of which the first 64 decide.
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

constexpr Profile profiles[] = {
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
    {"emcache", &emcache_client, "default", emcache(),
     "the client puts its hash together from signed bytes: on a machine whose C char is unsigned, such as "
     "ARM, it is another"},

    {"dalli", &ruby, "default", dalli_ring(rewrite::dalli)},
    {"dalli-namespace", &ruby, "namespace", dalli_ring(rewrite::dalli_with_namespace)},
};

}  // namespace

}  // namespace mcds::families::python_ruby_clients

std::span<const mcds::Profile> mcds::families::python_and_ruby() {
  return python_ruby_clients::profiles;
}
