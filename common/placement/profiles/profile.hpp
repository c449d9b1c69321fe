// Profile: how one client places keys, composed of small parts: the part of the key that is hashed, the hash,
// the names and weights of servers, and the mapping from an integer to a server. The tables are listed in
// families.hpp.
#pragma once

#include <span>

#include "common/placement/key_hash.hpp"
#include "common/placement/placement.hpp"
#include "common/placement/ring/continuum.hpp"

namespace mcds {

// A hash with a start value that the user of the client chooses.
using SeededHash = std::uint64_t (*)(std::string_view key, std::uint64_t seed);

// A server as one client sees it.
struct Member {
  std::string name;  // the text that is hashed for it
  std::uint32_t weight;
  std::uint32_t index;  // in the pool
};

struct Shares {
  std::size_t servers;
  std::uint64_t total_weight;
  bool weighted;  // some weight is above 1
  std::size_t points_per_weight;
};

// Returns the text that the client hashes for a server.
using Identity = std::string (*)(const Server& server, std::size_t index, const Resolver& resolver);
// Appends the values of one server's points. `hash` is Rule::point_hash.
using PointMaker = void (*)(const Member& member, const Shares& shares, KeyHash hash,
                            std::vector<std::uint64_t>& values);
// Returns the text that is hashed instead of the key; it may be in `buffer`.
using Rewrite = std::string_view (*)(std::string_view key, std::string& buffer);

enum class Distribution {
  modulo,                // hash % slots
  mask,                  // hash & (servers - 1)
  ring,                  // Rule::points, Rule::search
  bucketed,              // a ring sampled at 1024 positions: hash % 1024
  jump,                  // jump consistent hash
  furc,                  // mcrouter's; needs the key, not its hash
  rendezvous,            // the highest hash of NAME-KEY
  rendezvous_key_first,  // the highest hash of KEYNAME
  election,              // the highest hash of NAME-ROUNDKEY; the weight is the number of rounds
  routes,                // PlacementOptions::routes
  asked,                 // PlacementOptions::asked
};

// Returns true if the profile needs data that only a source of servers provides.
constexpr bool needs_source(Distribution distribution) {
  return distribution == Distribution::routes || distribution == Distribution::asked;
}

// A hash that the user of a client names: `hash=md5`.
struct NamedHash {
  std::string_view name;
  KeyHash hash;
  PointMaker points;  // null: they follow from the hash
};
struct HashNames {
  std::string_view parameter;
  std::span<const NamedHash> hashes;
};

enum class Order { as_given, by_host_and_port, shorter_name_first, natural };

// How a key prefix (`--namespace`) that the key starts with is hashed.
enum class Prefix {
  hashed,    // as a part of the key
  stripped,  // not: the client adds it after placing; if none is configured, Rule::own_prefix
};

// Where the client goes while a key's server is down.
enum class Failover {
  unknown,           // not known to be deterministic
  lost,              // nowhere
  rebuilt,           // places on the pool without the dead servers
  next_server,       // the next index
  next_hash,         // hash + 1, + 2, …
  next_point,        // the next point of another server
  next_route,        // the next child of a failover route
  python_memcached,  // hash of the hash and the try number, as text
  cache_memcached,   // adds the hash of the try number and the key
  dalli,             // hash of the try number and the key
  pecl_memcache,     // places KEY-TRY
  spymemcached,      // adds md5 of the try number and the key
};

// The additional servers to which a client itself writes a key.
enum class Replication {
  none,
  next_tries,    // places KEY-0, KEY-1, … until it has enough different servers
  next_servers,  // those that follow in the list
};

constexpr std::size_t every_server = 1'000'000;  // a value of Rule::copies

struct Rule {
  Distribution distribution = Distribution::modulo;
  KeyHash hash = nullptr;
  SeededHash seeded = nullptr;  // replaces `hash`, with `seed`; equal to it for seed 0
  std::uint64_t seed = 0;
  Rewrite rewrite = nullptr;
  Rewrite wire = nullptr;   // the key as servers see it
  bool any_byte = false;    // keys may have spaces and control bytes
  bool takes_tag = false;   // PlacementOptions::hash_tag applies
  bool takes_salt = false;  // and PlacementOptions::salt
  Prefix prefix = Prefix::hashed;
  const char* own_prefix = "";
  Identity identity = nullptr;
  Order order = Order::as_given;
  bool repeats = false;  // modulo: each server as often as its weight
  bool zero_weight_is_one = false;
  bool no_weights = false;                  // every server weighs 1, whatever the pool states
  PointMaker points = nullptr;              // ring, bucketed
  const HashNames* named_hashes = nullptr;  // alternatives that the user may choose
  KeyHash point_hash = nullptr;             // of the points; null: same as `hash`
  std::size_t points_per_weight = 160;
  bool takes_points = false;
  Search search = Search::at_or_after;
  Ties ties = Ties::first_server;
  unsigned bits = 32;
  Failover failover = Failover::unknown;
  bool ejects = false;  // it can be configured to place keys without the dead servers, or to keep them
  Replication replication = Replication::none;
  std::size_t copies = 1;  // including the first

  std::uint64_t hash_of(std::string_view text) const {
    return seeded == nullptr ? hash(text) : seeded(text, seed);
  }
  bool operator==(const Rule&) const = default;
};

struct Client {
  const char* name;
  const char* versions;  // tested with these
  const char* language;
};

struct Profile {
  std::string_view name;
  const Client* client;
  const char* selected_by;  // the option that selects it, or "default"
  Rule rule;
  const char* fragile = "";  // why the result may be wrong on other machines; may be empty
};

struct Alias {
  std::string_view name;
  std::string_view profile;
};

// Returns the servers in the client's order, with the client's names and weights.
std::vector<Member> members_of(const Rule& rule, const Pool& pool, const Resolver& resolver);

std::span<const Profile> all_profiles();
std::span<const Alias> all_aliases();
// Returns the profile of this name or alias, ignoring parameters as in `php-memcache-session:copies=3`.
// Throws InvalidInput with a `did you mean` if there is none.
const Profile& profile_named(std::string_view name);

// Returns the rule with the parameters of NAME:PARAMETER=VALUE:… applied; parameters outside the rule are
// stored in `options`. Throws InvalidInput for a parameter that the client does not have.
Rule rule_with_parameters(const Profile& profile, std::string_view text, PlacementOptions& options);

// Maps an integer (or the text itself) to a server, for one pool.
struct Distributor {
  // Returns an index into the pool; `text` is what was hashed.
  std::function<std::size_t(std::uint64_t hash, std::string_view text)> server_of;
  std::shared_ptr<const Continuum> continuum = nullptr;  // of a ring
};

// `members` are in the client's order. Throws InvalidInput if they have no place for a key.
Distributor make_distributor(const Rule& rule, const std::vector<Member>& members);

// Determines where a client goes for a key whose server is down, if it tries one server after the other. This
// is the steady state, in which the client knows the dead servers. Before that, a client that learns of a
// dead server by failing loses its first operations, or leaves them elsewhere.

// Returns the rule as a word, such as `rebuilt` or `next_server`.
const char* name_of(Failover failover);

// Returns an index into the pool, in which the servers marked in `down` are dead, or nullopt if the client
// gives up because its tries are used up. `text` is what was hashed. Not for Failover::unknown and rebuilt.
std::optional<std::size_t> server_after_failures(const Rule& rule, const Distributor& distributor,
                                                 std::string_view text, const std::vector<bool>& down);

}  // namespace mcds
