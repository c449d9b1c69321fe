#include "common/cluster/keys/probe.hpp"

#include <array>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

KeyCopy copy_of(const Reply& reply) {
  KeyCopy copy{.server = reply.server, .round_trip = reply.round_trip};
  if (reply.failed()) {
    copy.error = reply.failure->message;
    copy.code = error_code_of_silence(*reply.failure);
    return copy;
  }
  if (reply.outcome != Outcome::hit) {
    copy.state = KeyCopy::State::missing;
    return copy;
  }
  copy.state = KeyCopy::State::found;
  copy.size_bytes = reply.value.size();
  copy.flags = reply.flags;
  copy.cas = reply.cas;
  copy.age = reply.age;
  copy.md5 = md5_hex(reply.value);
  return copy;
}

bool equal(const KeyCopy& a, const KeyCopy& b) {
  return a.md5 == b.md5 && a.size_bytes == b.size_bytes && a.flags == b.flags;
}

struct Tally {
  std::size_t found = 0, missing = 0, unanswered = 0;

  void add(const KeyCopy& copy) {
    found += copy.state == KeyCopy::State::found ? 1 : 0;
    missing += copy.state == KeyCopy::State::missing ? 1 : 0;
    unanswered += copy.state == KeyCopy::State::unanswered ? 1 : 0;
  }
};

// Counts all copies, or those on the owners' servers.
Tally tally(const KeyCopies& copies, const Owners* owners = nullptr) {
  Tally result;
  for (const auto& copy : copies) {
    if (owners == nullptr || owners->has(copy.server)) result.add(copy);
  }
  return result;
}

// Returns the owners that must have the key, or all owners if none must.
Owners needed(const Owners& owners) {
  Owners result{owners.policy, {}};
  for (const Owner& owner : owners.list) {
    if (owner.must && !result.has(owner.server)) result.list.push_back(owner);
  }
  return result.list.empty() ? owners : result;
}

RemovedCopy removed_by(const Reply& reply) {
  RemovedCopy result{reply.server, Removal::removed, {}};
  if (reply.failed()) {
    result.removal = reply.unknown() ? Removal::unknown : Removal::refused;
    result.error = reply.failure->message;
  } else if (reply.outcome == Outcome::not_found) {
    result.removal = Removal::gone;
  } else if (reply.outcome == Outcome::exists) {
    result.removal = Removal::changed;
  }
  return result;
}

}  // namespace

const char* name_of(Verdict verdict) {
  constexpr std::array words{"ok",        "missing",   "incomplete", "misplaced",
                             "duplicate", "divergent", "unreachable"};
  static_assert(words.size() == static_cast<std::size_t>(Verdict::unreachable) + 1);
  return words[static_cast<std::size_t>(verdict)];
}

const char* name_of(Removal removal) {
  constexpr std::array words{"removed", "gone", "changed", "held", "differs", "refused", "unknown"};
  static_assert(words.size() == static_cast<std::size_t>(Removal::unknown) + 1);
  return words[static_cast<std::size_t>(removal)];
}

Verdict verdict_of(const KeyCopies& copies, const Owners& owners, bool compares) {
  const Tally all = tally(copies);
  const Owners those_needed = needed(owners);
  const Tally held = tally(copies, &owners), must = tally(copies, &those_needed);
  const bool any_will_do = std::ranges::none_of(owners.list, &Owner::must);
  if (compares && copies_differ(copies)) return Verdict::divergent;
  if (held.found > 0 && all.found > held.found) return Verdict::duplicate;
  if (must.found + must.unanswered == 0 && all.found > 0) return Verdict::misplaced;
  if (all.unanswered > 0) return Verdict::unreachable;
  if (all.found == 0) return Verdict::missing;
  return must.missing == 0 || any_will_do ? Verdict::ok : Verdict::incomplete;
}

bool copies_differ(const KeyCopies& copies) {
  const KeyCopy* first = nullptr;
  for (const auto& copy : copies) {
    if (!copy.found()) continue;
    if (first == nullptr) first = &copy;
    if (!equal(*first, copy)) return true;
  }
  return false;
}

