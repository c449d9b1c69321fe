// Routes: mcrouter's routes as a graph that is followed for each key, to find the servers of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/placement/placement.hpp"

namespace mcds {

// A hash function of mcrouter: maps a key to one of n children.

struct RouteHash {
  enum class Function { ch3, crc32, weighted_ch3, rendezvous, weighted_rendezvous, const_shard };
  Function function = Function::ch3;
  std::string salt = {};                 // hashed after the key
  std::vector<double> weights = {};      // of the weighted functions, one per child
  std::vector<std::uint64_t> tags = {};  // of rendezvous; hashed, one per child
  std::uint64_t buckets = 0;             // `bucketize`: hash the number of the key's bucket; 0: hash the key

  // `text` is the key without its routing prefix and the part from |#| on. `children` is at least 1.
  std::size_t child_of(std::string_view text, std::size_t children) const;
  // Returns the value that is reported as the key's hash.
  std::uint64_t hash_of(std::string_view text) const;
};

std::uint64_t rendezvous_tag(std::string_view tag);

// Returns SHARD of `name:SHARD:rest`, if it ends with a digit; otherwise an empty text.
std::string_view shard_of(std::string_view text);

// Returns the low 32 bits of SpookyHash V2 (Bob Jenkins).
std::uint32_t spooky32(std::string_view bytes, std::uint32_t seed);

struct Route {
  enum class Kind {
    server,         // `server`
    hash,           // one of the children, by `hash`
    all,            // every child
    latest,         // one that each mcrouter chooses on its own
    random,         // any child
    failover,       // the first that answers
    miss_failover,  // reads: the first that has the key; writes: the first
    prefixes,       // by the longest matching prefix of the key; children.front() if none matches
    operations,     // children: get, set, delete
    modify_key,     // the child, with another key
    key_split,      // the child, with the key and KEY::1, KEY::2, …
    shard_splits,   // the child, with `name:SHARD:rest` also as `name:SHARDaa:rest`, …
    nowhere,        // no server: `text` says why
  };
  Kind kind;
  std::size_t server = 0;
  std::vector<std::size_t> children = {};  // routes that were added before
  RouteHash hash = {};
  std::map<std::string, std::size_t, std::less<>> prefixes = {};  // prefix → child, shard → number of splits
  std::size_t replicas = 1;                                       // key_split
  bool all_replicas = false;                                      // key_split: writes go to all replicas
  std::string text = {};                     // modify_key: the prefix to ensure; nowhere: the construct
  std::string suffix = {};                   // modify_key
  std::optional<std::string> replaced = {};  // modify_key: a prefix that `text` replaces
  bool ordered = true;                       // failover: in the order of the children
};

// The routes of one configuration. Servers are those of its pool.
struct Routes {
  std::vector<Route> routes;
  std::size_t root;                  // an index into `routes`, like all children
  std::vector<std::string> aliases;  // the routing prefixes that lead here; empty: all prefixes
};

// Returns a placement by these routes; their servers are indexes into `pool`. Its functions throw
// InvalidInput if no server has the key, or if reads and writes differ with Operation::any.
std::shared_ptr<const Placement> make_routed_placement(Pool pool, std::shared_ptr<const Routes> routes,
                                                       Operation operation);

}  // namespace mcds
