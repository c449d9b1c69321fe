// Finds the settings of a run, each with its source, and chooses the servers that the run contacts.
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

#include "common/base/clock.hpp"
#include "tools/cli/config.hpp"

namespace mcds {

// The global options as given on the command line, before environment and config are consulted.
struct GlobalOptions {
  std::optional<std::string> servers, servers_from, pool, profile, key_prefix, config, protocol;
  std::optional<std::string> output;
  std::optional<std::uint64_t> copies;
  std::optional<Duration> timeout, connect_timeout, deadline;
  std::optional<std::string> errors;
  bool verbose = false, quiet = false;
  bool null = false;  // names end with a NUL instead of a line feed, in input and output
  bool tls = false, tls_insecure = false;
  std::optional<std::string> tls_ca, tls_crl, tls_name, tls_cert, tls_key, tls_key_password_file;
  std::optional<std::string> user, password_file, auth;
};

// The source that named a list of servers or a setting. An earlier source wins over a later one.
enum class Origin { options, named_pool, environment, configured_pool, defaults, builtin };

// The settings of a run, from all sources, and the list of servers that is chosen from them. There is never a
// password among them.
class Settings {
 public:
  using Text = std::optional<std::string>;
  struct Value {
    Text text = {};
    Origin source = Origin::builtin;
    std::string from = "unset";  // the option, variable or file, `default` or `unset`
  };

  // Throws InvalidInput or Failure(configuration) if one source names two lists, or if a pool does not exist.
  Settings(const GlobalOptions& options, const Config& config);

  // Returns the value in use, as it applies to the chosen list or to another one.
  Value value(const SettingName& name) const { return value(name, list_); }
  // Leaves out one source.
  Value value(const SettingName& name, Origin list, Origin without = Origin::builtin) const;
  Text text(const SettingName& name) const { return value(name).text; }
  // Returns what one source says, whether or not it is used.
  Text said_by(Origin source, const SettingName& name) const;
  // Returns true if a setting of `source` applies to the list that `list` named.
  bool counts(Origin source, const SettingName& name, Origin list) const;
  // Returns true if the two have one origin: both options, both the environment, or both one pool.
  bool beside(Origin login, Origin list) const;

  // Returns the source of the chosen list. If neither servers nor servers_from is set, the source is builtin.
  Origin list() const { return list_; }
  // Returns the program, file or name that the chosen list is read from, or nullopt if it is `servers`.
  const Text& servers_from() const { return servers_from_; }
  // Returns true if the list must be fetched from a name server or an endpoint.
  bool asks_network() const;

 private:
  // Returns what the sources say about a setting, the most important one first.
  const std::vector<Value>& values(const Setting& setting) const {
    return values_[static_cast<std::size_t>(&setting - all_settings.data())];
  }

  std::array<std::vector<Value>, all_settings.size()> values_;
  Origin list_ = Origin::builtin;
  Text servers_from_;
};

}  // namespace mcds
