#include "tools/cli/access.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/text.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

using Text = std::optional<std::string>;

// Returns the file's text without its line end. Warns if others can read it, except on a read-only mount:
// containers are given secrets that way, and the modes there are not ours to change.
std::string secret_in(const std::string& file, const char* what, const Output& output) {
  static std::set<std::string> warned;
  auto [secret, about] = small_file(file);
  const bool readable = S_ISREG(about.entry.st_mode) && (about.entry.st_mode & S_IROTH) != 0;
  if (readable && !about.on_read_only_mount && warned.insert(file).second)
    output.warning("others can read the " + std::string(what) + " in " + file + "; chmod 600 " +
                   shell_path(file));
  if (secret.ends_with('\n')) secret.pop_back();
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) throw InvalidInput("the " + std::string(what) + " file " + file + " is empty");
  return secret;
}

bool is_loopback(const Server& server) {
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, server.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  if (inet_pton(AF_INET6, server.host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return server.host == "localhost";
}

class CredentialResolver {
 public:
  CredentialResolver(const Settings& settings, Origin list, const Output& output)
      : settings_(settings), list_(list), output_(output) {}

  Access settle() const {
    Access access;
    access.tls_for_all = text("tls") == "on";
    TlsOptions& tls = access.credentials.tls;
    tls.verify = text("tls_insecure") != "on";
    tls.ca_file = text("tls_ca").value_or("");
    tls.crl_file = text("tls_crl").value_or("");
    tls.name = text("tls_name").value_or("");
    if (text("tls_name")) check_certificate_name(tls.name);
    tls.read = [](const std::string& file) { return small_file(file).bytes; };
    tls.certificate_file = text("tls_cert").value_or("");
    tls.key_file = text("tls_key").value_or("");
    if (tls.certificate_file.empty() && !tls.key_file.empty())
      throw InvalidInput("--tls-key needs --tls-cert FILE, the certificate that belongs to the key");
    if (const Text file = text("tls_key_password_file"))
      tls.key_password = secret_in(*file, "key's password", output_);
    if (!tls.verify && !tls.crl_file.empty())
      throw InvalidInput("--tls-crl and --tls-insecure cannot be combined");
    if (!tls.verify && list_ == settings_.list())
      output_.warning(
          "certificates are not verified (--tls-insecure): anyone on the network path can impersonate the "
          "servers");
    access.plain_login = text("plain_login") == "yes";
    const bool memcachier = from_environment() && settings_.servers_from()->starts_with("env:MEMCACHIER");
    const std::string form = text("auth").value_or(memcachier ? "user-key" : "ascii");
    if (form == "sasl") access.login_form = Login::Form::sasl;
    if (form == "user-key") access.login_form = Login::Form::user_key;
    log_in(access);
    return access;
  }

 private:
  Text text(const SettingName& name) const { return settings_.value(name, list_).text; }

  bool from_environment() const {
    return list_ == settings_.list() && settings_.servers_from() &&
           settings_.servers_from()->starts_with("env:");
  }
  Text of_list(const char* what) const {
    return from_environment() ? environment(settings_.servers_from()->substr(4) + what) : std::nullopt;
  }

  // Returns the password from the environment or from a file, which is named, or else the list's own.
  Settings::Value password() const {
    const auto file = settings_.value("password_file", list_);
    const bool before = file.text && file.source < Origin::environment;
    const bool counts = settings_.counts(Origin::environment, "password_file", list_);
    if (auto password = counts && !before ? environment("MCDS_PASSWORD") : std::nullopt)
      return {std::move(password), Origin::environment, ""};
    if (!file.text) return {of_list("_PASSWORD"), list_, ""};
    return {secret_in(*file.text, "password", output_), file.source, *file.text};
  }

  void log_in(Access& access) const {
    const auto named = settings_.value("user", list_);
    const Text user = named.text ? named.text : of_list("_USERNAME");
    auto [secret, source, file] = password();
    if (!user && !secret) return;
    if (!user) throw InvalidInput("the password has no user; give --user NAME or MCDS_USER");
    if (!secret) {
      throw InvalidInput("the user " + *user +
                         " needs a password; give --password-file FILE, MCDS_PASSWORD or MCDS_PASSWORD_FILE");
    }
    Login login{access.login_form, *user, *secret};
    explicit_bzero(secret->data(), secret->size());
    check(login);
    access.credentials.login = std::move(login);
    access.password_file = file;
    access.beside =
        settings_.beside(named.text ? named.source : list_, list_) && settings_.beside(source, list_);
  }

  const Settings& settings_;
  Origin list_;
  const Output& output_;
};

struct stat folder_of(const std::string& file) {
  struct stat folder {};
  const std::string name = std::filesystem::path(file).parent_path();
  if (stat(name.empty() ? "." : name.c_str(), &folder) != 0) folder.st_mode = S_IWOTH;
  return folder;
}

bool in_user_namespace() {
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 0, outside = 0, count = 0;
  return map >> inside >> outside >> count && (inside != outside || count < UINT32_MAX);
}

// Returns true if root outside this user namespace owns the file; its files appear as nobody's here.
bool is_roots_outside(const std::string& file, const FileAbout& about) {
  constexpr uid_t nobody = 65534;
  return about.entry.st_uid == nobody && in_user_namespace() && (folder_of(file).st_mode & S_IWOTH) == 0 &&
         (file == "/etc/mcds.conf" || about.on_read_only_mount);
}

bool others_can_write(const std::string& file, const FileAbout& about) {
  if (!S_ISREG(about.entry.st_mode) && !S_ISFIFO(about.entry.st_mode)) return false;
  if ((about.entry.st_mode & S_IWOTH) != 0) return true;
  return about.entry.st_uid != 0 && about.entry.st_uid != geteuid() && !is_roots_outside(file, about);
}

// Returns true if the config file may send this login, because the password file is in its folder. Otherwise
// another user's config file could name somebody else's secret and have it sent.
bool holds_login(const Config& config, const std::string& file, const Access& access) {
  const auto folder = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::canonical(path, ignored).parent_path();
  };
  return !folder(file).empty() && folder(file) == folder(access.password_file) &&
         std::ranges::any_of(config.sections, [&](const auto& section) {
           const Config::Value* set = config.find(section.first, "password_file");
           return set != nullptr && set->file == file;
         });
}

}  // namespace

