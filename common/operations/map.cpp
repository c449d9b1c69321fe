#include "common/operations/map.hpp"

#include "common/base/bytes.hpp"

namespace mcds::moving {

namespace {

using View = std::string_view;

constexpr View claim = ":s:0000000000000000";

bool ends_in_number_after(View key, View mark) {
  const auto end = key.find_last_not_of("0123456789");
  return end != View::npos && end + 1 < key.size() && key.substr(0, end + 1).ends_with(mark);
}

void describe_log(View key, MoveDecision& decision) {
  if (key.ends_with(":conf")) {
    decision.pass = 2;
  } else if (ends_in_number_after(key, ":dir:")) {
    decision.kind = Kind::directory;
    decision.pass = 2;
  } else {
    decision.kind = Kind::log_part;
    decision.pass = ends_in_number_after(key, ".") ? 0 : 1;
  }
}

// Sets the kind and pass of a key by its name; `rest` is the key without its namespace.
void describe(const NameInNamespace& ours, View rest, bool named_namespace, MoveDecision& decision) {
  const View structure = ours.name.structure;
  // The number of a tag must not come back after it has expired. Without it the moved entries are stale.
  if (structure == "cachetag") {
    decision.what = MoveDecision::What::lock;
    return;
  }
  const bool lock = structure == "lock" || (structure == "cache" && !ours.name.is_root);
  if (lock && named_namespace) {
    decision.what = MoveDecision::What::lock;
  } else if (lock) {
    decision.kind = Kind::locklike;
  } else if (rest.ends_with(claim)) {
    decision.what = MoveDecision::What::lock;
  } else if (structure == "eventlog") {
    describe_log(rest, decision);
  } else if (structure == "array") {
    if (!ours.name.is_root) return;
    decision.kind = Kind::journal;
    decision.pass = 1;
  } else if (structure == "table" || structure == "hash") {
    const bool shard = ends_in_number_after(rest, ":i:") && rest.find(":v:") == View::npos;
    if (!shard && !ours.name.is_root) return;
    decision.kind = Kind::journal;
    decision.pass = shard ? 1 : 2;
  }
}

}  // namespace

Kind kind_of(const NameInNamespace& ours, std::string_view rest) {
  MoveDecision decision;
  describe(ours, rest, false, decision);
  return decision.kind;
}

SpilledRecord record_of(const LiveKey& key, const MoveDecision& decision) {
  SpilledRecord record = spilled(key, decision.to);
  record.kind = decision.kind;
  record.copy = decision.copy;
  return record;
}

std::string identity_of(const Placement& from, const Placement& to, const std::string& key_prefix) {
  std::string text;
  for (const Placement* one : {&from, &to}) {
    append_all(text, {one->profile(), "\n"});
    for (const Server& server : one->pool())
      append_all(text, {server.address(), " ", server.name, " ", std::to_string(server.weight), "\n"});
  }
  return text + key_prefix;
}

Map::Map(const Placement& from, const Placement& to, std::string key_prefix, std::size_t copies)
    : from_(from), to_(to), key_prefix_(std::move(key_prefix)), copies_(copies) {
  for (const Server& old_server : from.pool()) {
    std::vector<bool>& row = same_.emplace_back();
    for (const Server& server : to.pool()) row.push_back(old_server.address() == server.address());
  }
}

std::vector<std::size_t> Map::owners(const Placement& placement, const KeyPlacing& key) {
  if (!placement.replicates()) return placement.servers_of(key.placed_by, key.copies);
  std::vector<std::size_t> servers;
  for (const Owner& owner : placement.owners_of(key.placed_by).list) servers.push_back(owner.server);
  return servers;
}

MoveDecision Map::placed_decision(const KeyPlacing& key, std::size_t server, MoveDecision decision) const {
  const auto before = owners(from_, key), after = owners(to_, key);
  const auto stays = [&](std::size_t one) {
    return std::ranges::any_of(after, [&](std::size_t other) { return same_[one][other]; });
  };
  if (std::ranges::find(before, server) == before.end()) {
    decision.what = stays(server) ? MoveDecision::What::arrived : MoveDecision::What::misplaced;
    return decision;
  }
  // Servers in both pools keep their copies. The other copies go, in order, to owners that have none.
  if (stays(server)) return decision;
  std::vector<std::size_t> empty;
  for (const std::size_t other : after) {
    if (std::ranges::none_of(before, [&](std::size_t one) { return same_[one][other]; }))
      empty.push_back(other);
  }
  std::size_t rank = 0;
  for (const std::size_t one : before) {
    if (one == server) break;
    if (!stays(one)) ++rank;
  }
  if (rank >= empty.size()) return decision;
  decision.what = MoveDecision::What::moves;
  decision.to = empty[rank];
  decision.copy = static_cast<std::uint8_t>(rank);
  return decision;
}

Map::KeyPlacing Map::placing_of(std::string_view key) const {
  KeyPlacing result{std::string(key), copies_};
  if (const auto ours = structure_in(key, key_prefix_)) {
    result.copies = ours->name.copies_or(result.copies);
    result.placed_by = placed(std::move(result.placed_by), ours->key_prefix).placed_by();
  }
  result.copies = std::min({result.copies, from_.pool().size(), to_.pool().size()});
  return result;
}

MoveDecision Map::of(std::string_view key, std::size_t server) const {
  const auto ours = structure_in(key, key_prefix_);
  const View rest = key.substr(ours ? ours->key_prefix.size() : std::min(key_prefix_.size(), key.size()));
  if (rest.starts_with("lockserver:votes:") || rest.starts_with("mcds:probe:"))
    return {.what = MoveDecision::What::lock};
  MoveDecision described;
  if (ours) describe(*ours, rest, ours->key_prefix == key_prefix_, described);
  if (described.what == MoveDecision::What::lock) return described;
  return placed_decision(placing_of(key), server, described);
}

bool Map::is_new_place(std::string_view key, std::size_t server) const {
  const auto after = owners(to_, placing_of(key));
  return std::ranges::find(after, server) != after.end();
}

std::string Map::wire_key(std::string_view key, std::size_t to) const {
  if (to_.has_plain_owners()) return std::string(key);
  for (const Owner& owner : to_.owners_of(key).list) {
    if (owner.server == to && !owner.wire_key.empty()) return owner.wire_key;
  }
  return std::string(key);
}

}  // namespace mcds::moving
