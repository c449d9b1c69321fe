// NAME:PARAMETER=VALUE:…
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/placement/profiles/profile.hpp"

namespace mcds {

namespace {

// Makes of the rule what the value says; false: it cannot be that value.
using Apply = bool (*)(std::string_view value, Rule& rule, PlacementOptions& options);

bool take_number(std::string_view value, std::size_t most, std::size_t& number) {
  const auto parsed = parse_u64(value);
  if (!parsed || *parsed == 0 || *parsed > most) return false;
  number = static_cast<std::size_t>(*parsed);
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
     [](const Rule& rule) { return rule.replication != Replication::none; },
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
