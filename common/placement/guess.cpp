#include "common/placement/guess.hpp"

#include <map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/placement/profiles/profile.hpp"

namespace mcds {

namespace {

// The share of keys from which on a profile explains them. The others may be older or written by other
// clients.
constexpr double explains = 0.95;
constexpr std::size_t min_keys = 12;
constexpr double no_chance_at_all = 1e-6, min_chance = 1e-3;
constexpr std::size_t min_left = 6;
constexpr std::string_view delimiters = ":./_-|";

using Matches = std::vector<bool>;  // per location: it is on a predicted server

// The servers that a profile predicts for the keys, as text, to find profiles that place keys alike. Keys
// without its prefix are not its own.
struct Prediction {
  std::vector<std::string> places;
  Matches matches, own;
  double by_chance = 0;  // the average share of its own keys that would match by chance
};

void predict_one(const Placement& placement, const KeyLocation& location, Prediction& prediction) {
  std::string place;
  std::size_t owners = 1;
  bool match = false;
  const auto note = [&](std::size_t server) {
    place += std::to_string(server) + ' ';
    match |= std::ranges::find(location.servers, server) != location.servers.end();
  };
  if (placement.replicates()) {
    const Owners all = placement.owners_of(location.key);
    owners = all.list.size();
    for (const Owner& owner : all.list) note(owner.server);
  } else {
    note(placement.server_of(location.key));
  }
  const auto servers = static_cast<double>(placement.pool().size());
  prediction.by_chance += std::min(1.0, static_cast<double>(owners * location.servers.size()) / servers);
  prediction.places.back() = std::move(place);
  prediction.matches.back() = match;
}

// Returns the share of the most used server. A profile that prefers it matches as many keys by chance.
double largest_share(const std::vector<std::size_t>& keys_of_server, std::size_t keys) {
  return keys < min_keys
             ? 0
             : static_cast<double>(*std::ranges::max_element(keys_of_server)) / static_cast<double>(keys);
}

// Returns true if nearly all keys are on all servers, which only profiles that keep them there can explain.
bool are_everywhere(const Pool& pool, const std::vector<KeyLocation>& locations) {
  const std::size_t servers = without_repeats(pool).size();
  const auto whole = std::ranges::count_if(
      locations, [&](const KeyLocation& location) { return location.servers.size() == servers; });
  return locations.size() >= min_keys &&
         static_cast<double>(whole) >= explains * static_cast<double>(locations.size());
}

// Predicts at most `most` keys that begin with `prefix`, which the client adds and does not hash.
std::optional<Prediction> predict(std::string_view profile, const Pool& pool, const PlacementOptions& options,
                                  const std::vector<KeyLocation>& locations, bool everywhere = false,
                                  std::string_view prefix = {}, std::size_t most = SIZE_MAX) {
  try {
    const auto placement = make_placement(profile, pool, options);
    const std::size_t servers = placement->pool().size();
    if ((placement->replicates() && placement->owners_of("key").list.size() == servers) != everywhere)
      return std::nullopt;
    Prediction prediction;
    std::vector<std::size_t> seen(pool.size());
    std::size_t keys = 0;
    for (const KeyLocation& location : locations) {
      prediction.own.push_back(keys < most && location.key.starts_with(prefix));
      prediction.places.emplace_back();
      prediction.matches.push_back(everywhere && location.servers.size() == servers);
      if (everywhere || !prediction.own.back()) continue;
      ++keys;
      if (!location.servers.empty()) ++seen[location.servers.front()];
      predict_one(*placement, location, prediction);
    }
    prediction.by_chance /= static_cast<double>(std::max<std::size_t>(keys, 1));
    prediction.by_chance = everywhere ? 1.0 / static_cast<double>(servers)
                                      : std::max(prediction.by_chance, largest_share(seen, keys));
    return prediction;
  } catch (const Failure&) {
    return std::nullopt;
  }
}

// Returns the probability that exactly `met` of `keys` match, if each matches with probability `by_chance`.
// Factors above and below 1 alternate, so that nothing overflows.
double exactly(std::size_t met, std::size_t keys, double by_chance) {
  double chance = 1;
  std::size_t hits = 0, misses = 0;
  while (hits < met || misses < keys - met) {
    const bool miss = hits == met || (chance > 1 && misses < keys - met);
    if (miss) ++misses;
    if (!miss) ++hits;
    chance *=
        miss ? 1 - by_chance : by_chance * static_cast<double>(keys - met + hits) / static_cast<double>(hits);
  }
  return chance;
}

// Returns how many more keys match than by chance, as a share of the keys that chance would miss. A profile
// with several copies matches many keys by chance.
double above_chance(std::size_t met, std::size_t keys, double by_chance) {
  if (by_chance >= 1) return 0;
  return (static_cast<double>(met) - by_chance * static_cast<double>(keys)) / (1 - by_chance);
}

// Ranks profiles by popularity, which is their place in the text; those that behave alike, by libmemcached's
// own name first.
std::size_t popularity_of(std::string_view profile) {
  constexpr std::string_view known =
      " ketama libmemcached-default pymemcache-rendezvous python-memcached dalli gomemcache "
      "node-memcached spymemcached-default spymemcached-ketama twemproxy-default mcrouter-ch3 "
      "mcrouter-crc32 nginx-hash nginx-hash-consistent perl-cache-memcached php-memcached-session "
      "php-memcache-default php-memcache-session xmemcached-default memjs apr-memcache "
      "memcached-proxy-default libketama uhashring-default ";
  const std::size_t at = std::min(known.find(' ' + std::string(profile) + ' '), known.size());
  return at + (at == known.size() && !profile.starts_with("libmemcached-") ? 1 : 0);
}

bool better_known(std::string_view a, std::string_view b) {
  return popularity_of(a) < popularity_of(b);
}

// Returns true if two rules place keys alike on every pool.
bool same_placing(Rule a, Rule b) {
  for (Rule* rule : {&a, &b}) {
    rule->failover = Failover::unknown;
    rule->ejects = rule->any_byte = rule->takes_tag = rule->takes_salt = rule->takes_points = false;
    rule->wire = nullptr;
    rule->named_hashes = nullptr;
    if (rule->seed == 0) rule->seeded = nullptr;
    if (rule->copies == 1) rule->replication = Replication::none;
  }
  return a == b;
}

// Returns the number of keys after which `other` is behind `best` and stays behind.
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

// Returns where a profile places a fixed sample of keys.
std::optional<std::vector<std::string>> sample_places(std::string_view profile, const Pool& pool,
                                                      const PlacementOptions& options, bool everywhere) {
  constexpr int enough = 200;
  std::vector<KeyLocation> sample;
  for (int i = 0; i < enough; ++i) sample.push_back({options.key_prefix + "key:" + std::to_string(i), {}});
  auto prediction = predict(profile, pool, options, sample, everywhere);
  return prediction ? std::optional(std::move(prediction->places)) : std::nullopt;
}

// Returns true if at least the share `least` of the sample is placed alike. If a profile cannot place the
// sample, the result is true when the first cannot; with `everywhere`, when both cannot.
bool place_alike(std::string_view one, std::string_view other, double least, const Pool& pool,
                 const PlacementOptions& options, bool everywhere) {
  const auto first = sample_places(one, pool, options, everywhere);
  const auto second = sample_places(other, pool, options, everywhere);
  if (!first || !second) return everywhere ? !first && !second : !first;
  std::size_t same = 0;
  for (std::size_t i = 0; i < first->size(); ++i) same += (*first)[i] == (*second)[i] ? 1 : 0;
  return static_cast<double>(same) >= least * static_cast<double>(first->size());
}

// Increments the number at the end of the text, or appends 1.
void count_on(std::string& text) {
  const auto digits = text.find_last_not_of("0123456789") + 1;
  text.replace(digits, std::string::npos, std::to_string(parse_u64(text.substr(digits)).value_or(0) + 1));
}

// Returns the pool with one more server of the same kind: on the next port if hosts repeat, otherwise on the
// next host.
Pool one_larger(Pool pool) {
  Server next = pool.back();
  const bool by_port = pool.size() > 1 && pool[pool.size() - 2].host == next.host && !next.is_unix();
  const auto is_old = [&](const Server& server) { return server.address() == next.address(); };
  while (std::ranges::any_of(pool, is_old)) {
    if (by_port) next.port = static_cast<std::uint16_t>(next.port == 65535 ? 1024 : next.port + 1);
    if (!by_port) count_on(next.is_unix() ? next.socket_path : next.host);
    if (!next.name.empty()) count_on(next.name);
  }
  pool.push_back(std::move(next));
  return pool;
}

// Returns the beginning of all keys, and common beginnings up to one of the first delimiters.
std::vector<std::string> common_prefixes(const std::vector<KeyLocation>& locations) {
  constexpr std::size_t longest = 64, max_groups = 32, max_delimiters = 4;
  std::string common = locations.front().key.substr(0, longest);
  std::map<std::string, std::size_t> groups;
  for (const KeyLocation& location : locations) {
    const std::string& key = location.key;
    common.erase(std::mismatch(common.begin(), common.end(), key.begin(), key.end()).first, common.end());
    auto end = key.find_first_of(delimiters);
    for (std::size_t i = 0; i < max_delimiters && end < longest; ++i) {
      ++groups[key.substr(0, end + 1)];
      end = key.find_first_of(delimiters, end + 1);
    }
  }
  std::vector<std::pair<std::size_t, std::string>> largest;
  for (const auto& [prefix, keys] : groups) {
    if (keys * 20 >= locations.size() && keys >= min_left && prefix.size() > common.size())
      largest.emplace_back(keys, prefix);
  }
  std::ranges::sort(largest, std::greater());
  largest.resize(std::min(largest.size(), max_groups));
  std::vector<std::string> prefixes;
  for (std::size_t size = 1; size <= common.size(); ++size) prefixes.push_back(common.substr(0, size));
  for (auto& group : largest) prefixes.push_back(std::move(group.second));
  return prefixes;
}

// Caches lookups: two hundred profiles ask for the same few names, and a miss may be slow.
Resolver remembering(const Resolver& resolver) {
  using LookUp = std::function<std::optional<std::string>(const std::string&)>;
  const auto once = [](LookUp look_up) {
    if (!look_up) return look_up;
    auto known = std::make_shared<std::map<std::string, std::optional<std::string>>>();
    return LookUp([look_up = std::move(look_up), known](const std::string& name) {
      const auto found = known->find(name);
      return found != known->end() ? found->second : known->emplace(name, look_up(name)).first->second;
    });
  };
  return {once(resolver.address_of), once(resolver.name_of)};
}

class Guess {
 public:
  Guess(const Pool& pool, const PlacementOptions& options, const std::vector<KeyLocation>& locations)
      : pool_(pool), options_(options), locations_(locations), everywhere_(are_everywhere(pool, locations)) {
    options_.resolver = remembering(options_.resolver);
  }

