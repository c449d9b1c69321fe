// mcds config: the settings that a command would use, and where each comes from. No server is contacted.
#include "common/placement/pools/pool.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

using Text = std::optional<std::string>;

// A setting as each of its sources has it.
struct Setting {
  const char* name;
  const char* option;
  Text of_option;
  const char* variables;  // separated by spaces
  std::variant<Text PoolConfig::*, Text AccessSettings::*, Text Config::*> member;
  const char* otherwise = nullptr;
};

struct Found {
  Text value;
  std::string from;
};

class Explanation {
 public:
  explicit Explanation(Session& session)
      : session_(session), options_(session.options()), config_(session.config()) {
    pool_name_ = settle({"pool", "--pool", options_.pool, "MCDS_POOL", &Config::pool});
    if (pool_name_.value && !config_.pools.contains(*pool_name_.value))
      throw Failure(ErrorCode::configuration, "the config has no [pool " + *pool_name_.value + "]");
  }

  void print() {
    const Found servers = settle(
        {"servers", "--servers", options_.servers, "MCDS_SERVERS MEMCACHED_SERVERS", &PoolConfig::servers});
    const Found source =
        settle({"servers_from", "--servers-from", options_.servers_from, "", &PoolConfig::servers_from});
    const bool listed = !session_.sources().servers_from();
    print_one("pool", pool_name_);
    if (listed) print_one("servers", servers.value ? masked(servers) : builtin("127.0.0.1:11211"));
    if (!listed) print_one("servers_from", source);
    for (const Setting& setting : settings(!listed)) print_one(setting.name, settle(setting));
    print_password();
    print_servers();
  }

 private:
  std::vector<Setting> settings(bool from_source) const {
    const AccessSettings& access = options_.access;
    const auto text = [](const std::optional<Duration>& duration) -> Text {
      return duration ? Text(format_duration(*duration)) : std::nullopt;
    };
    const Text copies = options_.copies ? Text(std::to_string(*options_.copies)) : std::nullopt;
    const auto on = [](bool flag) { return flag ? Text("on") : std::nullopt; };
    using P = PoolConfig;
    using A = AccessSettings;
    return {
        {"profile", "--as", options_.profile, "MCDS_PROFILE", &P::profile, from_source ? nullptr : "ketama"},
        {"namespace", "--namespace", options_.key_prefix, "MCDS_NAMESPACE", &P::key_prefix, ""},
        {"copies", "--copies", copies, "", &P::copies, from_source ? nullptr : "1"},
        {"longest_lock_ttl", "--longest-ttl", {}, "", &P::longest_lock_ttl, "10m"},
        {"timeout", "--timeout", text(options_.timeout), "", &Config::timeout, "1s"},
        {"connect_timeout", "--connect-timeout", text(options_.connect_timeout), "", &Config::connect_timeout,
         "500ms"},
        {"protocol", "--protocol", options_.protocol, "", &Config::protocol, "auto"},
        {"output", "--output", options_.output, "MCDS_OUTPUT", &Config::output, "json"},
        {"tls", "--tls", on(options_.tls), "", &A::tls, "off"},
        {"tls_ca", "--tls-ca", access.tls_ca, "MCDS_TLS_CA", &A::tls_ca},
        {"tls_crl", "--tls-crl", access.tls_crl, "", &A::tls_crl},
        {"tls_name", "--tls-name", access.tls_name, "", &A::tls_name},
        {"tls_cert", "--tls-cert", access.tls_cert, "", &A::tls_cert},
        {"tls_key", "--tls-key", access.tls_key, "", &A::tls_key},
        {"tls_key_password_file", "--tls-key-password-file", access.tls_key_password_file, "",
         &A::tls_key_password_file},
        {"tls_insecure", "--tls-insecure", on(options_.tls_insecure), "", &A::tls_insecure, "off"},
        {"user", "--user", access.user, "MCDS_USER", &A::user},
        {"password_file", "--password-file", access.password_file, "MCDS_PASSWORD_FILE", &A::password_file},
        {"auth", "--auth", access.auth, "", &A::auth},
        {"plain_login", "", {}, "", &A::plain_login, "no"},
    };
  }

  static Found builtin(const char* value) { return {value, "default"}; }