void expect_trusted(const Config& config, const Access& access) {
  if (!access.credentials.login) return;
  for (const auto& [file, about] : config.read) {
    if (!others_can_write(file, about) || holds_login(config, file, access)) continue;
    const bool by_all = (about.entry.st_mode & S_IWOTH) != 0;
    throw Failure(ErrorCode::configuration,
                  "the login of " + file + " is not sent because " +
                      (by_all ? "every user can write that file; chmod o-w " + shell_path(file)
                              : "another user owns that file and can write it; chown root " +
                                    shell_path(file) + ", or name another file with --config"));
  }
}

Access resolve_credentials(const Settings& settings, Origin list, const Output& output) {
  return CredentialResolver(settings, list, output).settle();
}

void give(Pool& servers, const Access& access, const ListOrigin& from) {
  const auto given = std::make_shared<const Credentials>(access.credentials);
  Credentials without{access.credentials.tls, {}, {}};
  without.withheld =
      from.main_list_has_tls
          ? "a login is not sent without TLS to this server, because the other list's servers are reached "
            "with TLS; write tls://, or name the servers in a pool with plain_login = yes"
      : from.discovered
          ? "a login is not sent without TLS to a server that was discovered; write tls:// in the source, or "
            "give the login in a pool with plain_login = yes"
          : "a login is not sent without TLS to a server that was not named beside it; write tls://, name "
            "the servers as the login is named, or set plain_login = yes in their pool";
  const auto withheld = std::make_shared<const Credentials>(std::move(without));
  for (Server& server : servers) {
    if (access.tls_for_all) server.tls = !server.is_unix();
    const bool near = !from.discovered && !from.main_list_has_tls &&
                      (access.beside || server.is_unix() || is_loopback(server));
    const bool may = !access.credentials.login || server.tls || near || access.plain_login;
    server.credentials = may ? given : withheld;
  }
}

void take_over(Pool& servers, const Pool& known) {
  for (Server& server : servers) {
    const auto same = std::ranges::find(known, server.address(), &Server::address);
    if (same == known.end()) continue;
    server.tls = same->tls;
    server.credentials = same->credentials;
  }
}

void log_in_as_listed(Access& access, const PoolFile& list) {
  if (list.user.empty() || access.credentials.login) return;
  Login login{access.login_form, list.user, list.password};
  check(login);
  access.credentials.login = std::move(login);
  access.beside = true;
}

}  // namespace mcds
