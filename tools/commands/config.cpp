// Implements mcds config: prints the settings of a command and their sources, without contacting servers.
#include "tools/cli/parse.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

using Text = std::optional<std::string>;

struct Found {
  Text value;
  std::string from;
};

class Explanation {
 public:
  explicit Explanation(Session& session)
      : session_(session),
        options_(session.options()),
        config_(session.config()),
        given_(global_options(options_)) {
    pool_name_ = settle(all_settings().front());
    if (pool_name_.value && !config_.pools.contains(*pool_name_.value))
      throw Failure(ErrorCode::configuration, "the config has no [pool " + *pool_name_.value + "]");
  }

  void print() {
    const bool listed = !session_.sources().servers_from();
    for (const Setting& setting : all_settings()) {
      const std::string_view name = setting.name;
      if (name == (listed ? "servers_from" : "servers")) continue;
      const Found found = settle(setting);
      print_one(setting.name, name == "servers" ? masked(found) : found);
    }
    print_password();
    print_servers();
  }

 private:
  // Finds the setting's value. The order is: an option, the pool that an option names, the environment, the
  // config's pool, the config's defaults.
  Found settle(const Setting& setting) const {
    for (const OptionSpec& option : given_) {
      if (const Text text = given_value(option.target); text && option.is_called(setting.option))
        return {text, setting.option};
    }
    if (options_.pool) {
      if (Found found = of_pool(setting, Origin::named_pool); found.value) return found;
    }
    for (const std::string_view name : split(setting.variables, ' ')) {
      const Text value = environment(std::string(name));
      if (value && counts(setting, Origin::environment)) return {value, std::string(name)};
    }
    if (Found found = of_pool(setting, Origin::configured_pool); found.value) return found;
    const auto* own = std::get_if<Text Config::*>(&setting.member);
    const Text value = own != nullptr ? config_.**own : of(config_.defaults, setting);
    if (value && counts(setting, Origin::defaults)) return {value, config_.files.at({"", setting.name})};
    // A source of servers may determine these two itself.
    const std::string_view name = setting.name;
    const bool of_source = session_.sources().servers_from() && (name == "profile" || name == "copies");
    return setting.otherwise != nullptr && !of_source ? Found{setting.otherwise, "default"} : Found{};
  }

  // Returns true if the setting applies: logins and certificates apply only to the list that they belong to.
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
  // Hides a value that is not a server list: it may contain anything, even a password.
  static Found masked(Found servers) {
    try {
      static_cast<void>(parse_pool(*servers.value));
    } catch (const Failure&) {
      servers.value = "(not a server list)";
    }
    return servers;
  }

  void print_one(const char* name, const Found& found) {
    const bool unset = found.from.empty() || found.from == "default";
    if (unset && session_.output().mode() == OutputMode::text) return;
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

  // Prints the credentials and connection settings of each server that is known without the network.
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
  GlobalOptions options_;
  const Config& config_;
  const std::vector<OptionSpec> given_;  // into options_
  Found pool_name_;
};

}  // namespace

void declare_config(Command& command) {
  command.exits("66 the file of --config cannot be read|78 the configuration is wrong");
  command.itself()
      .answer("setting value:string|null from")
      .answer("setting error")
      .answer("server tls login login_in_clear? certificate? error?")
      .field("value string|null the value in use")
      .field("server string the server")
      .field("error string why the servers cannot be read, or why the login is not sent")
      .field("from string the option, variable or file that it comes from; default or unset")
      .example("mcds config")
      .example("mcds --timeout 2s config -o text")
      .action([](Session& session) {
        Explanation(session).print();
        return ExitStatus::ok;
      });
}

}  // namespace mcds
