#include "tools/cli/access.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/errors.hpp"
#include "tools/cli/input.hpp"

namespace mcds {

namespace {

using Text = std::optional<std::string>;

Text environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : Text(value);
}

bool readable_by_others(const std::string& file) {
  struct stat entry {};
  return stat(file.c_str(), &entry) == 0 && S_ISREG(entry.st_mode) && (entry.st_mode & S_IROTH) != 0;
}

// The file's line.
std::string password_in(const std::string& file, const Output& output) {
  if (readable_by_others(file))
    output.warning("others can read the password in " + file + "; chmod 600 " + file);
  std::string password = file_bytes(file);
  if (password.ends_with('\n')) password.pop_back();
  if (password.ends_with('\r')) password.pop_back();
  if (password.empty()) throw InvalidInput("the password file " + file + " is empty");
  return password;
}

class Settling {
 public:
  Settling(const AccessSources& sources, const Output& output) : sources_(sources), output_(output) {}

  Access settle() const {
    Access access;
    access.tls_for_all = value(&AccessSettings::tls) == "on";
    access.tls.verify = value(&AccessSettings::tls_insecure) != "on";
    access.tls.ca_file = value(&AccessSettings::tls_ca, environment("MCDS_TLS_CA")).value_or("");
    access.tls.name = value(&AccessSettings::tls_name).value_or("");
    access.tls.certificate_file = value(&AccessSettings::tls_cert).value_or("");
    access.tls.key_file = value(&AccessSettings::tls_key).value_or("");
    if (access.tls.certificate_file.empty() && !access.tls.key_file.empty())
      throw InvalidInput("--tls-key needs --tls-cert FILE, the certificate that belongs to the key");
    if (!access.tls.verify)
      output_.warning(
          "certificates are not verified (--tls-insecure): anyone on the network path can impersonate the "
          "servers");
    access.login = login();
    return access;
  }

 private:
  // What stands in front counts.
  Text value(Text AccessSettings::*setting, const Text& from_environment = {}) const {
    for (const Text& found : {sources_.flags.*setting, sources_.flag_pool.*setting, from_environment,
                              sources_.config_pool.*setting, sources_.defaults.*setting}) {
      if (found) return found;
    }
    return std::nullopt;
  }

  bool from_environment() const { return sources_.servers_from.starts_with("env:"); }
  Text of_pool(const char* what) const {
    if (!from_environment()) return std::nullopt;
    return environment(std::string(sources_.servers_from.substr(4)) + what);
  }

  // In the order of value(); the environment has the password itself.
  Text password() const {
    for (const Text& file : {sources_.flags.password_file, sources_.flag_pool.password_file}) {
      if (file) return password_in(*file, output_);
    }
    if (auto password = environment("MCDS_PASSWORD")) return password;
    if (const auto file = value(&AccessSettings::password_file, environment("MCDS_PASSWORD_FILE")))
      return password_in(*file, output_);
    return of_pool("_PASSWORD");
  }

  std::optional<Login> login() const {
    Text user = value(&AccessSettings::user, environment("MCDS_USER"));
    if (!user) user = of_pool("_USERNAME");
    const Text secret = password();
    if (!user && !secret) return std::nullopt;
    if (!user) throw InvalidInput("a password is given but no user; give --user NAME or MCDS_USER");
    if (!secret) {
      throw InvalidInput("the user " + *user +
                         " needs a password; give --password-file FILE, MCDS_PASSWORD or MCDS_PASSWORD_FILE");
    }
    const bool memcachier = sources_.servers_from.starts_with("env:MEMCACHIER");
    const std::string form = value(&AccessSettings::auth).value_or(memcachier ? "user-key" : "ascii");
    Login login{form == "user-key" ? Login::Form::user_key : Login::Form::ascii, *user, *secret};
    check(login);
    return login;
  }

  const AccessSources& sources_;
  const Output& output_;
};

}  // namespace

Access settle_access(const AccessSources& sources, const Output& output) {
  return Settling(sources, output).settle();
}

std::string servers_of_environment(const std::string& name) {
  if (auto servers = environment(name + "_SERVERS")) return *servers;
  throw Failure(ErrorCode::configuration, name + "_SERVERS is not set in the environment");
}

}  // namespace mcds