  // An option; the pool named by one; the environment; the config's pool; its defaults.
  Found settle(const Setting& setting) const {
    if (setting.of_option) return {setting.of_option, setting.option};
    if (options_.pool) {
      if (Found found = of_pool(setting, Origin::named_pool); found.value) return found;
    }
    for (std::string_view names = setting.variables; !names.empty();) {
      const std::string name(names.substr(0, names.find(' ')));
      names.remove_prefix(std::min(name.size() + 1, names.size()));
      const Text value = environment(name);
      if (value && counts(setting, Origin::environment)) return {value, name};
    }
    if (Found found = of_pool(setting, Origin::configured_pool); found.value) return found;
    const auto* own = std::get_if<Text Config::*>(&setting.member);
    const Text value = own != nullptr ? config_.**own : of(config_.defaults, setting);
    if (value && counts(setting, Origin::defaults)) return {value, config_.files.at({"", setting.name})};
    return setting.otherwise != nullptr ? builtin(setting.otherwise) : Found{};
  }

  // Logins and certificates only with the list that they belong to.
  bool counts(const Setting& setting, Origin source) const {
    const auto* member = std::get_if<Text AccessSettings::*>(&setting.member);
    const AccessSources& sources = session_.sources();
    return member == nullptr || sources.counts(source, *member, sources.list());
  }

  Found of_pool(const Setting& setting, Origin source) const {
    if (!pool_name_.value || !counts(setting, source)) return {};
    const std::string section = "pool " + *pool_name_.value;
    const auto pool = config_.pools.find(*pool_name_.value);
    const Text value = pool == config_.pools.end() ? std::nullopt : of(pool->second, setting);
    return value ? Found{value, config_.files.at({section, setting.name}) + " [" + section + ']'} : Found{};
  }

  static Text of(const PoolConfig& pool, const Setting& setting) {
    if (const auto* member = std::get_if<Text PoolConfig::*>(&setting.member)) return pool.**member;
    const auto* member = std::get_if<Text AccessSettings::*>(&setting.member);
    return member != nullptr ? pool.access.**member : std::nullopt;
  }
  // A list that is not one may hold anything, a password too.
  static Found masked(Found servers) {
    try {
      static_cast<void>(parse_pool(*servers.value));
    } catch (const Failure&) {
      servers.value = "(not a server list)";
    }
    return servers;
  }

  void print_one(const char* name, const Found& found) {
    JsonObject line("setting", name);
    found.value ? line.bytes("value", *found.value) : line.raw("value", "null");
    line.bytes("from", found.from.empty() ? "unset" : found.from);
    session_.output().answer(line, std::string(name) + '=' + found.value.value_or(""));
  }

  void print_password() {
    const bool counts = session_.sources().counts(Origin::environment, &AccessSettings::password_file,
                                                  session_.sources().list());
    if (!environment("MCDS_PASSWORD") || !counts) return print_one("password", {});
    print_one("password", {"(not shown)", "MCDS_PASSWORD"});
  }

  // Of each server whose name is known without asking the network: what it is shown, and how.
  void print_servers() {
    try {
      if (!session_.sources().asks_network())
        for (const Server& server : session_.pool().pool) print_server(server);
    } catch (const Failure& failure) {
      const std::string why = failure.what();
      session_.output().answer(JsonObject("setting", "login").bytes("error", why), "login=(" + why + ')');
    }
  }

  void print_server(const Server& server) {
    const Credentials& given = credentials_of(server);
    const std::string user = given.login ? given.login->user : "";
    const bool clear = login_in_clear(server);
    JsonObject line = JsonObject("server", server.address()).boolean("tls", server.tls);
    if (given.login) line.bytes("login", user).boolean("login_in_clear", clear);
    if (!given.login) line.raw("login", "null");
    if (server.tls && !given.tls.certificate_file.empty())
      line.bytes("certificate", given.tls.certificate_file);
    if (!given.withheld.empty()) line.bytes("error", given.withheld);
    session_.output().answer(line, "login:" + server.address() + '=' + user +
                                       (server.tls ? " tls"
                                        : clear    ? " in clear"
                                                   : ""));
  }

  Session& session_;
  const GlobalOptions& options_;
  const Config& config_;
  Found pool_name_;
};

}  // namespace

void declare_config(Command& command) {
  command.itself()
      .answer("setting value:string|null from")
      .answer("setting error")
      .answer("server tls login login_in_clear? certificate? error?")
      .field("value string|null the value in use")
      .field("from string where it comes from")
      .example("mcds config")
      .example("mcds --timeout 2s config -o text")
      .action([](Session& session) {
        Explanation(session).print();
        return ExitStatus::ok;
      });
}

}  // namespace mcds
