// Implements mcds where --prune and --live: finds copies that no client will read, and evidence for removal.

#include "common/placement/key_hash.hpp"
#include "tools/commands/where/probe.hpp"

namespace mcds {

namespace {

// Merges the samples, alternating between the servers, so that even a few keys represent all servers. A key
// that several servers list becomes one entry with all of them.
KeyLocations merged(const std::vector<KeyLocations>& of_servers) {
  std::unordered_map<std::string, std::size_t> known;
  KeyLocations all;
  std::size_t most = 0;
  for (const KeyLocations& one : of_servers) most = std::max(most, one.size());
  for (std::size_t i = 0; i < most; ++i) {
    for (const KeyLocations& one : of_servers) {
      if (i >= one.size()) continue;
      const auto [at, is_new] = known.emplace(one[i].key, all.size());
      if (is_new)
        all.push_back(one[i]);
      else
        all[at->second].servers.push_back(one[i].servers.front());
    }
  }
  return all;
}

bool silent(const LiveKeysOfServer& result) {
  return result.failure != nullptr && result.keys == 0;
}

// Throws if no server lists its keys.
void expect_some(const Pool& pool, const std::vector<LiveKeysOfServer>& results) {
  if (std::ranges::all_of(results, silent)) {
    const Failure failure = unlisted(results.front(), pool.front());
    throw NotApplied(failure.code(), failure.what(), failure.server());
  }
}

void warn(Session& session, const Pool& pool, const std::vector<LiveKeysOfServer>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!silent(results[i])) continue;
    const Failure failure = unlisted(results[i], pool[i]);
    session.output().warning(failure.server() + ": " + failure.what());
  }
}

// Fewer keys are not enough evidence about a profile, so other keys of the pool are sampled as well.
constexpr std::size_t min_evidence = 12;
constexpr std::uint64_t evidence_sample = 200;

using TakeName = std::function<void(const std::string& key)>;
// Passes on all keys, each time it is called.
using EachKey = std::function<void(const TakeName& take)>;

void check(const WhereOptions& options, const Placements& placements) {
  if (options.list && !options.live) throw InvalidInput("--list needs --live");
  if (!options.prune) return;
  if (options.yes == options.dry_run) {
    throw InvalidInput("--prune removes copies; add --dry-run to see which, or --yes to remove them");
  }
  if (placements.size() > 1)
    throw InvalidInput(
        "give one profile with --prune: a copy that one client never reads may be read by another");
  if (options.operation)
    throw InvalidInput(
        "--prune and --operation cannot be combined: a copy that one operation never reads may be read by "
        "another");
}

std::string refusal_of(Session& session, const PruneEvidence& evidence, const WhereOptions& options,
                       const Placement& placement) {
  const std::string keys = std::to_string(evidence.keys());
  switch (evidence.refusal(options.even_replicas)) {
    case PruneEvidence::PruneRefusal::none: break;
    case PruneEvidence::PruneRefusal::unexplained:
      return "nothing is removed: only " + std::to_string(evidence.explained()) + " of " + keys +
             " keys are where " + std::string(placement.profile()) +
             " places them, and 95% are required; find the profile with: " +
             printed_command(session, "where --guess");
    case PruneEvidence::PruneRefusal::replicated:
      return "nothing is removed: " + std::to_string(evidence.keys_with_usual_copies()) + " of " + keys +
             " keys have " + std::to_string(evidence.usual_copies()) +
             " copies, which looks like replication; if they are leftovers, add --even-replicas";
  }
  if (options.even_replicas) return "";
  const std::string other = second_client(placement, session.placement_options(), evidence.not_on_owner());
  if (other.empty()) return "";
  return "nothing is removed: the copies elsewhere are where " + other +
         " places them, so a second client reads them; if none does any more, add --even-replicas";
}

std::vector<std::string> other_keys(Session& session, const WhereOptions& options, const Pool& pool,
                                    const EachKey& each) {
  std::set<std::string> others;
  try {
    for (const KeyLocation& location : live_sample(session, pool, evidence_sample, !options.live))
      others.insert(location.key);
  } catch (const NotApplied&) {
    return {};  // no server lists its keys
  }
  each([&](const std::string& key) { others.erase(key); });
  return {others.begin(), others.end()};
}

