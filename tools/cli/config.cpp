#include "tools/cli/config.hpp"

#include <ini.h>
#include <unistd.h>

#include "common/base/text.hpp"
#include "common/base/units.hpp"
#include "common/operations/doctor/checks.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_config_size = std::size_t{1} << 20;
constexpr std::string_view doctor_section = "doctor";

struct Reading {
  Config& config;
  const std::string& file;
  std::string problem = {};  // message for the first bad line
};

// Returns `auto, classic, meta or binary`.
std::string one_of(std::string_view words) {
  std::string text = joined(split(words, '|'), ", ");
  return text.replace(text.rfind(", "), 2, " or ");
}

// Checks a list of `check` or `check@server`, separated by commas. Throws InvalidInput.
void check_accepted(const std::string& list) {
  for (std::string_view word : split(list, ',')) {
    word = trimmed(word);
    word = word.substr(0, word.find_first_of("@ "));
    if (const std::string wrong = doctor::no_check(word); !wrong.empty())
      throw InvalidInput("accept: " + wrong);
  }
}

// Checks a value where it is set, not only where it would be used. Throws InvalidInput.
void check_value(const Setting& setting, const std::string& value) {
  const std::string name(setting.name);
  if (name == "servers") static_cast<void>(parse_pool(value));
  if (name == "timeout" || name == "connect_timeout" || name == "longest_lock_ttl") {
    if (parse_duration(value, name) <= Duration::zero()) throw InvalidInput(name + " must be longer than 0");
  }
  if (name == "profile") static_cast<void>(profile_named(value));
  if (name == "namespace") check_key_prefix(value);
  if (name == "copies" && parse_u64(value).value_or(0) == 0)
    throw InvalidInput("copies: write a whole number, at least 1");
  if (name == "tls_name") check_certificate_name(value);
  if (name == "accept") check_accepted(value);
  if (setting.words == nullptr) return;
  const auto all = split(setting.words, '|');
  if (std::ranges::find(all, value) == all.end())
    throw InvalidInput(name + ": write " + one_of(setting.words));
}

bool is_known(std::string_view section) {
  return section == doctor_section || (section.starts_with("pool ") && section.size() > 5);
}

std::string unknown_section(const std::string& section) {
  return "unknown section " + (is_utf8(section) ? in_quotes('[' + section + ']') : "[…]") +
         "; write [pool NAME] or [doctor]";
}

// Finds unknown sections without keys: libinih reports a section only with its first key.
void check_sections(const std::string& text, const std::string& file) {
  const std::vector<std::string_view> lines = split(text, '\n');
  for (std::size_t number = 0; number < lines.size(); ++number) {
    const std::string_view line = lines[number];
    const std::size_t open = line.find_first_not_of(" \t\r");
    const std::size_t close = line.find(']');
    if (open < line.size() && line[open] == '[' && close < line.size() && close > open) {
      const std::string section(line.substr(open + 1, close - open - 1));
      if (!is_known(section))
        throw Failure(ErrorCode::configuration,
                      file + ':' + std::to_string(number + 1) + ": " + unknown_section(section));
    }
  }
}

bool may_stand_in(std::string_view section, const Setting& setting) {
  using enum Setting::Kind;
  if (section == doctor_section || setting.kind == doctor)
    return section == doctor_section && setting.kind == doctor;
  return section.empty() || setting.kind != general;
}

// Throws InvalidInput unless the section may have such a setting.
void check_line(const std::string& section, const std::string& name, const std::string& value) {
  if (!section.empty() && !is_known(section)) throw InvalidInput(unknown_section(section));
  std::vector<std::string> names;
  for (const Setting& setting : all_settings) {
    if (!may_stand_in(section, setting)) continue;
    if (name == setting.name) return check_value(setting, value);
    names.emplace_back(setting.name);
  }
  throw InvalidInput("unknown key " + in_quotes(name) + did_you_mean(name, names));
}

