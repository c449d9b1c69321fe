#include "tools/cli/settings.hpp"

#include "common/base/text.hpp"
#include "tools/cli/parse.hpp"

namespace mcds {

Settings::Settings(const GlobalOptions& options, const Config& config) {
  if (options.servers && options.servers_from)
    throw InvalidInput("--servers and --servers-from cannot be combined");
  GlobalOptions copy = options;
  std::vector<std::pair<OptionSpec, std::string>> given;
  for (const OptionSpec& option : global_options(copy)) {
    if (Text text = given_value(option.target)) given.emplace_back(option, std::move(*text));
  }
  std::string section;  // of the pool that is used
  auto current = values_.begin();
  const auto add_section = [&](const Setting& setting, const std::string& name, Origin source) {
    if (const Config::Value* found = config.find(name, setting))
      current->push_back({found->text, source, found->file + (name.empty() ? "" : " [" + name + ']')});
  };
  for (const Setting& setting : all_settings) {
    for (const auto& [option, text] : given) {
      if (option.is_called(setting.option)) current->push_back({text, Origin::options, setting.option});
    }
    if (options.pool && !section.empty()) add_section(setting, section, Origin::named_pool);
    for (const std::string_view name : split(setting.variables, ' ')) {
      if (const Text text = environment(std::string(name)))
        current->push_back({text, Origin::environment, std::string(name)});
    }
    if (!options.pool && !section.empty()) add_section(setting, section, Origin::configured_pool);
    add_section(setting, "", Origin::defaults);
    const std::vector<Value>& said = *current++;
    if (setting.name != "pool" || said.empty()) continue;
    section = "pool " + *said.front().text;
    if (!config.sections.contains(section))
      throw Failure(ErrorCode::configuration, "the configuration file has no [" + section + ']');
  }
  const Value servers = value("servers"), servers_from = value("servers_from");
  list_ = std::min(servers.source, servers_from.source);
  if (list_ == Origin::builtin || servers_from.source != list_) return;
  if (servers.source == list_)
    throw Failure(ErrorCode::configuration, "servers and servers_from of one pool cannot be combined");
  servers_from_ = servers_from.text;
}

bool Settings::asks_network() const {
  const std::string source = servers_from_.value_or("");
  return source.starts_with("dns:") || source.starts_with("dnssrv:") || source.starts_with("elasticache:");
}

Settings::Text Settings::said_by(Origin source, const SettingName& name) const {
  const auto found = std::ranges::find(values(name.setting), source, &Value::source);
  return found == values(name.setting).end() ? std::nullopt : found->text;
}

bool Settings::counts(Origin source, const SettingName& name, Origin list) const {
  if (name.setting.kind != Setting::Kind::access) return true;
  // These can only make connections safer.
  const std::string_view word = name.setting.name;
  const bool protects = word == "tls" || word == "tls_ca" || word == "tls_crl";
  // A pool that names no servers uses the list before any section.
  const bool fallen_back = list == Origin::defaults || list == Origin::builtin;
  const bool of_config = fallen_back || list == Origin::named_pool || list == Origin::configured_pool;
  const bool environment_pool = said_by(Origin::environment, "pool").has_value();
  switch (source) {
    case Origin::options: return true;
    case Origin::environment:
      return protects || list == Origin::environment ||
             (list == Origin::configured_pool && environment_pool) ||
             (!environment_pool && !said_by(Origin::environment, "servers"));
    case Origin::named_pool:
    case Origin::configured_pool: return list == source || fallen_back;
    case Origin::defaults:
      return protects || fallen_back ||
             (of_config && !said_by(Origin::defaults, "servers") &&
              !said_by(Origin::defaults, "servers_from"));
    case Origin::builtin: return false;
  }
  return false;
}

Settings::Value Settings::value(const SettingName& name, Origin list, Origin without) const {
  for (const Value& value : values(name.setting)) {
    if (value.source != without && counts(value.source, name, list)) return value;
  }
  // A source of servers may determine these two itself.
  const bool of_source = servers_from_ && (name.setting.name == "profile" || name.setting.name == "copies");
  if (name.setting.otherwise == nullptr || of_source) return {};
  return {name.setting.otherwise, Origin::builtin, "default"};
}

bool Settings::beside(Origin login, Origin list) const {
  // A pool's login applies to its own list only.
  return login == list || (login != Origin::options && login != Origin::environment);
}

}  // namespace mcds
