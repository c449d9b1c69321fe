
#include "common/placement/key_hash.hpp"
#include "tools/cli/live_dump.hpp"
#include "tools/commands/where/options.hpp"

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

}  // namespace mcds
