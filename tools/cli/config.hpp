// The config: INI. libinih, as Debian builds it, would cut lines after 199 bytes and names after 49.
//
//   pool = main                      ; defaults, before any section
//   timeout = 500ms
//   [doctor]
//   accept = evicting, drift@10.0.0.3
//   [pool main]
//   servers = 10.0.0.1,10.0.0.2      ; or servers_from = nutcracker:/etc/nutcracker.yml#main
//   profile = php-memcached
//   namespace = app:
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/input.hpp"

namespace mcds {

// A setting, with its names in the config, on the command line and in the environment.
struct Setting {
  enum class Kind {
    general,  // in the config only before the sections
    pool,     // also in a section of a pool
    access,   // likewise; applies only to some lists of servers, see settings.hpp
    doctor,   // only in the section of the doctor
  };
  std::string_view name;
  const char* option;     // empty: none
  const char* variables;  // separated by spaces
  Kind kind;
  const char* otherwise = nullptr;  // the default
  const char* words = nullptr;      // the only values allowed in the config, such as "on|off"
};

// The settings in the order in which `mcds config` prints them.
inline constexpr std::array<Setting, 24> all_settings = [] {
  using enum Setting::Kind;
  return std::array<Setting, 24>{{
      {"pool", "--pool", "MCDS_POOL", general},
      {"servers", "--servers", "MCDS_SERVERS MEMCACHED_SERVERS", pool, "127.0.0.1:11211"},
      {"servers_from", "--servers-from", "", pool},
      {"profile", "--as", "MCDS_PROFILE", pool, "ketama"},
      {"namespace", "--namespace", "MCDS_NAMESPACE", pool, ""},
      {"copies", "--copies", "", pool, "1"},
      {"longest_lock_ttl", "", "", pool, "10m"},
      {"timeout", "--timeout", "", general, "1s"},
      {"connect_timeout", "--connect-timeout", "", general, "500ms"},
      {"protocol", "--protocol", "", general, "auto", "auto|classic|meta|binary"},
      {"output", "--output", "MCDS_OUTPUT", general, "json", "json|value|text"},
      {"tls", "--tls", "", access, "off", "on|off"},
      {"tls_ca", "--tls-ca", "MCDS_TLS_CA", access},
      {"tls_crl", "--tls-crl", "", access},
      {"tls_name", "--tls-name", "", access},
      {"tls_cert", "--tls-cert", "", access},
      {"tls_key", "--tls-key", "", access},
      {"tls_key_password_file", "--tls-key-password-file", "", access},
      {"tls_insecure", "--tls-insecure", "", access, "off", "on|off"},
      {"user", "--user", "MCDS_USER", access},
      {"password_file", "--password-file", "MCDS_PASSWORD_FILE", access},
      {"auth", "--auth", "", access, nullptr, "ascii|user-key|sasl"},
      {"plain_login", "", "", access, "no", "yes|no"},
      {"accept", "", "", doctor},
  }};
}();

// Names a setting of the table. A name that is not in it does not compile.
struct SettingName {
  consteval SettingName(const char* name) : setting(named(name)) {}
  constexpr SettingName(const Setting& setting) : setting(setting) {}
  const Setting& setting;

 private:
  static consteval const Setting& named(std::string_view name) {
    for (const Setting& one : all_settings) {
      if (one.name == name) return one;
    }
    throw "no setting has this name";
  }
};

struct Config {
  struct Value {
    std::string text;
    std::string file;  // the file that set it last
  };
  // The settings of each section, `pool NAME` or `doctor`, by their names; "" is what precedes the sections.
  std::map<std::string, std::map<std::string, Value, std::less<>>, std::less<>> sections;
  std::vector<std::pair<std::string, FileAbout>> read;  // all files, as they were opened

  // Returns the value, or nullptr if the section does not set it.
  const Value* find(std::string_view section, const SettingName& name) const;
  std::optional<std::string> text(std::string_view section, const SettingName& name) const;
};

// Loads the config. With `path`, reads that file alone, which must exist (Failure(cannot_read)). Without it,
// reads /etc/mcds.conf, then $XDG_CONFIG_HOME/mcds/mcds.conf (default $HOME/.config), as far as they exist;
// the later file wins key by key. Throws Failure(configuration) naming file:line for an unknown or misspelt
// word, for a key that one file sets twice, and for a list of servers whose login or certificate is in an
// earlier file.
Config load_config(const std::optional<std::string>& path);

// Adds the settings of one file's text to `into`, as load_config() does; `file` is for messages.
void read_config(const std::string& text, const std::string& file, Config& into);

// Throws InvalidInput if a certificate cannot be checked against `name`: OpenSSL treats an empty name as no
// check at all, and accepts any subdomain for a name with a leading dot.
void check_certificate_name(const std::string& name);

}  // namespace mcds
