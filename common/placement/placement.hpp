// Which server a key is on, as one client library decides it: pure functions of the pool and the key's
// bytes.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "common/placement/pools/pool.hpp"

namespace mcds {
class AskedClient;
class Continuum;
class Routes;

// Names and addresses, for the few clients that hash what a name resolves to. A member that is not set
// resolves nothing. And what else is hashed with each server.
struct Resolver {
  // The address (IPv4 first) a host name has; nullopt: none.
  std::function<std::optional<std::string>(const std::string& name)> address_of;
  // The name an address has; nullopt: none.
  std::function<std::optional<std::string>(const std::string& address)> name_of;
  // USER_PASSWORD, as bmemcached writes it.
  std::string login = "None_None";
};

// How many of the servers that a client knows for a key hold it.
enum class Policy {
  one,       // there is one
  all,       // it is written to every one
  latest,    // to one that the proxy chooses and keeps
  random,    // to any one
  failover,  // to the first; to the next while that one is down
};
// The word for it: `all`.
const char* name_of(Policy policy);

struct Owner {
  std::size_t server;         // an index into the pool
  bool must = true;           // it has the key whenever the key is there; else it may
  std::string wire_key = {};  // the key as this server sees it; empty: unchanged

  bool operator==(const Owner&) const = default;
};

struct Owners {
  Policy policy = Policy::one;
  std::vector<Owner> list;  // never empty; the first is the one asked first

  bool has(std::size_t server) const {
    return std::ranges::any_of(list, [&](const Owner& owner) { return owner.server == server; });
  }
};

// Copies that all must be there, on these servers.
Owners copies_on(const std::vector<std::size_t>& servers);

class Placement {
 public:
  virtual ~Placement() = default;
  virtual const Pool& pool() const = 0;
  // The profile's name: `ketama`, `gomemcache`.
  virtual std::string_view profile() const = 0;
  // The client's integer for a key, before it is mapped to a server.
  virtual std::uint64_t hash_of(std::string_view key) const = 0;
  // An index into pool().
  virtual std::size_t server_of(std::string_view key) const = 0;
  // Both, hashing once.
  struct Place {
    std::uint64_t hash;
    std::size_t server;
  };
  virtual Place place_of(std::string_view key) const { return {hash_of(key), server_of(key)}; }
  // These keys are asked for next; what another program answers is faster asked for at once.
  virtual void expect(const std::vector<std::string>&) const {}
  // Whether owners_of names several servers for some key.
  virtual bool replicates() const { return false; }
  // Whether owners_of is server_of alone, and the key's own name, for every key.
  virtual bool has_plain_owners() const { return true; }
  // All servers on which the client itself keeps the key: several where a proxy or a client replicates.
  virtual Owners owners_of(std::string_view key) const { return {Policy::one, {{server_of(key)}}}; }
  // Whether its client can be given this key: some send servers another one in its stead (Owner::wire_key),
  // some send spaces and control bytes as they are.
  virtual bool takes_any_byte() const { return false; }
  // The `count` distinct servers that hold the key's copies, the owner first: those that follow in continuum
  // order, or the next indexes. Fewer than `count` when the pool is smaller.
  virtual std::vector<std::size_t> servers_of(std::string_view key, std::size_t count) const {
    return followed({server_of(key)}, count);
  }
  // Where the client goes for the key while the servers marked in `down` (one entry per server) are dead;
  // nullopt: nowhere, the key is lost. Throws InvalidInput if the client's choice cannot be predicted.
  virtual std::optional<std::size_t> server_of_when_down(std::string_view key,
                                                         const std::vector<bool>& down) const;
  // The circle on which keys are placed; null if the client has none.
  virtual const Continuum* continuum() const { return nullptr; }

 protected:
  // These, and then those that follow the first in the list, until there are `count`.
  std::vector<std::size_t> followed(std::vector<std::size_t> servers, std::size_t count) const;
};

// Unless it is among them.
void add_once(std::vector<std::size_t>& servers, std::size_t server);

// What is asked about, where reads and writes may go different ways; any: what they have in common.
enum class Operation { any, get, set, remove };
// get, set or delete; throws InvalidInput for another word.
Operation operation_named(std::string_view word);

struct PlacementOptions {
  Resolver resolver = {};
  // The namespace that keys already carry: some clients do not hash it.
  std::string key_prefix = {};
  // twemproxy's hash_tag: two characters; of a key that has something between them only that is hashed.
  std::string hash_tag = {};
  // mcrouter's: hashed behind the key.
  std::string salt = {};
  // libmemcached's virtual buckets: for each, the server's place in the list.
  std::vector<std::size_t> buckets = {};
  // Of the login, for a client that hashes its own with each server.
  std::string password = {};
  // Accepts pools that the client could not use, to report what is wrong with them: servers that are listed
  // twice.
  bool any_pool = false;
  // The routes of a proxy's configuration, for the profile mcrouter-routes.
  std::shared_ptr<const Routes> routes = nullptr;
  Operation operation = Operation::any;
  // The client to ask, for the profile libmemcached-configured.
  std::shared_ptr<const AskedClient> asked = nullptr;
};

// Throws InvalidInput with a `did you mean` for an unknown profile,
// or when this client cannot use the pool (all weights 0, a name that does not resolve),
// Failure(configuration) when it cannot because servers are listed twice. A client that takes a server as
// often as it is listed has it once in pool().
std::shared_ptr<const Placement> make_placement(std::string_view profile, Pool pool,
                                                const PlacementOptions& options = {});

// A client that is asked where its keys are instead of being imitated: libmemcached, configured by its own
// string. The profile `libmemcached-configured` places keys by it.

class AskedClient {
 public:
  virtual ~AskedClient() = default;
  // In the client's order, each as often as it has it, with the weights of its configuration.
  virtual const Pool& servers() const = 0;
  // What it puts before every key, whether it hashes that or not; or empty.
  virtual const std::string& key_prefix() const = 0;
  // On how many servers it keeps each key: the key's own, and those that follow in the list.
  virtual std::size_t copies() const = 0;
  // Of a key without the prefix; `server` is an index into servers(). Throws Failure(configuration) if the
  // client ended or does not answer.
  virtual Placement::Place place_of(std::string_view key) const = 0;
  // These keys are asked for next: it may be told of all at once.
  virtual void expect(const std::vector<std::string>& keys) const = 0;
  // The same configuration with all weights 1.
  virtual std::shared_ptr<const AskedClient> with_equal_weights() const = 0;
};

// `pool`: the client's own servers. Throws InvalidInput if it is another one, or `client` is null.
std::shared_ptr<const Placement> make_asked_placement(const Pool& pool,
                                                      std::shared_ptr<const AskedClient> client);

// The best known of the other profiles that places a sample of keys as this placement does; empty: none.
std::string_view same_profile(const Placement& placement, const PlacementOptions& options);

}  // namespace mcds