// Returns why the keys do not confirm the profile, or "". If there are few, other keys are read as well.
std::string refusal_of(Session& session, Probe& probe, const WhereOptions& options,
                       const Placements& placements, const EachKey& each) {
  PruneEvidence evidence;
  std::vector<std::string> some;
  each([&](const std::string& key) {
    some.push_back(key);
    if (some.size() == probe.window()) probe.gather(std::exchange(some, {}), evidence);
  });
  probe.gather(some, evidence);
  const Placement& placement = *placements.front();
  if (evidence.keys() == 0) return "";
  if (evidence.keys() < min_evidence)
    probe.gather(other_keys(session, options, placement.pool(), each), evidence);
  return refusal_of(session, evidence, options, placement);
}

EachKey all_keys(Session& session, const WhereOptions& options, const Placements& placements,
                 ExitStatus& status) {
  const Pool& pool = placements.front()->pool();
  if (options.live && !options.sample) {
    const auto keys =
        std::make_shared<Listings>(all_live_keys(session, pool, options.selected.of(session), status));
    return [keys](const TakeName& take) {
      keys->for_each([&](std::span<const Listing>, const std::string& name) { take(name); });
    };
  }
  std::vector<std::string> keys;
  if (options.live) {
    for (const KeyLocation& location : live_sample(session, pool, *options.sample)) {
      if (options.selected.of(session).has(location.key)) keys.push_back(location.key);
    }
  } else {
    status = for_each_key(session, placements, options, [&](const std::string& key) {
      keys.push_back(key);
      return ExitStatus::ok;
    });
  }
  return [keys = std::move(keys)](const TakeName& take) { std::ranges::for_each(keys, take); };
}

// Judges the profile by all keys before the first removal.
ExitStatus probe_in_two_passes(Session& session, const WhereOptions& options, const Placements& placements) {
  ExitStatus status = ExitStatus::ok;
  const EachKey each = all_keys(session, options, placements, status);
  Probe probe(session, options, placements);
  RemovalSummary summary(session, options.audit, options.dry_run);
  if (options.prune) {
    if (const std::string refusal = refusal_of(session, probe, options, placements, each); !refusal.empty()) {
      // Numbers from a wrong profile would look like an answer, so none are printed.
      session.output().error(Failure(ErrorCode::bad_data, refusal));
      return worse(status, ExitStatus::bad_data);
    }
  }
  const auto work = [&] {
    each([&](const std::string& key) { status = worse(status, probe.add(key)); });
    return status = worse(status, probe.run());
  };
  const auto report = [&] {
    if (options.live)
      summary.print(probe.summary(), probe.removed(), status == ExitStatus::ok ? "ok" : "problem");
    else
      summary.keep({}, probe.removed());
  };
  if (!options.prune) {
    work();
    probe.print_summary(probe.summary(), status);
    return status;
  }
  summary.around(probe.selection(), work, report);
  report();
  return status;
}

}  // namespace

KeyLocations live_sample(Session& session, const Pool& pool, std::uint64_t wanted, bool warns,
                         const KeySelection& selection) {
  const std::size_t share = std::max<std::uint64_t>(1, (wanted + pool.size() - 1) / pool.size());
  std::vector<KeyLocations> of_servers(pool.size());
  const auto results = list_keys(session, pool, [&](const LiveKey& key) {
    if (selection.has(key.key)) of_servers[key.server].push_back({std::string(key.key), {key.server}});
    return of_servers[key.server].size() < share;
  });
  expect_some(pool, results);
  if (warns) warn(session, pool, results);
  return merged(of_servers);
}

Listings all_live_keys(Session& session, const Pool& pool, const KeySelection& selection,
                       ExitStatus& status) {
  Listings keys;
  const auto results = list_keys(session, pool, [&](const LiveKey& key) {
    if (selection.has(key.key)) keys.add({.hash = key_hash::xxh3(key.key)}, key.key);
    return true;
  });
  expect_some(pool, results);
  status = worse(status, report_unlisted(session, pool, results));
  return keys;
}

ExitStatus where_probe(Session& session, const WhereOptions& options, const Placements& placements) {
  check(options, placements);
  if (options.live && placements.size() > 1) {
    ExitStatus status = ExitStatus::ok;
    for (const auto& placement : placements)
      status = worse(status, where_probe(session, options, Placements{placement}));
    return status;
  }
  if (options.live && !options.prune && !options.sample) {
    // The servers' lists say where keys are. Without them each key is read from every server.
    if (const auto status = where_audit(session, options, placements)) return *status;
  }
  if (options.prune || options.live) return probe_in_two_passes(session, options, placements);
  Probe probe(session, options, placements);
  return for_each_key(
      session, placements, options, [&](const std::string& key) { return probe.add(key); },
      [&] { return probe.run(); });
}

}  // namespace mcds