std::vector<KeyCopies> probe_keys(Cluster& cluster, std::span<const std::string> keys) {
  const std::size_t servers = cluster.placement().pool().size();
  std::vector<Request> requests;
  for (const auto& key : keys) {
    for (std::size_t server = 0; server < servers; ++server) requests.push_back(Request::probe(key, server));
  }
  std::vector<KeyCopies> result(keys.size());
  const auto replies = cluster.execute(requests);
  for (std::size_t i = 0; i < replies.size(); ++i) result[i / servers].push_back(copy_of(replies[i]));
  return result;
}

NotOnOwner find_not_on_owner(const KeyCopies& copies, const Owners& owners, bool even_last) {
  const Tally held = tally(copies, &owners);
  NotOnOwner not_on_owner;
  if (held.found == 0 && (!even_last || held.unanswered > 0)) return not_on_owner;
  for (const auto& copy : copies) {
    if (!copy.found() || owners.has(copy.server)) continue;
    const bool same = std::ranges::all_of(copies, [&](const KeyCopy& other) {
      return !other.found() || (held.found > 0 && !owners.has(other.server)) || equal(copy, other);
    });
    (same ? not_on_owner.equal : not_on_owner.different).push_back(copy.server);
  }
  return not_on_owner;
}

void PruneEvidence::add(const std::string& key, const KeyCopies& copies, const Owners& owners) {
  constexpr std::size_t enough = 2000;
  const Tally all = tally(copies);
  const Tally held = tally(copies, &owners);
  if (all.found == 0) return;
  if (held.found == 0 && held.unanswered > 0) return;  // an owner that did not answer may have it
  ++keys_;
  explained_ += held.found > 0 ? 1 : 0;
  ++by_copies_[all.found];
  PerServer& per_server = by_server_[owners.list.front().server];
  ++per_server.keys;
  per_server.with_not_on_owner += all.found > held.found ? 1 : 0;
  for (const KeyCopy& copy : copies) {
    if (not_on_owner_.size() < enough && copy.found() && !owners.has(copy.server))
      not_on_owner_.push_back({key, {copy.server}});
  }
}

std::size_t PruneEvidence::usual_copies() const {
  std::size_t usual = 0, most = 0;
  for (const auto& [copies, keys] : by_copies_) {
    if (keys > most) most = keys, usual = copies;
  }
  return usual;
}

PruneEvidence::PruneRefusal PruneEvidence::refusal(bool even_replicas) const {
  if (keys_ == 0) return PruneRefusal::none;
  const std::size_t usual = usual_copies();
  const bool uniform = usual > 1 && by_server_.size() > 1 && by_copies_.at(usual) * 2 > keys_ &&
                       std::ranges::all_of(by_server_, [](const auto& one) {
                         return one.second.with_not_on_owner * 2 > one.second.keys;
                       });
  if (uniform && !even_replicas) return PruneRefusal::replicated;
  return explained_ * 100 < keys_ * 95 ? PruneRefusal::unexplained : PruneRefusal::none;
}

namespace {

// Reads the copies that stay again, so that no token of a copy to remove is newer.
std::vector<Reply> read_staying(Cluster& cluster, const std::string& key, const KeyCopies& copies,
                                std::span<const std::size_t> removed) {
  std::vector<Request> probes;
  for (const KeyCopy& copy : copies) {
    if (copy.found() && std::ranges::find(removed, copy.server) == removed.end())
      probes.push_back(Request::probe(key, copy.server));
  }
  return cluster.execute(probes);
}

// Returns a copy that stays and may be the same item as `seen`, which was read before it. If it is the same
// item but has another token, the token of `seen` removes nothing.
std::optional<SourceAndTarget> twin_of(const std::string& key, const KeyCopy& seen,
                                       std::span<const Reply> staying) {
  for (const Reply& copy : staying) {
    if (!may_be_same(seen.cas, copy.cas) || copy.flags != seen.flags || md5_hex(copy.value) != seen.md5)
      continue;
    return SourceAndTarget{key, seen.server, key, copy.server, [&seen](const Reply& now) {
                             return now.cas == seen.cas && now.flags == seen.flags &&
                                    md5_hex(now.value) == seen.md5;
                           }};
  }
  return std::nullopt;
}

}  // namespace

