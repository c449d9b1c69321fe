// Access to servers: TLS and a login, from options, environment and configuration.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/cluster/login.hpp"
#include "common/cluster/tls/options.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

// One source of settings: the command line, or a pool of the config. Never a password itself.
struct AccessSettings {
  std::optional<std::string> tls, tls_ca, tls_name, tls_cert, tls_key,
      tls_insecure;  // on or off: the first and the last
  std::optional<std::string> user, password_file, auth;
};

// In the order in which they count; between the second and the third comes the environment.
struct AccessSources {
  const AccessSettings& flags;
  const AccessSettings& flag_pool;
  const AccessSettings& config_pool;
  const AccessSettings& defaults;
  std::string_view servers_from = {};  // env:NAME contains a login
};

struct Access {
  bool tls_for_all = false;
  TlsOptions tls;
  std::optional<Login> login;
};

// Throws InvalidInput for an incomplete login, Failure(cannot_read) for the password's file. Warns of a file that
// others can read, and of certificates that are not verified.
Access settle_access(const AccessSources& sources, const Output& output);

// Whether the environment names a pool as MEMCACHIER_SERVERS does: `env:MEMCACHIER`. Its servers; throws
// Failure(configuration) when there are none.
std::string servers_of_environment(const std::string& name);

}  // namespace mcds
