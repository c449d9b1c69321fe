#include "tools/cli/config.hpp"

#include <ini.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/suggest.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"
#include "common/operations/doctor/checks.hpp"
#include "common/placement/pools/pool.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/here.hpp"
#include "tools/cli/input.hpp"

namespace mcds {

namespace {

constexpr std::size_t largest_config = std::size_t{1} << 20;
constexpr std::string_view doctor_section = "doctor";

using Setting = std::pair<const char*, std::optional<std::string>*>;

std::vector<Setting> settings_of(PoolConfig& pool) {
  return {{"servers", &pool.servers},
          {"servers_from", &pool.servers_from},
          {"profile", &pool.profile},
          {"namespace", &pool.key_prefix},
          {"copies", &pool.copies},
          {"longest_lock_ttl", &pool.longest_lock_ttl},
          {"tls", &pool.access.tls},
          {"tls_ca", &pool.access.tls_ca},
          {"tls_crl", &pool.access.tls_crl},
          {"tls_name", &pool.access.tls_name},
          {"tls_cert", &pool.access.tls_cert},
          {"tls_key", &pool.access.tls_key},
          {"tls_key_password_file", &pool.access.tls_key_password_file},
          {"tls_insecure", &pool.access.tls_insecure},
          {"user", &pool.access.user},
          {"password_file", &pool.access.password_file},
          {"auth", &pool.access.auth},
          {"plain_login", &pool.access.plain_login}};
}

std::vector<Setting> settings_of(Config& config) {
  auto settings = settings_of(config.defaults);
  settings.insert(settings.end(), {{"pool", &config.pool},
                                   {"timeout", &config.timeout},
                                   {"connect_timeout", &config.connect_timeout},
                                   {"protocol", &config.protocol},
                                   {"output", &config.output}});
  return settings;
}

struct Reading {
  Config& config;
  std::string problem;  // of the first line that is wrong
};

// `check` or `check@server`, with commas between.
void check_accepted(const std::string& list) {
  for (std::string_view word : split(list, ',')) {
    while (word.starts_with(' ')) word.remove_prefix(1);
    word = word.substr(0, word.find_first_of("@ "));
    if (const std::string wrong = doctor::no_check(word); !wrong.empty())
      throw InvalidInput("accept: " + wrong);
  }
}

// Wrong values are reported where they are set, not where they would be used.
bool is_valid(const std::string& name, const char* value, std::string& problem) {
  try {
    if (name == "servers") static_cast<void>(parse_pool(value));
    if (name == "timeout" || name == "connect_timeout" || name == "longest_lock_ttl") {
      if (parse_duration(value, name) <= Duration::zero())
        throw InvalidInput(name + " must be longer than 0");
    }
    if (name == "profile") static_cast<void>(profile_named(value));
    if (name == "namespace") check_key_prefix(value);
    if (name == "copies" && parse_u64(value).value_or(0) == 0)
      throw InvalidInput("copies: write a whole number, at least 1");
    const std::string word = value;
    if ((name == "tls" || name == "tls_insecure") && word != "on" && word != "off")
      throw InvalidInput(name + ": write on or off");
    if (name == "plain_login" && word != "yes" && word != "no")
      throw InvalidInput("plain_login: write yes or no");
    if (name == "tls_name") check_certificate_name(word);
    if (name == "auth" && word != "ascii" && word != "user-key" && word != "sasl")
      throw InvalidInput("auth: write ascii, user-key or sasl");
    if (name == "accept") check_accepted(word);
    if (name == "protocol" && value != std::string("auto") && value != std::string("classic") &&
        value != std::string("meta") && value != std::string("binary")) {
      throw InvalidInput("protocol: write auto, classic, meta or binary");
    }
    if (name == "output" && word != "json" && word != "value" && word != "text")
      throw InvalidInput("output: write json, value or text");
  } catch (const Failure& failure) {
    if (problem.empty()) problem = failure.what();
    return false;
  }
  return true;
}

bool set(const std::vector<Setting>& settings, const std::string& name, const char* value,
         std::string& problem) {
  std::vector<std::string> names;
  for (const auto& [known, target] : settings) {
    if (name == known) {
      *target = value;
      return is_valid(name, value, problem);
    }
    names.emplace_back(known);
  }
  if (problem.empty()) problem = "unknown key " + json_quote(name) + did_you_mean(name, names);
  return false;
}

// The pool of a section; nullopt if it is not a pool.
std::optional<std::string> pool_name(const std::string& section) {
  if (section.starts_with("pool ") && section.size() > 5) return section.substr(5);
  return std::nullopt;
}

std::string unknown_section(const std::string& section) {
  return "unknown section " + (is_utf8(section) ? json_quote('[' + section + ']') : "[…]") +
         "; write [pool NAME] or [doctor]";
}

// libinih reports a section only with its first key: a section without keys is found here.
void check_sections(const std::string& text, const std::string& file) {
  std::size_t number = 0;
  for (std::size_t from = 0; from < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view line = std::string_view(text).substr(from, end - from);
    const std::size_t open = line.find_first_not_of(" \t\r");
    const std::size_t close = line.find(']');
    if (open < line.size() && line[open] == '[' && close < line.size() && close > open) {
      const std::string section(line.substr(open + 1, close - open - 1));
      if (section != doctor_section && !pool_name(section))
        throw Failure(ErrorCode::configuration,
                      file + ':' + std::to_string(number + 1) + ": " + unknown_section(section));
    }
    from = end + 1;
  }
}

// libinih's callback: 0 marks the line as wrong.
int on_line(void* user, const char* section, const char* name, const char* value) {
  auto& reading = *static_cast<Reading*>(user);
  const std::string where = section;
  if (!is_utf8(where) || !is_utf8(name)) {
    if (reading.problem.empty()) reading.problem = "not UTF-8";
    return 0;
  }
  if (where.empty()) return set(settings_of(reading.config), name, value, reading.problem) ? 1 : 0;
  if (where == doctor_section)
    return set({{"accept", &reading.config.doctor_accept}}, name, value, reading.problem) ? 1 : 0;
  const auto pool = pool_name(where);
  if (pool) return set(settings_of(reading.config.pools[*pool]), name, value, reading.problem) ? 1 : 0;
  if (reading.problem.empty()) reading.problem = unknown_section(where);
  return 0;
}

}  // namespace

void read_config(const std::string& text, const std::string& file, Config& into) {
  if (text.find('\0') != std::string::npos)
    throw Failure(ErrorCode::configuration, file + " has a NUL byte; is it the right file?");
  Reading reading{into, {}};
  const int line = ini_parse_string(text.c_str(), on_line, &reading);
  if (line == 0) return check_sections(text, file);
  throw Failure(ErrorCode::configuration,
                file + ':' + std::to_string(line) + ": " +
                    (reading.problem.empty() ? "neither `key = value` nor [section]" : reading.problem));
}

namespace {

std::vector<std::string> config_paths(const std::optional<std::string>& path) {
  if (path) return {*path};
  std::vector<std::string> paths;
  for (const std::string& file :
       {std::string("/etc/mcds.conf"), users_file("XDG_CONFIG_HOME", "/.config", "/mcds/mcds.conf")}) {
    if (!file.empty() && access(file.c_str(), F_OK) == 0) paths.push_back(file);
  }
  return paths;
}

}  // namespace

Config load_config(const std::optional<std::string>& path) {
  Config config;
  for (const std::string& file : config_paths(path))
    read_config(configuration_bytes(file, largest_config), file, config);
  return config;
}

std::vector<ConfigFile> load_config_files(const std::optional<std::string>& path) {
  std::vector<ConfigFile> files;
  for (const std::string& file : config_paths(path))
    read_config(configuration_bytes(file, largest_config), file,
                files.emplace_back(ConfigFile{file, {}}).config);
  return files;
}

void check_certificate_name(const std::string& name) {
  if (is_address(name) || is_host_name(name)) return;
  throw InvalidInput("the name " + json_quote(name) +
                     " of --tls-name or tls_name is neither a host name nor an address");
}

}  // namespace mcds
