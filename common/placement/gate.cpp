
#include "common/placement/guess.hpp"

namespace mcds {

namespace {

constexpr std::size_t min_keys_to_decide = 12;
// A longer key could have no place.
constexpr std::size_t longest_other = 200;
constexpr double perhaps_chance = 1e-3, no_chance = 1e-6;

std::string name_of(const Candidate& candidate) {
  return std::string(candidate.profiles.front()) +
         (candidate.prefix.empty() ? "" : " with the prefix '" + candidate.prefix + "'");
}

bool has_one_server(const Pool& pool) {
  return without_repeats(pool).size() < 2;
}

// Counts the keys that a profile explains, and estimates how many it would explain by chance, given how
// unevenly the keys lie on their servers. Where the profile looks for other keys shows its own unevenness:
// all keys may come from one server, where the right profile looks for all of them.
class Explained {
 public:
  Explained(const Placement& placement, const std::vector<KeyLocation>& locations) {
    const std::size_t servers = placement.pool().size();
    std::vector<double> looked(servers), found(servers);
    for (const KeyLocation& location : locations) {
      const Owners owners = placement.owners_of(location.key);
      const auto& on = location.servers;
      matches_.push_back(std::ranges::any_of(on, [&](std::size_t server) { return owners.has(server); }));
      const Owners others = placement.owners_of(location.key.substr(0, longest_other) + '~');
      for (std::size_t server = 0; server < servers; ++server) looked[server] += others.has(server) ? 1 : 0;
      for (const std::size_t server : on) found[server] += 1;
    }
    const auto all = static_cast<double>(locations.size());
    for (std::size_t server = 0; server < servers; ++server)
      by_chance_ += looked[server] / all * found[server] / all;
  }

  std::size_t count() const { return static_cast<std::size_t>(std::ranges::count(matches_, true)); }
  // Returns true if it explains no more than chance, of all keys or of those that `other` does not explain.
  bool is_chance(const std::vector<bool>* other = nullptr) const {
    std::size_t met = 0, keys = 0;
    for (std::size_t i = 0; i < matches_.size(); ++i) {
      if (other != nullptr && (*other)[i]) continue;
      ++keys;
      met += matches_[i] ? 1 : 0;
    }
    return chance_of(met, keys, by_chance_) > perhaps_chance;
  }

 private:
  std::vector<bool> matches_;
  double by_chance_ = 0;
};

}  // namespace

std::optional<std::string> objection_to(const Placement& placement, const PlacementOptions& options,
                                        const std::vector<KeyLocation>& locations) {
  if (locations.size() < min_keys_to_decide || has_one_server(placement.pool())) return std::nullopt;
  const Explained ours(placement, locations);
  const std::string keys = std::to_string(locations.size());
  const std::string start = std::string(placement.profile()) + " explains " + std::to_string(ours.count()) +
                            " of " + keys + " keys";
  if (ours.count() == locations.size()) return std::nullopt;
  const auto candidates = guess_profiles(placement.pool(), options, locations);
  if (!candidates.empty()) {
    const Candidate& best = candidates.front();
    if (best.chance < no_chance && best.explained > ours.count() && ours.is_chance(&best.matches))
      return start + ", " + name_of(best) + ' ' + std::to_string(best.explained) + ": give --as " +
             name_of(best);
  }
  if (ours.count() * 20 < locations.size() * 19 && ours.is_chance())
    return start + ", no more than chance would: give the client that wrote them with --as";
  return std::nullopt;
}

std::string second_client(const Placement& placement, const PlacementOptions& options,
                          const std::vector<KeyLocation>& not_on_owner) {
  if (not_on_owner.size() < min_keys_to_decide || has_one_server(placement.pool())) return "";
  const auto candidates = guess_profiles(placement.pool(), options, not_on_owner);
  if (candidates.empty() || candidates.front().chance >= no_chance) return "";
  const Candidate& best = candidates.front();
  const auto is_next = [&](const KeyLocation& stray) {
    return placement.servers_of(stray.key, 2).back() == stray.servers.front();
  };
  const auto next = static_cast<std::size_t>(std::ranges::count_if(not_on_owner, is_next));
  return best.explained > next || best.explained * 20 >= not_on_owner.size() * 19 ? name_of(best) : "";
}

}  // namespace mcds
