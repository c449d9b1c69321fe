#include "common/placement/guess.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "common/base/errors.hpp"
#include "common/placement/profiles/profile.hpp"

namespace mcds {

namespace {

using Predictions = std::vector<std::uint32_t>;  // a server per sighting
using Matches = std::vector<bool>;               // per sighting: it is where it was predicted

std::optional<Predictions> predict(std::string_view profile, const Pool& pool,
                                   const PlacementOptions& options, const std::vector<Sighting>& sightings) {
  try {
    const auto placement = make_placement(profile, pool, options);
    Predictions predictions;
    predictions.reserve(sightings.size());
    for (const auto& sighting : sightings) {
      predictions.push_back(static_cast<std::uint32_t>(placement->server_of(sighting.key)));
    }
    return predictions;
  } catch (const InvalidInput&) {
    return std::nullopt;
  }
}

struct Group {
  Candidate candidate;
  Matches matches;
};

Group group_of(const Predictions& predictions, const std::vector<Sighting>& sightings) {
  Group group;
  for (std::size_t i = 0; i < sightings.size(); ++i) {
    const auto& servers = sightings[i].servers;
    const bool match = std::find(servers.begin(), servers.end(), predictions[i]) != servers.end();
    group.matches.push_back(match);
    group.candidate.explained += match ? 1 : 0;
  }
  return group;
}

// After how many keys `other` is behind `best` and stays so.
std::optional<std::size_t> keys_until_behind(const Matches& best, const Matches& other) {
  std::ptrdiff_t lead = 0;
  std::optional<std::size_t> since;
  for (std::size_t i = 0; i < best.size(); ++i) {
    lead += static_cast<std::ptrdiff_t>(best[i]) - static_cast<std::ptrdiff_t>(other[i]);
    if (lead <= 0) since.reset();
    if (lead > 0 && !since) since = i + 1;
  }
  return since;
}

// Whether profiles that few keys could not tell apart place others alike: then more of them would not help.
bool place_alike(const std::vector<std::string_view>& profiles, const Pool& pool,
                 const PlacementOptions& options) {
  constexpr int enough = 200;
  std::vector<Sighting> others;
  for (int i = 0; i < enough; ++i) others.push_back({options.key_prefix + "key:" + std::to_string(i), {}});
  const auto first = predict(profiles.front(), pool, options, others);
  return std::all_of(profiles.begin() + 1, profiles.end(), [&](std::string_view profile) {
    return predict(profile, pool, options, others) == first;
  });
}

void tell_apart(std::vector<Group>& groups, bool best_is_one) {
  std::optional<std::size_t> all = best_is_one ? std::optional<std::size_t>(0) : std::nullopt;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const auto needed = keys_until_behind(groups.front().matches, groups[i].matches);
    groups[i].candidate.keys_needed = needed;
    all = all && needed ? std::optional(std::max(*all, *needed)) : std::nullopt;
  }
  groups.front().candidate.keys_needed = all;
}

}  // namespace

std::vector<Candidate> guess_profiles(const Pool& pool, const PlacementOptions& options,
                                      const std::vector<Sighting>& sightings) {
  if (pool.size() < 2)
    throw InvalidInput("with one server every client puts every key there; name the whole pool");
  std::map<Predictions, std::size_t> known;
  std::vector<Group> groups;
  for (const auto& profile : all_profiles()) {
    auto predictions = predict(profile.name, pool, options, sightings);
    if (!predictions) continue;
    const auto [at, is_new] = known.emplace(std::move(*predictions), groups.size());
    if (is_new) groups.push_back(group_of(at->first, sightings));
    groups[at->second].candidate.profiles.push_back(profile.name);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.candidate.explained > b.candidate.explained;
  });
  if (!groups.empty()) tell_apart(groups, place_alike(groups.front().candidate.profiles, pool, options));
  std::vector<Candidate> candidates;
  for (auto& group : groups) candidates.push_back(std::move(group.candidate));
  return candidates;
}

}  // namespace mcds
