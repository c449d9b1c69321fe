#include <algorithm>
#include <iterator>
#include <span>
#include <tuple>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/base/units.hpp"
#include "common/cluster/keys/probe.hpp"
#include "common/cluster/keys/watch.hpp"
#include "common/operations/doctor/gather.hpp"
#include "common/placement/guess.hpp"
#include "common/placement/key_hash.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds::doctor {

namespace {

constexpr std::size_t guessed_by = 500;  // keys of each server
constexpr std::size_t compared_together = 16;
constexpr std::int64_t settled_s = 3;

// Determines from the listed keys of a structure with one copy which other keys must exist. A key used just
// now may be newer than the list, so it is no evidence.
class NeededKeys {
 public:
  // `rest` is the part of the key after the structure's name.
  void take(const StructureName& name, std::string_view rest, bool settled) {
    if (name.structure == "array") take_segment(rest, settled);
    if (name.structure == "eventlog") take_chunk(rest, settled);
    if (name.structure == "table" || name.structure == "hash") take_element(rest, settled);
  }

  bool lost() const {
    if (has_segment_ && !has_root_) return true;
    if (!std::includes(shards_.begin(), shards_.end(), needed_.begin(), needed_.end())) return true;
    return std::ranges::any_of(chunks_, [](const auto& chunk) {
      const auto& [last, parts] = chunk.second;
      return last > 0 &&
             static_cast<std::size_t>(std::distance(parts.begin(), parts.lower_bound(last))) < last;
    });
  }

 private:
  void take_segment(std::string_view rest, bool settled) {
    has_root_ = has_root_ || rest.empty();
    has_segment_ = has_segment_ || (settled && rest.starts_with(":s:"));
  }

  // An element needs the index shard that lists it.
  void take_element(std::string_view rest, bool settled) {
    if (rest.starts_with(":v:") && settled) {
      if (const auto element = element_of(rest.substr(3))) needed_.insert(index_shard_of(*element));
    }
    if (!rest.starts_with(":i:")) return;
    if (const auto shard = parse_u64(rest.substr(3))) shards_.insert(*shard);
  }

  // A part of a chunk is created when the previous part is full, so all earlier parts must exist.
  void take_chunk(std::string_view rest, bool settled) {
    const std::size_t number = rest.rfind(':'), dot = rest.rfind('.');
    if (number == std::string_view::npos || rest.find(":dir:") != std::string_view::npos) return;
    const bool later = dot != std::string_view::npos && dot > number;
    const auto part = later ? parse_u64(rest.substr(dot + 1)) : std::optional<std::uint64_t>(0);
    if (!part || !parse_u64(rest.substr(number + 1, later ? dot - number - 1 : std::string_view::npos)))
      return;
    auto& [last, parts] = chunks_[std::string(rest.substr(0, later ? dot : std::string_view::npos))];
    parts.insert(*part);
    if (settled) last = std::max(last, *part);
  }

  bool has_root_ = false, has_segment_ = false;
  std::set<std::uint64_t> shards_, needed_;
  std::map<std::string, std::pair<std::uint64_t, std::set<std::uint64_t>>> chunks_;
};

class KeyReader {
 public:
  KeyReader(Cluster& cluster, const Clock& clock, const LiveOptions& options)
      : cluster_(cluster),
        placement_(cluster.placement()),
        options_(options),
        counts_(placement_.pool().size()),
        now_(clock.wall()) {}

  bool take(const LiveKey& key) {
    const bool in_namespace = key.key.starts_with(options_.key_prefix);
    if (in_namespace) ++seen_.keys;
    const auto ours = structure_in(key.key, options_.key_prefix);
    if (ours) note(key, *ours);
    if (in_namespace && !is_vote_key(key.key) && !(ours && may_be_copy(key, *ours)))
      place(key, ours ? ours->key_prefix : std::string_view());
    return ++counts_[key.server] < keys_of_each;
  }

  LiveKeysSeen result(const std::vector<LiveKeysOfServer>& read) {
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (read[i].failure != nullptr && read[i].keys == 0) seen_.unlisted[i] = read[i].failure->message;
    }
    // If a list ended early, missing keys are no evidence.
    const bool whole = std::ranges::all_of(read, [](const LiveKeysOfServer& one) {
      return one.complete && one.by_table && one.failure == nullptr && one.keys < keys_of_each;
    });
    for (auto& [id, structure] : structures_) {
      structure.lost_parts = whole && parts_[id].lost();
      seen_.structures.push_back(std::move(structure));
    }
    const auto endless = std::ranges::find_if(seen_.structures, &StructureSeen::is_endless_lock);
    if (endless != seen_.structures.end()) read_copies(*endless);
    for (const auto& [hash, place] : places_) {
      if (!place.misplaced) continue;
      if (!place.at_home) ++seen_.misplaced;
      ++(place.at_home ? seen_.duplicated_on : seen_.misplaced_on)[place.misplaced_on];
    }
    compare();
    guess();
    return std::move(seen_);
  }

 private:
  struct Place {
    std::size_t first = 0, misplaced_on = 0;
    bool at_home = false, misplaced = false;
  };

  // Returns true if the key may be one of several copies. A lock's key does not state its copy count.
  bool may_be_copy(const LiveKey& key, const NameInNamespace& ours) const {
    if (ours.name.in_several()) return true;
    constexpr std::size_t usual_copies = 3;
    if (ours.name.structure != "lock" || placement_.replicates()) return false;
    const PlacedKey part = placed(std::string(key.key), ours.key_prefix);
    const auto servers =
        placement_.servers_of(part.placed_by(), std::min(placement_.pool().size(), usual_copies));
    return std::ranges::find(servers, key.server) != servers.end();
  }

