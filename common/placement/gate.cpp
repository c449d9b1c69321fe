
#include "common/placement/guess.hpp"

namespace mcds {

namespace {

constexpr std::size_t enough_keys = 12;
constexpr double perhaps_chance = 1e-3, no_chance = 1e-6;

std::string name_of(const Candidate& candidate) {
  return std::string(candidate.profiles.front()) +
         (candidate.prefix.empty() ? "" : " with the prefix '" + candidate.prefix + "'");
}

bool has_one_server(const Pool& pool) {
  return without_repeats(pool).size() < 2;
}

// Counts the keys that a profile explains, and estimates how many it would explain by chance, given how
// unevenly the keys lie on their servers.
class Explained {
 public:
  Explained(const Placement& placement, const std::vector<Sighting>& sightings) {
    const std::size_t servers = placement.pool().size();
    std::vector<double> looked(servers), found(servers);
    for (const Sighting& sighting : sightings) {
      const Owners owners = placement.owners_of(sighting.key);
      const auto& on = sighting.servers;
      matches_.push_back(std::ranges::any_of(on, [&](std::size_t server) { return owners.has(server); }));
      for (std::size_t server = 0; server < servers; ++server) looked[server] += owners.has(server) ? 1 : 0;
      for (const std::size_t server : on) found[server] += 1;
    }
    const auto all = static_cast<double>(sightings.size());
    for (std::size_t server = 0; server < servers; ++server)
      by_luck_ += looked[server] / all * found[server] / all;
  }

  std::size_t count() const { return static_cast<std::size_t>(std::ranges::count(matches_, true)); }
  // Returns whether it explains no more than chance, of all keys or of those that `other` does not explain.
  bool is_luck(const std::vector<bool>* other = nullptr) const {
    std::size_t met = 0, keys = 0;
    for (std::size_t i = 0; i < matches_.size(); ++i) {
      if (other != nullptr && (*other)[i]) continue;
      ++keys;
      met += matches_[i] ? 1 : 0;
    }
    return chance_of(met, keys, by_luck_) > perhaps_chance;
  }

 private:
  std::vector<bool> matches_;
  double by_luck_ = 0;
};

}  // namespace

std::optional<std::string> objection_to(const Placement& placement, const PlacementOptions& options,
                                        const std::vector<Sighting>& sightings) {
  if (sightings.size() < enough_keys || has_one_server(placement.pool())) return std::nullopt;
  const Explained ours(placement, sightings);
  const std::string keys = std::to_string(sightings.size());
  const std::string start = std::string(placement.profile()) + " explains " + std::to_string(ours.count()) +
                            " of " + keys + " keys";
  if (ours.count() == sightings.size()) return std::nullopt;
  const auto candidates = guess_profiles(placement.pool(), options, sightings);
  if (!candidates.empty()) {
    const Candidate& best = candidates.front();
    if (best.lucky < no_chance && best.explained > ours.count() && ours.is_luck(&best.matches))
      return start + ", " + name_of(best) + ' ' + std::to_string(best.explained) + ": give --as " +
             name_of(best);
  }
  if (ours.count() * 20 < sightings.size() * 19 && ours.is_luck())
    return start + ", no more than chance would: give the client that wrote them with --as";
  return std::nullopt;
}

std::string second_client(const Placement& placement, const PlacementOptions& options,
                          const std::vector<Sighting>& strays) {
  if (strays.size() < enough_keys || has_one_server(placement.pool())) return "";
  const auto candidates = guess_profiles(placement.pool(), options, strays);
  if (candidates.empty() || candidates.front().lucky >= no_chance) return "";
  const Candidate& best = candidates.front();
  const auto is_next = [&](const Sighting& stray) {
    return placement.servers_of(stray.key, 2).back() == stray.servers.front();
  };
  const auto next = static_cast<std::size_t>(std::ranges::count_if(strays, is_next));
  return best.explained > next || best.explained * 20 >= strays.size() * 19 ? name_of(best) : "";
}

}  // namespace mcds