std::string copy_count_text(const std::string& section) {
  return section.empty() ? "the part before any section" : '[' + section + ']';
}

// Throws Failure(configuration) if a list of servers would be combined with a login or certificate of an
// earlier file. Credentials are sent only to the list of their own file.
void expect_own_login(const Config& config, const std::string& file) {
  for (const auto& [section, values] : config.sections) {
    for (const char* list : {"servers", "servers_from"}) {
      const auto listed = values.find(list);
      if (listed == values.end() || listed->second.file != file) continue;
      for (const char* name : {"user", "password_file", "tls_cert", "tls_key", "tls_name"}) {
        const auto set = values.find(name);
        if (set == values.end() || set->second.file == file) continue;
        throw Failure(ErrorCode::configuration, file + ": " + copy_count_text(section) + " sets its own " +
                                                    list + ", but " + name + " comes from " +
                                                    set->second.file + " and belongs to other servers; set " +
                                                    name + " in " + file + " too, or rename the section");
      }
    }
  }
}

// Reads one line for libinih; returns 0 if the line is wrong.
int on_line(void* user, const char* section, const char* name, const char* value) {
  auto& reading = *static_cast<Reading*>(user);
  try {
    if (!is_utf8(section) || !is_utf8(name)) throw InvalidInput("not UTF-8");
    check_line(section, name, value);
    Config::Value& last = reading.config.sections[section][name];
    if (last.file == reading.file)
      throw InvalidInput(std::string(name) + " is set twice in " + copy_count_text(section));
    last = {value, reading.file};
    return 1;
  } catch (const Failure& failure) {
    if (reading.problem.empty()) reading.problem = failure.what();
    return 0;
  }
}

}  // namespace

void read_config(const std::string& text, const std::string& file, Config& into) {
  if (text.find('\0') != std::string::npos)
    throw Failure(ErrorCode::configuration, file + " has a NUL byte; is it the right file?");
  Reading reading{into, file};
  const int line = ini_parse_string(text.c_str(), on_line, &reading);
  if (line == 0) {
    check_sections(text, file);
    return expect_own_login(into, file);
  }
  throw Failure(ErrorCode::configuration,
                file + ':' + std::to_string(line) + ": " +
                    (reading.problem.empty() ? "neither 'key = value' nor [section]" : reading.problem));
}

namespace {

// Returns true if the file exists. A link that leads nowhere, or a file that cannot be examined, counts as
// existing: it is no reason to continue with other servers.
bool is_there(const std::string& file) {
  struct stat about {};
  return lstat(file.c_str(), &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

std::vector<std::string> config_paths(const std::optional<std::string>& path) {
  if (path) return {*path};
  std::vector<std::string> paths;
  for (const std::string& file :
       {std::string("/etc/mcds.conf"), users_file("XDG_CONFIG_HOME", "/.config", "/mcds/mcds.conf")}) {
    if (!file.empty() && is_there(file)) paths.push_back(file);
  }
  return paths;
}

}  // namespace

const Config::Value* Config::find(std::string_view section, const SettingName& name) const {
  const auto values = sections.find(section);
  if (values == sections.end()) return nullptr;
  const auto found = values->second.find(name.setting.name);
  return found == values->second.end() ? nullptr : &found->second;
}

std::optional<std::string> Config::text(std::string_view section, const SettingName& name) const {
  const Value* value = find(section, name);
  return value == nullptr ? std::nullopt : std::optional(value->text);
}

Config load_config(const std::optional<std::string>& path) {
  Config config;
  for (const std::string& file : config_paths(path)) {
    const SmallFile read = small_file(file, max_config_size);
    read_config(read.bytes, file, config);
    config.read.emplace_back(file, read.about);
  }
  return config;
}

void check_certificate_name(const std::string& name) {
  if (is_address(name) || is_host_name(name)) return;
  throw InvalidInput("the name " + in_quotes(name) +
                     " of --tls-name or tls_name is neither a host name nor an address");
}

}  // namespace mcds