  void place(const LiveKey& key, std::string_view prefix) {
    const std::string name(key.key);
    const PlacedKey part = placed(name, prefix);
    const bool belongs = placement_.owners_of(part.placed_by()).has(key.server);
    const auto [found, is_new] = places_.try_emplace(key_hash::xxh3(name), Place{key.server, key.server});
    Place& place = found->second;
    if (!is_new && place.first != key.server && !placement_.replicates()) twice_.insert(name);
    if (belongs) place.at_home = true;
    if (!belongs) place.misplaced = true, place.misplaced_on = key.server;
    if (counts_[key.server] < guessed_by && part.with.empty()) locations_.push_back({name, {key.server}});
  }

  void note(const LiveKey& key, const NameInNamespace& ours) {
    const StructureName& name = ours.name;
    const bool in_namespace = ours.key_prefix == options_.key_prefix;
    const std::string structure(name.structure);
    const std::string shown = std::string(in_namespace ? "" : ours.key_prefix) + std::string(name.name);
    const Id id{structure, shown, in_namespace, name.copies};
    auto& one = structures_[id];
    one.structure = structure, one.name = shown, one.in_namespace = in_namespace;
    one.copies = name.copies;
    one.servers.insert(key.server);
    one.sizes[key.server].insert(key.size_bytes);
    if (name.is_root && key.size_bytes > one.largest_bytes)
      one.largest_bytes = key.size_bytes, one.largest_on = key.server;
    const std::int64_t now = whole_seconds(now_);
    if (!name.in_several()) {
      const auto end = static_cast<std::size_t>(name.name.data() + name.name.size() - key.key.data());
      parts_[id].take(name, key.key.substr(end), key.last_accessed_at + settled_s <= now);
    }
    if (!name.is_root) return;
    const std::int64_t ends_in = key.expires_at < 0 ? -1 : std::max<std::int64_t>(key.expires_at - now, 0);
    const bool longer = !one.ends_in || ends_in < 0 || (*one.ends_in >= 0 && ends_in > *one.ends_in);
    if (longer) one.ends_in = ends_in;
  }

  // A lock's keys do not show its number of copies; the advice needs it for the first lock it names.
  void read_copies(StructureSeen& lock) {
    std::vector<Request> requests;
    for (const std::size_t server : lock.servers)
      requests.push_back(Request::get(options_.key_prefix + "lock:" + lock.name).on(server));
    for (const Reply& reply : cluster_.execute(requests)) {
      if (reply.failed() || reply.outcome != Outcome::hit) continue;
      const std::string holder = reply.value.substr(reply.value.find(' ') + 1);  // behind the token
      lock.copies = parse_u64(json_field(holder, "copies").value_or("")).value_or(lock.copies);
    }
  }

  // Reads the keys that several servers list, and counts equal and different values.
  void compare() {
    const std::vector<std::string> keys(twice_.begin(), twice_.end());
    for (std::size_t from = 0; from < keys.size(); from += compared_together) {
      const auto batch = std::span(keys).subspan(from, std::min(compared_together, keys.size() - from));
      const std::vector<KeyCopies> copies = probe_keys(cluster_, batch);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (copies_differ(copies[i]))
          note_divergent(batch[i], copies[i]);
        else
          ++seen_.duplicated;
      }
    }
  }

  void note_divergent(const std::string& key, const KeyCopies& copies) {
    const std::string rest = key.substr(options_.key_prefix.size());
    std::string& common = seen_.divergent_prefix;
    if (seen_.divergent++ == 0) common = rest;
    common.erase(std::ranges::mismatch(common, rest).in1, common.end());
    const Owners owners = placement_.owners_of(key);
    for (const KeyCopy& copy : copies) {
      if (copy.found() && !owners.has(copy.server)) ++seen_.divergent_on[copy.server];
    }
  }

  void guess() {
    if (seen_.misplaced * 10 < seen_.keys || placement_.pool().size() < 2 || locations_.empty()) return;
    const auto candidates = guess_profiles(placement_.pool(), options_.placing, locations_);
    if (!candidates.empty() && is_certain(candidates)) seen_.guess = candidates.front().profiles.front();
  }

  Cluster& cluster_;
  const Placement& placement_;
  const LiveOptions& options_;
  LiveKeysSeen seen_;
  std::vector<std::size_t> counts_;
  WallTime now_;
  std::unordered_map<std::uint64_t, Place> places_;  // by the key's hash
  // Structure, name, whether it is in our namespace, copy count.
  using Id = std::tuple<std::string, std::string, bool, std::size_t>;
  std::map<Id, StructureSeen> structures_;
  std::map<Id, NeededKeys> parts_;
  std::vector<KeyLocation> locations_;
  std::set<std::string> twice_;  // listed by several servers
};

}  // namespace

LiveKeysSeen read_keys(Cluster& cluster, const Clock& clock, const LiveOptions& options) {
  const Placement& placement = cluster.placement();
  KeyReader reader(cluster, clock, options);
  const auto read = read_live_keys(placement.pool(), options.reading, clock, [&](const LiveKey& key) {
    if (options.listed) options.listed();
    return reader.take(key);
  });
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
