// The table of profiles in parts. Each part is data that composes its rules from the same pieces.
#pragma once

#include "common/placement/identity.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/placement/rewrite.hpp"

namespace mcds::families {

std::span<const Profile> libmemcached();  // and its bindings: php-memcached, pylibmc
std::span<const Profile> scripting();     // clients that share no code with it: PHP, Perl, Python, Ruby, Node
std::span<const Profile> compiled();      // C, C++, C#, Go, Rust, the JVM
std::span<const Profile> proxies();

// hash % servers, without weights.
constexpr Rule modulo(KeyHash hash) {
  return {.hash = hash};
}

// hash % slots; a server has as many slots as its weight.
constexpr Rule weighted_modulo(KeyHash hash) {
  return {.hash = hash, .repeats = true};
}

constexpr Rule ring(KeyHash hash, PointMaker points, Identity identity) {
  return {.distribution = Distribution::ring, .hash = hash, .identity = identity, .points = points};
}

// Changes a rule by setting this member to this value.
template <auto member, auto value>
constexpr auto with = [](Rule rule) {
  rule.*member = value;
  return rule;
};

constexpr auto without_weights = with<&Rule::no_weights, true>;
// Over the binary protocol, keys with spaces and control bytes are sent unchanged.
constexpr auto holding_any_byte = with<&Rule::any_byte, true>;
constexpr auto last_added_stays = with<&Rule::ties, Ties::last_added>;
constexpr Rule rewriting(Rewrite rewrite, Rule rule) {
  rule.rewrite = rewrite;
  return rule;
}

// Returns the rule of a client that places a key without its prefix and then puts the prefix before it. The
// prefix is `own_prefix` unless one is configured.
constexpr Rule prefix_not_hashed(Rule rule, const char* own_prefix = "") {
  rule.prefix = Prefix::stripped;
  rule.own_prefix = own_prefix;
  return rule;
}

// Every key is written to all servers and read from the first that has it.
constexpr Rule on_every_server() {
  Rule rule = modulo(key_hash::always_0);
  rule.replication = Replication::next_servers;
  rule.copies = every_server;
  rule.failover = Failover::next_server;
  return rule;
}

constexpr Rule failing_over(Failover failover, Rule rule) {
  rule.failover = failover;
  return rule;
}

}  // namespace mcds::families