  std::vector<Candidate> run() {
    for (const Profile& profile : all_profiles()) add(profile, options_);
    if (options_.key_prefix.empty() && !locations_.empty() && !everywhere_) prefixes();
    for (Candidate& candidate : candidates_) finish(candidate);
    std::ranges::stable_sort(candidates_, [](const Candidate& a, const Candidate& b) {
      const double left = above_chance(a.explained, a.keys(), a.by_chance);
      const double right = above_chance(b.explained, b.keys(), b.by_chance);
      if (left != right) return left > right;
      return a.explained != b.explained ? a.explained > b.explained
                                        : better_known(a.profiles.front(), b.profiles.front());
    });
    if (!candidates_.empty()) report_apart();
    return std::move(candidates_);
  }

 private:
  PlacementOptions with_prefix(const std::string& prefix) const {
    PlacementOptions options = options_;
    if (!prefix.empty()) options.key_prefix = prefix;
    return options;
  }

  void add(const Profile& profile, const PlacementOptions& options) {
    const bool has_prefix = options.key_prefix != options_.key_prefix;
    const std::string prefix = has_prefix ? options.key_prefix : "";
    auto prediction = predict(profile.name, pool_, options, locations_, everywhere_, prefix);
    if (!prediction) return;
    ++asked_;
    const auto [at, is_new] = known_.emplace(std::move(prediction->places), candidates_.size());
    if (is_new) {
      Candidate candidate;
      candidate.prefix = prefix;
      candidate.explained = static_cast<std::size_t>(std::ranges::count(prediction->matches, true));
      candidate.matches = std::move(prediction->matches);
      candidate.own = std::move(prediction->own);
      candidate.by_chance = prediction->by_chance;
      candidates_.push_back(std::move(candidate));
    }
    auto& alike = candidates_[at->second].profiles;
    if (std::ranges::find(alike, profile.name) == alike.end()) alike.push_back(profile.name);
  }

