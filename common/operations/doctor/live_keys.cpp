#include "common/operations/doctor/live_keys.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "common/cluster/keys/watch.hpp"
#include "common/placement/guess.hpp"
#include "common/placement/key_hash.hpp"
#include "common/primitives/parts.hpp"
#include "common/primitives/structure_names.hpp"

namespace mcds::doctor {

namespace {

constexpr std::size_t guessed_by = 500;  // keys of each server

class KeyReader {
 public:
  KeyReader(const Placement& placement, const Clock& clock, const LiveOptions& options)
      : placement_(placement), options_(options), counts_(placement.pool().size()), now_(clock.wall()) {}

  bool take(const LiveKey& key) {
    ++seen_.keys;
    const auto ours = structure_in(key.key, options_.key_prefix);
    if (ours) note(key, ours->name);
    // Copies and what is on its way lie where their structure looks.
    if (!ours || (ours->name.copies == 1 && !ours->name.of_recopy))
      place(key, ours ? ours->key_prefix : std::string_view());
    return ++counts_[key.server] < keys_of_each;
  }

  LiveKeysSeen result(const std::vector<LiveKeysOfServer>& read) {
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (read[i].failure != nullptr && read[i].keys == 0) seen_.unlisted.push_back(i);
    }
    for (auto& [id, structure] : structures_) seen_.structures.push_back(std::move(structure));
    guess();
    return std::move(seen_);
  }

 private:
  void place(const LiveKey& key, std::string_view prefix) {
    const std::string name(key.key);
    const PlacedKey part = placed(name, prefix);
    const bool belongs = placement_.owners_of(part.placed_by()).has(key.server);
    const auto [first, is_new] = servers_.try_emplace(key_hash::xxh3(name), key.server);
    if (!is_new && first->second != key.server && !placement_.replicates()) ++seen_.duplicated;
    if (!belongs) ++seen_.misplaced, ++seen_.misplaced_on[key.server];
    if (counts_[key.server] < guessed_by && part.with.empty()) sightings_.push_back({name, {key.server}});
  }

  void note(const LiveKey& key, const StructureName& name) {
    const std::string structure(name.structure);
    auto& one = structures_[{structure, std::string(name.name), name.copies, name.of_recopy}];
    one.structure = structure, one.name = std::string(name.name);
    one.copies = name.copies, one.of_recopy = name.of_recopy;
    one.servers.insert(key.server);
    if (name.is_root && key.size_bytes > one.largest_bytes)
      one.largest_bytes = key.size_bytes, one.largest_on = key.server;
    if (!name.is_root && !name.of_recopy) return;
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(now_.time_since_epoch()).count();
    const std::int64_t ends_in = key.expires_at < 0 ? -1 : std::max<std::int64_t>(key.expires_at - now, 0);
    const bool longer = !one.ends_in || ends_in < 0 || (*one.ends_in >= 0 && ends_in > *one.ends_in);
    if (longer) one.ends_in = ends_in;
  }

  void guess() {
    if (seen_.misplaced * 10 < seen_.keys || placement_.pool().size() < 2 || sightings_.empty()) return;
    const auto candidates = guess_profiles(placement_.pool(), options_.placing, sightings_);
    if (!candidates.empty() && is_certain(candidates)) seen_.guess = candidates.front().profiles.front();
  }

  const Placement& placement_;
  const LiveOptions& options_;
  LiveKeysSeen seen_;
  std::vector<std::size_t> counts_;
  WallTime now_;
  std::unordered_map<std::uint64_t, std::size_t> servers_;
  std::map<std::tuple<std::string, std::string, std::size_t, bool>, StructureSeen> structures_;
  std::vector<Sighting> sightings_;
};

}  // namespace

LiveKeysSeen look_at_keys(const Placement& placement, const Clock& clock, const LiveOptions& options) {
  KeyReader reader(placement, clock, options);
  const auto read = read_live_keys(placement.pool(), options.reading, clock,
                                   [&](const LiveKey& key) { return reader.take(key); });
  LiveKeysSeen seen = reader.result(read);
  LiveKeysOptions glance = options.reading;
  glance.longest = std::chrono::milliseconds(20);
  const auto watched = watch_keys(placement.pool(), glance, clock, [](const KeyEvent&) {});
  for (std::size_t i = 0; i < watched.size(); ++i) {
    const auto& failure = watched[i].failure;
    if (failure != nullptr && failure->kind == ReplyFailure::Kind::refused) seen.unwatched.push_back(i);
  }
  return seen;
}

}  // namespace mcds::doctor
