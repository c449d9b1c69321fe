// The config: INI, read by libinih.
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

#include "tools/cli/access.hpp"
#include "tools/cli/input.hpp"

namespace mcds {

struct Config {
  std::optional<std::string> pool, timeout, connect_timeout, protocol, output;
  std::optional<std::string> doctor_accept;  // [doctor] accept
  PoolConfig defaults;                       // keys before any section
  std::map<std::string, PoolConfig> pools;
  std::map<std::pair<std::string, std::string>, std::string> files;  // the file that set a section's key last
  std::vector<std::pair<std::string, FileAbout>> read;               // all files, as they were opened
};

// A setting, with its names in the config, on the command line and in the environment.
struct Setting {
  using Text = std::optional<std::string>;
  const char* name;
  const char* option;     // empty: none
  const char* variables;  // separated by spaces
  // A setting of any section, or one that is allowed only before the sections.
  std::variant<Text PoolConfig::*, Text AccessSettings::*, Text Config::*> member;
  const char* otherwise = nullptr;  // the default
  const char* words = nullptr;      // the only values allowed in the config, such as "on|off"
};
std::span<const Setting> all_settings();

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