  // Adds profiles that do not hash a prefix, with each possible prefix, after an attempt with a few keys.
  void prefixes() {
    constexpr std::size_t few = 40;
    for (const std::string& prefix : common_prefixes(locations_)) {
      for (const Profile& profile : all_profiles()) {
        if (profile.rule.prefix != Prefix::stripped || profile.rule.own_prefix == prefix) continue;
        const auto probe = predict(profile.name, pool_, with_prefix(prefix), locations_, false, prefix, few);
        ++asked_;
        if (!probe) continue;
        const auto met = static_cast<std::size_t>(std::ranges::count(probe->matches, true));
        const auto keys = static_cast<std::size_t>(std::ranges::count(probe->own, true));
        if (keys < min_keys || chance_of(met, keys, probe->by_chance) < min_chance)
          add(profile, with_prefix(prefix));
      }
    }
  }

  void finish(Candidate& candidate) const {
    std::ranges::stable_sort(candidate.profiles, better_known);
    const Rule& first = profile_named(candidate.profiles.front()).rule;
    for (const std::string_view profile : candidate.profiles) {
      if (!same_placing(first, profile_named(profile).rule)) candidate.alike_here.push_back(profile);
    }
    candidate.chance =
        static_cast<double>(asked_) * chance_of(candidate.explained, candidate.keys(), candidate.by_chance);
  }

