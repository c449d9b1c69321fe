#include "tools/cli/printed_command.hpp"

#include "common/base/text.hpp"
#include "tools/cli/parse.hpp"

namespace mcds {

namespace {

using Names = std::span<const std::string_view>;

// Options about output and time limits, which are not repeated.
constexpr std::array<std::string_view, 6> of_the_output{"--output",  "--null",   "--quiet",
                                                        "--verbose", "--errors", "--deadline"};
constexpr std::array<std::string_view, 5> of_the_list{"--servers", "--servers-from", "--pool", "--as",
                                                      "--copies"};

// Leaves out the options in `without`, and those that `words` has.
std::string given_options(const Session& session, Names without, std::string_view words) {
  GlobalOptions options = session.options();
  std::string text;
  for (const OptionSpec& spec : global_options(options)) {
    const std::string name = spec.long_name();
    if (std::ranges::find(without, name) != without.end() ||
        std::ranges::find(of_the_output, name) != of_the_output.end() || words.starts_with(name + ' '))
      continue;
    if (const auto value = given_value(spec.target))
      text += printed_option(name, spec.value.empty() ? "" : *value);
  }
  return text;
}

// Returns the settings that apply to the list of this run but would not apply to a list given as an option.
std::string options_of_the_list(Session& session, const Server& server) {
  constexpr std::array<SettingName, 8> names{
      "tls_ca", "tls_crl", "tls_cert", "tls_key", "tls_key_password_file", "user", "password_file", "auth"};
  const Settings& settings = session.settings();
  const auto is_lost = [&](const SettingName& name) {
    const Settings::Value value = settings.value(name, settings.list(), Origin::environment);
    const bool found = value.source != Origin::options && value.source != Origin::builtin;
    return found && !settings.counts(value.source, name, Origin::options) ? value.text : std::nullopt;
  };
  std::string text;
  for (const SettingName& name : names) {
    if (const auto value = is_lost(name)) text += printed_option(name.setting.option, *value);
  }
  if (is_lost("tls_insecure") == "on") text += " --tls-insecure";
  const std::string& name = credentials_of(server).tls.name;
  if (!name.empty() && !session.options().tls_name) text += printed_option("--tls-name", name);
  if (settings.value("namespace").source == Origin::named_pool)
    text += printed_option("--namespace", session.key_prefix());
  return text;
}

// Returns true if the server's login can be given in options, or comes from the environment for any list.
bool can_say_login(Session& session, const Server& server) {
  if (!credentials_of(server).login) return true;
  if (!session.pool().user.empty()) return false;
  const Settings& settings = session.settings();
  return settings.value("password_file", settings.list(), Origin::environment).text ||
         settings.counts(Origin::environment, "password_file", Origin::options) ||
         settings.said_by(Origin::environment, "servers");
}

}  // namespace

std::string printed_option(std::string_view name, const std::string& value) {
  if (value.empty()) return ' ' + std::string(name);
  return ' ' + std::string(name) + (value.starts_with('-') ? '=' : ' ') + shell_word(value);
}

std::string printed_command(Session& session, std::string_view words, std::string_view profile) {
  constexpr std::array<std::string_view, 1> as{"--as"};
  std::string text = "mcds";
  if (!profile.empty()) text += printed_option("--as", std::string(profile));
  text += given_options(session, profile.empty() ? Names() : Names(as), words);
  return text + ' ' + std::string(words);
}

std::string printed_command_on(Session& session, const Server& server, std::string_view words) {
  if (!can_say_login(session, server)) return printed_command(session, words);
  const std::string address = (server.tls ? "tls://" : "") + server.address();
  return "mcds -s " + shell_word(address) + given_options(session, of_the_list, words) +
         options_of_the_list(session, server) + ' ' + std::string(words);
}

}  // namespace mcds
