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
  std::map<std::pair<std::string, std::string>, std::string> files;  // where a section's key was set last
  std::vector<std::pair<std::string, FileAbout>> read;               // all files, as they were opened
};

// One setting: what the config, the command line and the environment call it.
struct Setting {
  using Text = std::optional<std::string>;
  const char* name;
  const char* option;     // empty: none
  const char* variables;  // separated by spaces
  // Of any section, or before the sections alone.
  std::variant<Text PoolConfig::*, Text AccessSettings::*, Text Config::*> member;
  const char* otherwise = nullptr;  // what counts if nobody sets it
  const char* words = nullptr;      // "on|off": no other values in the config
};
std::span<const Setting> all_settings();

// With `path`: that file alone, which must exist (Failure(cannot_read)). Without: /etc/mcds.conf, then
// $XDG_CONFIG_HOME/mcds/mcds.conf (default $HOME/.config), as far as they exist; the later one wins key by
// key.
// Anything unknown or misspelt, and what one file sets twice, is Failure(configuration) naming file:line.
// So is a list of servers whose login or certificate is in an earlier file.
Config load_config(const std::optional<std::string>& path);

// The same for one file's text; `file` is for messages.
void read_config(const std::string& text, const std::string& file, Config& into);

// Throws InvalidInput for what is no name to check a certificate against: OpenSSL takes an empty one for
// none, and one with a dot in front for any subdomain.
void check_certificate_name(const std::string& name);

}  // namespace mcds
