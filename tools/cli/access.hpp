// Chooses the servers that a run contacts, and decides which credentials each of them may be shown.
//
// A list of servers comes from the command line, the environment, or a pool of the config; so do logins,
// certificates and names. Each server gets the credentials of the source that named it (Server::credentials),
// and no others:
//   - options apply to whatever list is chosen in the same command;
//   - the environment applies to its own list (MCDS_SERVERS, MEMCACHED_SERVERS, MCDS_POOL), or to any list if
//     it names none;
//   - a pool applies to its own list;
//   - keys before any section apply to the lists of the config, or only to their own list if they have one.
// Settings that only protect (tls, tls_ca, tls_crl before any section, MCDS_TLS_CA) apply to every list.
#pragma once

#include "common/cluster/credentials.hpp"
#include "common/placement/pools/files.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

// The settings of one source: the command line, or a pool of the config. It never holds a password itself.
struct AccessSettings {
  std::optional<std::string> tls, tls_insecure;  // on or off
  std::optional<std::string> tls_ca, tls_crl, tls_name, tls_cert, tls_key, tls_key_password_file;
  std::optional<std::string> user, password_file, auth;
  std::optional<std::string> plain_login;  // yes or no
};

struct PoolConfig {
  AccessSettings access;
  std::optional<std::string> servers, servers_from, profile, key_prefix, copies, longest_lock_ttl;
};

struct GlobalOptions;
struct Config;

// The source that named a list of servers or a setting. An earlier source wins over a later one.
enum class Origin { options, named_pool, environment, configured_pool, defaults, builtin };

// The sources of a run, and the list that is chosen from them.
class AccessSources {
 public:
  using Text = std::optional<std::string>;
  using Member = Text AccessSettings::*;

  // Throws InvalidInput or Failure(configuration) if one source names two lists, or if a pool does not exist.
  AccessSources(const GlobalOptions& options, const Config& config);

  // Return the pool named by --pool, and the pool named by the environment or the config.
  const PoolConfig& named_pool() const { return named_pool_; }
  const PoolConfig& configured_pool() const { return configured_pool_; }
  // Return the chosen list and its source. If neither servers nor servers_from is set, the source is builtin.
  const Text& servers() const { return servers_; }
  const Text& servers_from() const { return servers_from_; }
  Origin list() const { return list_; }
  // Returns true if the list must be fetched from a name server or an endpoint.
  bool asks_network() const;
  // Returns the list that the environment names.
  const Text& environment_servers() const { return environment_servers_; }

  // Returns true if a setting of `source` applies to the list that `list` named.
  bool counts(Origin source, Member member, Origin list) const;
  // A setting's value and its source. `variable` is the setting's name in the environment.
  struct Value {
    Text text;
    Origin source = Origin::builtin;
  };
  Value value(Member member, Origin list, const char* variable = nullptr) const;
  // Returns true if the two have one origin: both options, both the environment, or both one pool.
  bool beside(Origin login, Origin list) const;

 private:
  void choose(Origin origin, const Text& servers, const Text& servers_from);

  AccessSettings flags_;
  PoolConfig named_pool_, configured_pool_, defaults_;
  Text servers_, servers_from_, environment_servers_;
  Origin list_ = Origin::builtin;
  bool environment_pool_ = false;  // the environment names the configured pool
};

// The credentials that the servers of a list may be shown.
struct Access {
  bool tls_for_all = false;
  Credentials credentials;
  bool plain_login = false;  // may be sent without TLS to any server of the list
  Login::Form login_form = Login::Form::ascii;
  bool beside = false;             // the login has the same source as the list
  std::string password_file = {};  // the file from which the password was read, or empty
};

// Returns the access for a list of this origin. Throws InvalidInput for an incomplete login,
// Failure(cannot_read) for the password's file. Warns if others can read that file, or if certificates are
// not verified.
Access resolve_credentials(const AccessSources& sources, Origin list, const Output& output);

// Throws Failure(configuration) if a login would be sent because of a configuration file that everybody can
// write, or that neither root nor this user owns. Write permission for a group is accepted. A file may always
// cause the login that it holds itself to be sent.
void expect_trusted(const Config& config, const Access& access);

struct ListOrigin {
  bool discovered = false;         // see FoundServers
  bool main_list_has_tls = false;  // second list of a run whose main list is reached with TLS
};

// Sets the credentials of every server. Without TLS, a login is sent to loopback, to unix sockets and, unless
// the main list has TLS, to servers named by the same source as the login. It is sent to other servers only
// with plain_login; any server left over is not contacted (Credentials::withheld).
void give(Pool& servers, const Access& access, const ListOrigin& from);
// Gives each server whose address is also in `known` the connection settings it has there.
void take_over(Pool& servers, const Pool& known);

// Uses the login that the list itself contains, for its servers only, unless a login was given.
void log_in_as_listed(Access& access, const PoolFile& list);

}  // namespace mcds