  void report_apart() {
    Candidate& best = candidates_.front();
    const PlacementOptions options = with_prefix(best.prefix);
    const Pool larger = one_larger(pool_);
    const std::string_view first = best.profiles.front();
    bool is_one = true;
    for (const std::string_view other : best.alike_here) {
      is_one = is_one && place_alike(first, other, 1, pool_, options, everywhere_);
      if (is_one && !place_alike(first, other, explains, larger, options, everywhere_))
        best.not_elsewhere.push_back(other);
    }
    if (!is_one) best.not_elsewhere.clear();
    is_one = is_one && best.not_elsewhere.empty();
    std::optional<std::size_t> all = is_one ? std::optional<std::size_t>(0) : std::nullopt;
    for (std::size_t i = 1; i < candidates_.size(); ++i) {
      const auto needed = keys_until_behind(best.matches, candidates_[i].matches);
      candidates_[i].keys_needed = needed;
      all = all && needed ? std::optional(std::max(*all, *needed)) : std::nullopt;
    }
    best.keys_needed = all;
  }

  const Pool& pool_;
  PlacementOptions options_;
  const std::vector<KeyLocation>& locations_;
  const bool everywhere_;
  std::map<std::vector<std::string>, std::size_t> known_;
  std::vector<Candidate> candidates_;
  std::size_t asked_ = 0;
};

// Returns the candidate that matches most of the keys in `left` above chance; `met` of its `own` keys match.
std::size_t best_for(const std::vector<Candidate>& candidates, const std::vector<std::size_t>& left,
                     std::size_t& met, std::size_t& own) {
  std::size_t best = 0;
  double most = 0;
  met = own = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::size_t count = 0, keys = 0;
    for (const std::size_t key : left) {
      count += candidates[i].matches[key] ? 1 : 0;
      keys += candidates[i].own[key] ? 1 : 0;
    }
    const double beyond = above_chance(count, keys, candidates[i].by_chance);
    const bool as_good = beyond == most && met > 0 &&
                         better_known(candidates[i].profiles.front(), candidates[best].profiles.front());
    if (beyond > most || as_good) most = beyond, met = count, own = keys, best = i;
  }
  return best;
}

// Estimates how many keys each wrote: a key that several would place there counts for each by its share.
void settle_shares(const std::vector<Candidate>& candidates, std::vector<Writer>& writers) {
  constexpr int rounds = 100;
  const std::size_t keys = candidates.front().matches.size();
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> counts(writers.size());
    double all = 0;
    for (std::size_t key = 0; key < keys; ++key) {
      double sum = 0;
      for (const Writer& writer : writers)
        sum += candidates[writer.candidate].matches[key] ? writer.share : 0;
      if (sum == 0) continue;
      all += 1;
      for (std::size_t i = 0; i < writers.size(); ++i)
        counts[i] += candidates[writers[i].candidate].matches[key] ? writers[i].share / sum : 0;
    }
    for (std::size_t i = 0; i < writers.size(); ++i) writers[i].share = counts[i] / all;
  }
}

}  // namespace

