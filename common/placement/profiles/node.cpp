// Node's clients.
#include "common/placement/profiles/families.hpp"

// Families give the same name to different hashes: each has a namespace.
namespace mcds::families::node_clients {

namespace {

using namespace key_hash;

constexpr Client memcached{"npm memcached", "2.2.2", "Node.js"};
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
    {"node-memcached", &memcached, "default", npm_default()},
    {"node-memcached-namespace", &memcached, "namespace", npm_default()},
    {"node-memcached-hash_ring", &memcached, "compatibility: 'hash_ring'",
     npm(md5, points::hash_ring_of_hashring, identity::as_written)},
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

}  // namespace mcds::families::node_clients

std::span<const mcds::Profile> mcds::families::node() {
  return node_clients::profiles;
}
