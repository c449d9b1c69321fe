#include "tools/cli/config.hpp"

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
constexpr std::string_view blanks = " \t\r";

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

bool may_stand_in(std::string_view section, const Setting& setting) {
  using enum Setting::Kind;
  if (section == doctor_section || setting.kind == doctor)
    return section == doctor_section && setting.kind == doctor;
  return section.empty() || setting.kind != general;
}

// Throws InvalidInput unless the section, a known one, may have such a setting.
void check_line(const std::string& section, const std::string& name, const std::string& value) {
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

// Returns the line without blanks around it, and without a comment: what follows a semicolon after a blank.
std::string_view without_comment(std::string_view line) {
  std::size_t end = line.find(';');
  while (end < line.size() && end > 0 && line[end - 1] != ' ' && line[end - 1] != '\t')
    end = line.find(';', end + 1);
  return trimmed(line.substr(0, end), blanks);
}

// Reads a section, a setting of the current `section`, or an empty line. Throws InvalidInput.
void read_line(std::string_view line, std::string& section, const std::string& file, Config& into) {
  line = without_comment(line);
  if (line.empty() || line.starts_with('#')) return;
  const bool is_section = line.starts_with('[') && line.find(']') == line.size() - 1;
  const std::size_t end = is_section ? line.size() : line.find_first_of("=:");
  if (end == std::string_view::npos || (line.starts_with('[') && !is_section))
    throw InvalidInput("neither 'key = value' nor [section]");
  if (!is_utf8(line.substr(0, end))) throw InvalidInput("not UTF-8");
  if (is_section) {
    section = line.substr(1, line.size() - 2);
    if (is_known(section)) return;
    throw InvalidInput("unknown section " + in_quotes(line) + "; write [pool NAME] or [doctor]");
  }
  const std::string name(trimmed(line.substr(0, end), blanks)), value(trimmed(line.substr(end + 1), blanks));
  check_line(section, name, value);
  Config::Value& last = into.sections[section][name];
  if (last.file == file) throw InvalidInput(name + " is set twice in " + copy_count_text(section));
  last = {value, file};
}

}  // namespace

void read_config(const std::string& text, const std::string& file, Config& into) {
  if (text.find('\0') != std::string::npos)
    throw Failure(ErrorCode::configuration, file + " has a NUL byte; is it the right file?");
  std::string_view rest = without_byte_order_mark(text);
  std::string section;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const auto read = attempt([&] { read_line(take_line(rest), section, file, into); });
    if (read.failure())
      throw Failure(ErrorCode::configuration,
                    file + ':' + std::to_string(number) + ": " + read.failure()->what());
  }
  expect_own_login(into, file);
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