bool Candidate::is_chance() const {
  return chance > min_chance && explained < keys();
}

double chance_of(std::size_t met, std::size_t keys, double by_chance) {
  if (met == 0 || by_chance >= 1) return 1;
  double term = exactly(met, keys, by_chance), sum = 0;
  for (std::size_t k = met; k <= keys && sum < 1; ++k) {
    sum += term;
    term *= static_cast<double>(keys - k) / static_cast<double>(k + 1) * by_chance / (1 - by_chance);
  }
  return std::min(sum, 1.0);
}

std::vector<Candidate> guess_profiles(const Pool& pool, const PlacementOptions& options,
                                      const std::vector<KeyLocation>& locations) {
  if (without_repeats(pool).size() < 2)
    throw InvalidInput(
        "one server does not tell clients apart: they all place every key on it; give the whole pool");
  return Guess(pool, options, locations).run();
}

std::vector<KeyLocation> other_copies(const Candidate& best, const Pool& pool,
                                      const PlacementOptions& options,
                                      const std::vector<KeyLocation>& locations) {
  PlacementOptions placing = options;
  if (!best.prefix.empty()) placing.key_prefix = best.prefix;
  const auto placement = make_placement(best.profiles.front(), pool, placing);
  std::vector<KeyLocation> others;
  for (const KeyLocation& location : locations) {
    const Owners owners = placement->owners_of(location.key);
    for (const std::size_t server : location.servers) {
      if (!owners.has(server)) others.push_back({location.key, {server}});
    }
  }
  return others;
}

bool is_certain(const std::vector<Candidate>& candidates) {
  const Candidate& best = candidates.front();
  const std::size_t keys = best.matches.size();
  return keys >= min_keys && best.chance < no_chance_at_all && best.keys_needed &&
         static_cast<double>(best.explained) >= explains * static_cast<double>(keys);
}

std::vector<Writer> writers_of(const std::vector<Candidate>& candidates) {
  constexpr std::size_t max_writers = 8;
  constexpr double max_kept_shown = 0.55;
  const std::size_t keys = candidates.front().matches.size();
  std::vector<std::size_t> left;
  for (std::size_t key = 0; key < keys; ++key) left.push_back(key);
  std::vector<Writer> writers;
  while (left.size() >= min_left && writers.size() < max_writers) {
    std::size_t met = 0, own = 0;
    const std::size_t best = best_for(candidates, left, met, own);
    const double luck = chance_of(met, own, candidates[best].by_chance);
    const bool most_of_them =
        writers.empty() || static_cast<double>(met) >= max_kept_shown * static_cast<double>(own);
    if (luck * static_cast<double>(candidates.size()) > min_chance || !most_of_them) break;
    writers.push_back({best, 1});
    std::erase_if(left, [&](std::size_t key) { return candidates[best].matches[key]; });
  }
  if (writers.size() < 2 || static_cast<double>(left.size()) > (1 - explains) * static_cast<double>(keys))
    return {};
  settle_shares(candidates, writers);
  std::ranges::stable_sort(writers, [](const Writer& a, const Writer& b) { return a.share > b.share; });
  return writers;
}

std::optional<OtherOrder> other_order(const Candidate& best, const Pool& pool) {
  for (const std::string_view sorted : best.profiles) {
    Rule rule = profile_named(sorted).rule;
    if (std::exchange(rule.order, Order::as_given) == Order::as_given) continue;
    const auto twin = std::ranges::find_if(all_profiles(), [&](const Profile& profile) {
      return same_placing(rule, profile.rule) &&
             std::ranges::find(best.profiles, profile.name) == best.profiles.end();
    });
    if (twin == all_profiles().end()) continue;
    OtherOrder other{twin->name, {}};
    for (const Member& member : members_of(profile_named(sorted).rule, without_repeats(pool), {}))
      other.servers.push_back(without_repeats(pool)[member.index]);
    return other;
  }
  return std::nullopt;
}

}  // namespace mcds
