// PHP's and Perl's own clients.
#include "common/placement/profiles/families.hpp"

// Families give the same name to different hashes: each has a namespace.
namespace mcds::families::php_perl_clients {

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
// A ring sampled at 1024 places.
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
constexpr Rule slots() {
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

    {"perl-cache-memcached", &perl, "default", slots()},
    {"perl-cache-memcached-namespace", &perl, "namespace", prefix_not_hashed(slots())},
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
};

}  // namespace

}  // namespace mcds::families::php_perl_clients

std::span<const mcds::Profile> mcds::families::php_and_perl() {
  return php_perl_clients::profiles;
}