std::vector<RemovedCopy> remove_copies(Cluster& cluster, const std::string& key, const KeyCopies& copies,
                                       std::span<const std::size_t> servers, bool even_last) {
  std::vector<RemovedCopy> removed;
  std::vector<SourceAndTarget> twins;
  const std::vector<Reply> staying = read_staying(cluster, key, copies, servers);
  const auto silent = std::ranges::find_if(staying, &Reply::failed);
  if (silent != staying.end()) {
    for (const std::size_t server : servers)
      removed.push_back({server, Removal::refused, silent->failure->message});
    return removed;
  }
  const auto is_gone = [](const Reply& copy) { return copy.outcome != Outcome::hit; };
  if (!even_last && std::ranges::any_of(staying, is_gone)) {
    for (const std::size_t server : servers) removed.push_back({server, Removal::changed, {}});
    return removed;
  }
  for (const std::size_t server : servers) {
    if (auto twin = twin_of(key, copies[server], staying)) twins.push_back(std::move(*twin));
  }
  const std::vector<Sameness> found = are_same(cluster, cluster, twins);
  std::vector<Request> requests;
  std::vector<std::size_t> asked;  // indexes into `removed`
  for (std::size_t next = 0; const std::size_t server : servers) {
    RemovedCopy& result = removed.emplace_back(RemovedCopy{server, Removal::changed, {}});
    CasUnique cas = copies[server].cas;
    if (next < twins.size() && twins[next].server == server) {
      const Sameness& sameness = found[next++];
      if (sameness.answer == Sameness::Answer::written) continue;
      if (sameness.answer != Sameness::Answer::different) {
        result = {server, Removal::refused, why_kept(sameness.answer)};
        continue;
      }
      cas = sameness.cas;
    }
    requests.push_back(Request::remove_if(key, cas).on(server));
    asked.push_back(removed.size() - 1);
  }
  const std::vector<Reply> replies = cluster.execute(requests);
  for (std::size_t i = 0; i < replies.size(); ++i) removed[asked[i]] = removed_by(replies[i]);
  return removed;
}

KeyCopies after_removal(KeyCopies copies, std::span<const RemovedCopy> removed) {
  for (const auto& [server, removal, error] : removed) {
    if (removal == Removal::removed || removal == Removal::gone)
      copies[server].state = KeyCopy::State::missing;
    if (removal == Removal::unknown) copies[server].state = KeyCopy::State::unanswered;
  }
  return copies;
}

std::vector<Sameness> are_same(Cluster& cluster, Cluster& other, std::span<const SourceAndTarget> places) {
  std::vector<Sameness> result(places.size());
  if (places.empty()) return result;
  std::vector<Request> appends, gets, others;
  for (const SourceAndTarget& place : places) {
    appends.push_back(Request::gets(place.key).on(place.server));
    appends.push_back(Request::append(place.key, "").on(place.server));
    gets.push_back(Request::gets(place.key).on(place.server));
    others.push_back(Request::gets(place.other_key).on(place.other_server));
  }
  const std::vector<Reply> appended = cluster.execute(appends);
  // Read the first item first: after a write in between, its token is outdated and removes nothing.
  const std::vector<Reply> ones = cluster.execute(gets);
  const std::vector<Reply> seen = other.execute(others);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Reply& before = appended[2 * i];
    if (before.failed() || ones[i].failed()) continue;
    const bool stayed = before.outcome == Outcome::hit && places[i].as_seen(before) &&
                        ones[i].outcome == Outcome::hit && before.value == ones[i].value &&
                        before.flags == ones[i].flags;
    if (!stayed) result[i].answer = Sameness::Answer::written;
    if (!stayed) continue;
    if (appended[2 * i + 1].outcome != Outcome::stored || seen[i].outcome != Outcome::hit) continue;
    const bool same = may_be_same(ones[i].cas, seen[i].cas);
    result[i] = {same ? Sameness::Answer::same : Sameness::Answer::different, ones[i].cas};
  }
  return result;
}

}  // namespace mcds
