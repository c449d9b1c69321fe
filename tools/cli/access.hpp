// Which servers a run talks to and what it may show them: chosen together, in one place.
//
// A list of servers comes from the command line, the environment, or a pool of the config; so do logins,
// certificates and names. Each server gets the credentials of the source that named it (Server::credentials),
// and no others:
//   - options: whatever list is chosen in the same command
//   - the environment: its own list (MCDS_SERVERS, MEMCACHED_SERVERS, MCDS_POOL), or any if it names none
//   - a pool: its own list
//   - the keys before any section: the lists of the config, or only their own if they have one
// What only protects (tls, tls_ca, tls_crl before any section, MCDS_TLS_CA) counts for every list.
#pragma once

#include "common/cluster/credentials.hpp"
#include "common/placement/pools/files.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

// One source of settings: the command line, or a pool of the config. Never a password itself.
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

// Who named a list of servers, or a setting: the first counts.
enum class Origin { options, named_pool, environment, configured_pool, defaults, builtin };

// The sources of a run, and the list that is chosen from them.
class AccessSources {
 public:
  using Text = std::optional<std::string>;
  using Member = Text AccessSettings::*;

  // Throws InvalidInput or Failure(configuration) for two lists in one source, and for a pool that there is
  // not.
  AccessSources(const GlobalOptions& options, const Config& config);

  // The pools named by --pool, and by the environment or the config.
  const PoolConfig& named_pool() const { return named_pool_; }
  const PoolConfig& configured_pool() const { return configured_pool_; }
  // The list, and who named it. Neither servers nor servers_from: builtin.
  const Text& servers() const { return servers_; }
  const Text& servers_from() const { return servers_from_; }
  Origin list() const { return list_; }
  // The list is a name server's or an endpoint's to give.
  bool asks_network() const;
  // The list of the environment.
  const Text& environment_servers() const { return environment_servers_; }

  // Whether a setting of `source` counts for the list that `list` named.
  bool counts(Origin source, Member member, Origin list) const;
  // The setting, and who gave it. `variable`: its name in the environment.
  struct Value {
    Text text;
    Origin source = Origin::builtin;
  };
  Value value(Member member, Origin list, const char* variable = nullptr) const;
  // Returns whether the two have one origin: both options, both the environment, or both one pool.
  bool beside(Origin login, Origin list) const;

 private:
  void choose(Origin origin, const Text& servers, const Text& servers_from);

  AccessSettings flags_;
  PoolConfig named_pool_, configured_pool_, defaults_;
  Text servers_, servers_from_, environment_servers_;
  Origin list_ = Origin::builtin;
  bool environment_pool_ = false;  // the environment names the configured pool
};

// What the servers of a list may be shown.
struct Access {
  bool tls_for_all = false;
  Credentials credentials;
  bool plain_login = false;  // may be sent to any server of the list
  Login::Form login_form = Login::Form::ascii;
  bool beside = false;             // was named beside the list
  std::string password_file = {};  // from which the password was read, if it was
};

// For a list of this origin. Throws InvalidInput for an incomplete login, Failure(cannot_read) for the
// password's file.
// Warns of a file that others can read, and of certificates that are not verified.
Access settle_access(const AccessSources& sources, Origin list, const Output& output);

// Throws Failure(configuration) if a login would be sent as a configuration file says that another
// unprivileged user can write: one that is writable by all, or that belongs to neither root nor this user. A
// file may send the login that it holds itself. A group may write it.
void expect_trusted(const Config& config, const Access& access);

struct ListOrigin {
  bool discovered = false;         // see FoundServers
  bool main_list_has_tls = false;  // this is another list of a run whose own servers are reached with TLS
};

// Gives every server what it may be shown. Without TLS a login goes to loopback, to unix sockets, and to
// servers that were named beside it, unless the main list has TLS; to others with plain_login. Any other is
// not contacted (Credentials::withheld).
void give(Pool& servers, const Access& access, const ListOrigin& from);
// The same servers in `known`, by their addresses, are reached as they are there.
void take_over(Pool& servers, const Pool& known);

// The login that a list brings is for its servers alone; one that is given counts instead.
void log_in_as_listed(Access& access, const PoolFile& list);

}  // namespace mcds
