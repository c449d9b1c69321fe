// NAME:PARAMETER=VALUE:…
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/placement/profiles/profile.hpp"

namespace mcds {

namespace {

[[noreturn]] void refuse(const Profile& profile, std::string_view parameter) {
  std::string known;
  if (profile.rule.replication != Replication::none) known = "copies=N";
  if (profile.rule.takes_tag) known += known.empty() ? "tag=XY" : ", tag=XY";
  throw InvalidInput("the profile '" + std::string(profile.name) + "' takes no parameter '" +
                     std::string(parameter) + "'; it takes " + (known.empty() ? "none" : known));
}

}  // namespace

Rule rule_with_parameters(const Profile& profile, std::string_view text, std::string& tag) {
  Rule rule = profile.rule;
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':')) {
    text.remove_prefix(colon + 1);
    const std::string_view parameter = text.substr(0, text.find(':'));
    const auto equals = parameter.find('=');
    const std::string_view name = parameter.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : parameter.substr(equals + 1);
    if (name == "copies" && rule.replication != Replication::none) {
      const auto copies = parse_u64(value);
      if (!copies || *copies == 0 || *copies > 1000)
        throw InvalidInput("copies= must be a number from 1 to 1000");
      rule.copies = static_cast<std::size_t>(*copies);
    } else if (name == "tag" && rule.takes_tag) {
      if (value.size() != 2)
        throw InvalidInput("tag= takes the two characters around the part that is hashed");
      tag = value;
    } else {
      refuse(profile, name);
    }
  }
  return rule;
}

}  // namespace mcds
