// Node's clients.
#include "common/placement/profiles/families.hpp"

namespace mcds::families {

// Families give the same name to different hashes: each has a namespace.
namespace node_clients {

namespace {

using namespace key_hash;

constexpr Client memcached{"npm memcached", "2.2.2", "Node.js"};
constexpr Client memcache{"npm memcache (jaredwray)", "1.10.0", "Node.js"};
constexpr Client plus{"npm memcache-plus", "0.3.1", "Node.js"};
constexpr Client js{"npm memjs", "1.3.2", "Node.js"};

constexpr Rule npm(KeyHash hash, PointMaker points, Identity identity) {
  Rule rule = failing_over(Failover::lost, ring(hash, points, identity));
  rule.wire = rewrite::npm_memcached;
  rule.ejects = true;  // remove: true
  return rule;
}
constexpr Rule npm_default() {
  return npm(md5, points::ketama_of_hashring, identity::npm);
}

constexpr Rule npm_memcache(Rule rule) {
  rule.identity = identity::bracketed;
  rule.zero_weight_is_one = true;
  return rule;
}

constexpr Profile profiles[] = {
    {"node-memcached", &memcached, "default", npm_default()},
    {"node-memcached-namespace", &memcached, "namespace", npm_default()},
    {"node-memcached-hash_ring", &memcached, "compatibility: 'hash_ring'",
     npm(md5, points::hash_ring_of_hashring, identity::as_written)},
    {"node-memcached-sha1", &memcached, "algorithm: 'sha1'",
     npm(sha1, points::sha1_of_hashring, identity::npm)},
    {"node-memcache", &memcache, "default",
     npm_memcache(ring(js_fnv1a_32_signed_order, points::hash_nul_50, identity::bracketed))},
    {"node-memcache-modula", &memcache, "ModulaHash", npm_memcache(weighted_modulo(js_fnv1a_32))},
    {"node-memcache-plus", &plus, "default",
     without_weights(ring(md5, points::ketama_of_hashring, identity::as_written))},
    {"memjs", &js, "default", holding_any_byte(failing_over(Failover::next_server, modulo(java_abs)))},
};

}  // namespace

}  // namespace node_clients

std::span<const Profile> node() {
  return node_clients::profiles;
}

}  // namespace mcds::families
