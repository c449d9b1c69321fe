
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"
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

// The common name of a client, and the profile of its default settings.
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
  if (std::string suggestion = did_you_mean(name, known); !suggestion.empty()) return suggestion;
  std::string containing;  // such as those of a language
  for (std::size_t i = 0, count = 0; i < known.size() && name.size() > 2 && count < 3; ++i) {
    if (known[i].find(name) != std::string::npos) containing += (count++ == 0 ? "" : ", ") + known[i];
  }
  return containing.empty() ? "; see mcds where --profiles"
                            : "; mcds where --profiles lists " + containing + " and others";
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
  // Do not use all_profiles(): building that list takes a quarter of a cold start.
  for (const auto family : every_family) {
    for (const auto& profile : family()) {
      if (profile.name == name) return profile;
    }
  }
  throw InvalidInput("no profile '" + std::string(name) + '\'' + advice_for(name));
}

// Parameters: NAME:PARAMETER=VALUE:…
namespace {

// Applies the value to the rule. Returns false if the value is invalid.
using Apply = bool (*)(std::string_view value, Rule& rule, PlacementOptions& options);

bool take_number(std::string_view value, std::size_t most, std::size_t& number) {
  const auto parsed = parse_u64(value);
  if (!parsed || *parsed == 0 || *parsed > most) return false;
  number = static_cast<std::size_t>(*parsed);
  return true;
}

template <char first>
bool names_hashes(const Rule& rule) {
  return rule.named_hashes != nullptr && rule.named_hashes->parameter[0] == first;
}

bool take_hash(std::string_view value, Rule& rule, PlacementOptions&) {
  for (const NamedHash& named : rule.named_hashes->hashes) {
    if (named.name != value) continue;
    rule.hash = named.hash;
    if (named.points != nullptr) rule.points = named.points;
    return true;
  }
  return false;
}

bool take_buckets(std::string_view value, Rule&, PlacementOptions& options) {
  options.buckets.clear();
  for (bool more = true; more;) {
    const auto slash = std::min(value.find('/'), value.size());
    const auto server = parse_u64(value.substr(0, slash));
    if (!server || *server > 100'000) return false;
    options.buckets.push_back(static_cast<std::size_t>(*server));
    more = slash < value.size();
    value.remove_prefix(std::min(slash + 1, value.size()));
  }
  return true;
}

struct Parameter {
  std::string_view name;
  const char* values;
  bool (*is_taken)(const Rule& rule);
  Apply apply;
};

constexpr Parameter parameters[] = {
    {"copies", "a number from 1 to 1000",
     [](const Rule& rule) { return rule.replication != Replication::none && rule.copies != every_server; },
     [](std::string_view value, Rule& rule, PlacementOptions&) {
       return take_number(value, 1000, rule.copies);
     }},
    {"points", "a number from 1 to 10000", [](const Rule& rule) { return rule.takes_points; },
     [](std::string_view value, Rule& rule, PlacementOptions&) {
       return take_number(value, 10000, rule.points_per_weight);
     }},
    {"tag", "two characters", [](const Rule& rule) { return rule.takes_tag; },
     [](std::string_view value, Rule&, PlacementOptions& options) {
       options.hash_tag = value;
       return value.size() == 2;
     }},
    {"salt", "some text", [](const Rule& rule) { return rule.takes_salt; },
     [](std::string_view value, Rule&, PlacementOptions& options) {
       options.salt = value;
       return !value.empty();
     }},
    {"seed", "some text", [](const Rule& rule) { return rule.seeded != nullptr; },
     [](std::string_view value, Rule& rule, PlacementOptions&) {
       rule.seed = key_hash::xxh3(value);
       return !value.empty();
     }},
    {"hash", "md5, sha1, sha256, sha384 or sha512", names_hashes<'h'>, take_hash},
    {"algorithm", "md5, sha1, sha256, sha384 or sha512", names_hashes<'a'>, take_hash},
    {"user", "a name", [](const Rule& rule) { return rule.identity == identity::bmemcached; },
     [](std::string_view value, Rule&, PlacementOptions& options) {
       options.resolver.login =
           std::string(value) + '_' + (options.password.empty() ? "None" : options.password);
       return !value.empty();
     }},
    {"buckets", "places in the list of servers from 0 on, with slashes between them: 0/1/2/1",
     [](const Rule& rule) { return rule.distribution == Distribution::mask; }, take_buckets},
    {"eject", "yes or no", [](const Rule& rule) { return rule.ejects; },
     [](std::string_view value, Rule& rule, PlacementOptions&) {
       if (value == "yes") rule.failover = Failover::rebuilt;
       if (value == "no" && rule.failover == Failover::rebuilt) rule.failover = Failover::lost;
       return value == "yes" || value == "no";
     }},
};

const Parameter& parameter_of(const Profile& profile, std::string_view name) {
  std::string known;
  for (const Parameter& parameter : parameters) {
    if (!parameter.is_taken(profile.rule)) continue;
    if (parameter.name == name) return parameter;
    known += (known.empty() ? "" : ", ") + std::string(parameter.name) + '=';
  }
  throw InvalidInput("the profile '" + std::string(profile.name) + "' takes no parameter '" +
                     std::string(name) + "'; it takes " + (known.empty() ? "none" : known));
}

}  // namespace

Rule rule_with_parameters(const Profile& profile, std::string_view text, PlacementOptions& options) {
  Rule rule = profile.rule;
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':')) {
    text.remove_prefix(colon + 1);
    const std::string_view assignment = text.substr(0, text.find(':'));
    const auto equals = assignment.find('=');
    const Parameter& parameter = parameter_of(profile, assignment.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : assignment.substr(equals + 1);
    if (!parameter.apply(value, rule, options))
      throw InvalidInput(std::string(parameter.name) + "= must be " + parameter.values);
  }
  return rule;
}

}  // namespace mcds
