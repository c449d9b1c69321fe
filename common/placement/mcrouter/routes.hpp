// mcrouter's routes as a graph that is followed for each key: which servers a request for it goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/placement/placement.hpp"

namespace mcds {

// mcrouter's hash functions beside Ch3 and Crc32: from a key to one of n children.

struct RouteHash {
  enum class Function { ch3, crc32, weighted_ch3, rendezvous, weighted_rendezvous, const_shard };
  Function function = Function::ch3;
  std::string salt = {};                 // put behind the key
  std::vector<double> weights = {};      // of the weighted functions, one a child
  std::vector<std::uint64_t> tags = {};  // hashed, of rendezvous; one a child
  std::uint64_t buckets = 0;             // `bucketize`: the number of the key's bucket is hashed; 0: the key

  // `text`: the key without its routing prefix and what follows |#|. `children` is at least 1.
  std::size_t child_of(std::string_view text, std::size_t children) const;
  // What is reported as the key's hash.
  std::uint64_t hash_of(std::string_view text) const;
};

std::uint64_t rendezvous_tag(std::string_view tag);

// SHARD in `name:SHARD:rest`, if it ends with a digit; otherwise empty.
std::string_view shard_of(std::string_view text);

// SpookyHash V2 (Bob Jenkins), the low 32 bits.
std::uint32_t spooky32(std::string_view bytes, std::uint32_t seed);

struct Route {
  enum class Kind {
    server,         // `server`
    hash,           // one of the children, by `hash`
    all,            // every child
    latest,         // one that each mcrouter chooses for itself
    random,         // any child
    failover,       // the first that answers
    miss_failover,  // reads: the first that has the key; writes: the first
    prefixes,       // by the longest prefix of the key; children.front() where none fits
    operations,     // children: get, set, delete
    modify_key,     // the child, with another key
    key_split,      // the child, by the key and by KEY::1, KEY::2, …
    shard_splits,   // the child, with `name:SHARD:rest` also as `name:SHARDaa:rest`, …
    nowhere,        // no server: `text` says why
  };
  Kind kind;
  std::size_t server = 0;
  std::vector<std::size_t> children = {};  // routes that were added before
  RouteHash hash = {};
  std::map<std::string, std::size_t, std::less<>> prefixes = {};  // prefix → child, shard → number of splits
  std::size_t replicas = 1;                                       // key_split
  bool all_replicas = false;                                      // key_split: every write goes to all
  std::string text = {};                     // modify_key: the prefix to ensure; nowhere: the construct
  std::string suffix = {};                   // modify_key
  std::optional<std::string> replaced = {};  // modify_key: a prefix that gives way to `text`
  bool ordered = true;                       // failover: in the order of the children
};

class Routes {
 public:
  // `root` and every child are indexes of `routes`; servers are those of the pool. `aliases`: the routing
  // prefixes that lead here; empty: all do. `operation`: what is asked about; any: what reads and writes have
  // in common.
  Routes(std::vector<Route> routes, std::size_t root, std::vector<std::string> aliases)
      : routes_(std::move(routes)), root_(root), aliases_(std::move(aliases)) {}

  Routes for_operation(Operation operation) const {
    Routes other = *this;
    other.operation_ = operation;
    return other;
  }

  // Throws InvalidInput when no server has the key, or reads and writes go different ways and `operation` is
  // any.
  Owners owners_of(std::string_view key) const;
  std::uint64_t hash_of(std::string_view key) const;
  // While servers are down; nullopt: nowhere.
  std::optional<std::size_t> server_of_when_down(std::string_view key, const std::vector<bool>& down) const;

 private:
  friend class RouteWalk;
  std::vector<Route> routes_;
  std::size_t root_;
  std::vector<std::string> aliases_;
  Operation operation_ = Operation::any;
};

// A placement by such routes; their servers are indexes into `pool`.
std::shared_ptr<const Placement> make_routed_placement(Pool pool, std::shared_ptr<const Routes> routes);

}  // namespace mcds
