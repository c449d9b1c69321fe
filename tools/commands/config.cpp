// Implements mcds config: prints the settings of a command and their sources, without contacting servers.
#include "tools/cli/parse.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

// Hides a value that is not a server list: it may contain anything, even a password.
Settings::Value masked(Settings::Value servers) {
  if (attempt([&] { parse_pool(*servers.text); }).failure()) servers.text = "(not a server list)";
  return servers;
}

void print_setting(Session& session, std::string_view name, const Settings::Value& value) {
  const bool unset = value.from == "unset" || value.from == "default";
  if (unset && session.output().mode() == OutputMode::text) return;
  JsonObject line("setting", name);
  value.text ? line.bytes("value", *value.text) : line.raw("value", "null");
  line.bytes("from", value.from);
  session.output().answer(line, std::string(name) + '=' + value.text.value_or(""));
}

void print_server(Session& session, const Server& server) {
  const Credentials& given = credentials_of(server);
  const std::string user = given.login ? given.login->user : "";
  const bool clear = login_in_clear(server);
  JsonObject line = JsonObject("server", server.address()).boolean("tls", server.tls);
  if (given.login) line.bytes("login", user).boolean("login_in_clear", clear);
  if (!given.login) line.raw("login", "null");
  if (server.tls && !given.tls.certificate_file.empty())
    line.bytes("certificate", given.tls.certificate_file);
  if (!given.withheld.empty()) line.bytes("error", given.withheld);
  session.output().answer(line, "login:" + server.address() + '=' + user +
                                    (server.tls ? " tls"
                                     : clear    ? " in clear"
                                                : ""));
}

// Prints the credentials and connection settings of each server that is known without the network.
void print_servers(Session& session) {
  try {
    if (session.settings().asks_network()) return;
    for (const Server& server : session.pool().pool) print_server(session, server);
  } catch (const Failure& failure) {
    const std::string why = failure.what();
    session.output().answer(JsonObject("setting", "login").bytes("error", why), "login=(" + why + ')');
  }
}

ExitStatus show_config(Session& session) {
  const auto& named = session.options().pool;
  if (named && !session.config().sections.contains("pool " + *named))
    throw Failure(ErrorCode::configuration, "the config has no [pool " + *named + "]");
  const Settings& settings = session.settings();
  for (const Setting& setting : all_settings) {
    const std::string_view name = setting.name;
    if (setting.kind == Setting::Kind::doctor ||
        name == (settings.servers_from() ? "servers" : "servers_from"))
      continue;
    const Settings::Value value = settings.value(setting);
    print_setting(session, name, name == "servers" ? masked(value) : value);
  }
  const bool counts = settings.counts(Origin::environment, "password_file", settings.list());
  const bool has_password = counts && environment("MCDS_PASSWORD");
  print_setting(session, "password",
                has_password ? Settings::Value{"(not shown)", Origin::environment, "MCDS_PASSWORD"}
                             : Settings::Value());
  print_servers(session);
  return ExitStatus::ok;
}

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
      .action(show_config);
}

}  // namespace mcds
