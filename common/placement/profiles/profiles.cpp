#include <algorithm>
#include <array>

#include "common/base/errors.hpp"
#include "common/base/suggest.hpp"
#include "common/placement/profiles/families.hpp"

namespace mcds {

namespace {

constexpr std::array every_family{families::libmemcached, families::scripting, families::compiled,
                                  families::proxies};

std::vector<Profile> sorted_by_name() {
  std::vector<Profile> profiles;
  for (const auto family : every_family) profiles.insert(profiles.end(), family().begin(), family().end());
  std::ranges::sort(profiles, [](const Profile& a, const Profile& b) { return a.name < b.name; });
  return profiles;
}

// The common name of a client, and how it places keys by default.
constexpr Alias aliases[] = {
    {"apr_memcache", "apr-memcache"},
    {"aws-elasticache-java", "aws-elasticache-java-default"},
    {"bmemcached", "bmemcached-replicating"},
    {"cache-memcached", "perl-cache-memcached"},
    {"cache-memcached-fast", "perl-cache-memcached-fast"},
    {"django", "pymemcache-rendezvous"},
    {"enyim", "enyim-default"},
    {"enyimcore", "enyimcore-default"},
    {"folsom", "folsom-ketama"},
    {"laravel", "php-memcached-default"},
    {"libmemcached", "libmemcached-default"},
    {"loki", "thanos-jump"},
    {"mcrouter", "mcrouter-ch3"},
    {"memcache-plus", "node-memcache-plus"},
    {"memcached-proxy", "memcached-proxy-default"},
    {"mimir", "thanos-jump"},
    {"nginx", "nginx-hash"},
    {"nutcracker", "twemproxy-default"},
    {"php-memcache", "php-memcache-default"},
    {"php-memcached", "php-memcached-default"},
    {"pylibmc", "pylibmc-default"},
    {"pymemcache", "pymemcache-rendezvous"},
    {"rainycape-memcache", "gomemcache"},
    {"rails", "dalli"},
    {"spymemcached", "spymemcached-default"},
    {"symfony", "php-memcached-ketama-compatible"},
    {"thanos", "thanos-jump"},
    {"twemproxy", "twemproxy-default"},
    {"uhashring", "uhashring-default"},
    {"whalin", "java-memcached-whalin-native"},
    {"xmemcached", "xmemcached-default"},
};

std::string advice_for(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& alias : aliases) known.emplace_back(alias.name);
  for (const auto& profile : all_profiles()) known.emplace_back(profile.name);
  const std::string suggestion = did_you_mean(name, known);
  return suggestion.empty() ? "; see mcds where --profiles" : suggestion;
}

}  // namespace

std::span<const Profile> all_profiles() {
  static const std::vector<Profile> profiles = sorted_by_name();
  return profiles;
}

std::span<const Alias> all_aliases() {
  return aliases;
}

const Profile& profile_named(std::string_view name) {
  name = name.substr(0, name.find(':'));
  for (const auto& alias : aliases) {
    if (alias.name == name) return profile_named(alias.profile);
  }
  // Not in all_profiles(): making that list would be a quarter of a cold start.
  for (const auto family : every_family) {
    for (const auto& profile : family()) {
      if (profile.name == name) return profile;
    }
  }
  throw InvalidInput("no profile '" + std::string(name) + '\'' + advice_for(name));
}

}  // namespace mcds
