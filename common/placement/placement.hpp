// Placement: decides which server a key is on, as one client library does, by the pool and the key alone.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "common/placement/pools/pool.hpp"

namespace mcds {
class AskedClient;
class Continuum;
struct Routes;

// Lookups of names and addresses, for the few clients that hash what a name resolves to. An unset member
// resolves nothing. It also has a login, which one client hashes with each server.
struct Resolver {
  // Returns the address (IPv4 first) of a host name, or nullopt.
  std::function<std::optional<std::string>(const std::string& name)> address_of;
  // Returns the name of an address, or nullopt.
  std::function<std::optional<std::string>(const std::string& address)> name_of;
  // USER_PASSWORD, as bmemcached writes it.
  std::string login = "None_None";
};

// How many of the servers that a client knows for a key store it.
enum class Policy {
  one,       // there is only one
  all,       // the key is written to every one
  latest,    // the proxy chooses one and keeps to it
  random,    // the key is written to any one
  failover,  // the first; the next one while that is down
};
// Returns the policy as a word, such as `all`.
const char* name_of(Policy policy);

struct Owner {
  std::size_t server;         // an index into the pool
  bool must = true;           // it must have the key whenever the key exists; otherwise it may
  std::string wire_key = {};  // the key as this server sees it; empty: unchanged

  bool operator==(const Owner&) const = default;
};

struct Owners {
  Policy policy = Policy::one;
  std::vector<Owner> list;  // never empty; the first is read first

  bool has(std::size_t server) const {
    return std::ranges::any_of(list, [&](const Owner& owner) { return owner.server == server; });
  }
};

// Returns owners that all must have the key.
Owners copies_on(const std::vector<std::size_t>& servers);

class Placement {
 public:
  virtual ~Placement() = default;
  virtual const Pool& pool() const = 0;
  // Returns the profile's name, such as `ketama` or `gomemcache`.
  virtual std::string_view profile() const = 0;
  // Returns the client's integer for a key, before it is mapped to a server.
  virtual std::uint64_t hash_of(std::string_view key) const = 0;
  // Returns an index into pool().
  virtual std::size_t server_of(std::string_view key) const = 0;
  // Computes both results with one hash.
  struct Place {
    std::uint64_t hash;
    std::size_t server;
  };
  virtual Place place_of(std::string_view key) const { return {hash_of(key), server_of(key)}; }
  // Announces keys that will be placed next. If another program answers, asking for all at once is faster.
  virtual void expect(const std::vector<std::string>&) const {}
  // Returns true if owners_of() names several servers for some key.
  virtual bool replicates() const { return false; }
  // Returns true if owners_of() always returns server_of() with the unchanged key.
  virtual bool has_plain_owners() const { return true; }
  // Returns all servers on which the client keeps the key: several if a proxy or client replicates.
  virtual Owners owners_of(std::string_view key) const { return {Policy::one, {{server_of(key)}}}; }
  // Returns true if the client accepts keys with any bytes. Some send another key instead (Owner::wire_key),
  // some send spaces and control bytes unchanged.
  virtual bool takes_any_byte() const { return false; }
  // Returns the `count` distinct servers that hold the key's copies, the owner first, then the next ones in
  // continuum order or by index. Returns fewer if the pool is smaller.
  virtual std::vector<std::size_t> servers_of(std::string_view key, std::size_t count) const {
    return followed({server_of(key)}, count);
  }
  // Returns the server that the client uses for the key while the servers marked in `down` (one entry per
  // server) are dead, or nullopt if the key is lost. Throws InvalidInput if the choice cannot be predicted.
  virtual std::optional<std::size_t> server_of_when_down(std::string_view key,
                                                         const std::vector<bool>& down) const;
  // Returns the circle on which keys are placed, or nullptr if the client has none.
  virtual const Continuum* continuum() const { return nullptr; }
  // Returns the weights of the pool's servers that a route states; empty: those of the pool apply.
  virtual std::vector<double> route_weights() const { return {}; }

 protected:
  // Returns `servers`, extended to `count` by those that follow the first in the list.
  std::vector<std::size_t> followed(std::vector<std::size_t> servers, std::size_t count) const;
};

// Appends `server` unless it is in the list.
void add_once(std::vector<std::size_t>& servers, std::size_t server);

// The operation in question, where reads and writes may take different routes; any: what they have in common.
enum class Operation { any, get, set, remove };
// Accepts get, set and delete; throws InvalidInput for other words.
Operation operation_named(std::string_view word);

struct PlacementOptions {
  Resolver resolver = {};
  // The namespace that the keys include; some clients do not hash it.
  std::string key_prefix = {};
  // twemproxy's hash_tag: two characters. If a key has text between them, only that text is hashed.
  std::string hash_tag = {};
  // mcrouter's salt, which is hashed after the key.
  std::string salt = {};
  // libmemcached's virtual buckets: for each, an index into the server list.
  std::vector<std::size_t> buckets = {};
  // The password of the login, for a client that hashes its login with each server.
  std::string password = {};
  // Accepts pools with repeated servers that the client could not use, so that the mistakes can be reported.
  bool any_pool = false;
  // The routes of a proxy's configuration, for the profile mcrouter-routes.
  std::shared_ptr<const Routes> routes = nullptr;
  Operation operation = Operation::any;
  // The client to ask, for the profile libmemcached-configured.
  std::shared_ptr<const AskedClient> asked = nullptr;
};

// Returns the placement of a profile. Throws InvalidInput for an unknown profile (with a `did you mean`), and
// if the client cannot use the pool (all weights 0, a name that does not resolve). Throws
// Failure(configuration) if it cannot because servers are listed twice. If the client uses a server as often
// as it is listed, pool() has that server once.
std::shared_ptr<const Placement> make_placement(std::string_view profile, Pool pool,
                                                const PlacementOptions& options = {});

// A client that is queried for the places of keys instead of being imitated: libmemcached, configured by its
// own string. The profile `libmemcached-configured` uses it.

class AskedClient {
 public:
  virtual ~AskedClient() = default;
  // Returns the servers in the client's order, repeated as there, with the weights of its configuration.
  virtual const Pool& servers() const = 0;
  // Returns the prefix that it puts before every key, hashed or not; may be empty.
  virtual const std::string& key_prefix() const = 0;
  // Returns the number of servers that keep each key: its own, and those that follow in the list.
  virtual std::size_t copies() const = 0;
  // Places a key, given without the prefix; the server is an index into servers(). Throws
  // Failure(configuration) if the client crashed or does not answer.
  virtual Placement::Place place_of(std::string_view key) const = 0;
  // Announces keys that will be placed next, so that the client can be asked for all at once.
  virtual void expect(const std::vector<std::string>& keys) const = 0;
  // Returns the same configuration with all weights 1.
  virtual std::shared_ptr<const AskedClient> with_equal_weights() const = 0;
};

// Throws InvalidInput if `pool` is not the client's pool, or `client` is null.
std::shared_ptr<const Placement> make_asked_placement(const Pool& pool,
                                                      std::shared_ptr<const AskedClient> client);

// Returns the best known other profile that places a sample of keys alike; empty if there is none.
std::string_view same_profile(const Placement& placement, const PlacementOptions& options);

}  // namespace mcds
