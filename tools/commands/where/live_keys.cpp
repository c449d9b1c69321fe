#include "tools/commands/where/live_keys.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "common/cluster/keys/live.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

// Alternating between the servers, so that few keys already speak of all of them.
Sightings interleaved(std::vector<Sightings> of_servers) {
  Sightings all;
  std::size_t most = 0;
  for (const Sightings& one : of_servers) most = std::max(most, one.size());
  for (std::size_t i = 0; i < most; ++i) {
    for (Sightings& one : of_servers) {
      if (i < one.size()) all.push_back(std::move(one[i]));
    }
  }
  return all;
}

// A key that several servers list is one, on all of them.
Sightings merged(Sightings sightings) {
  std::unordered_map<std::string, std::size_t> known;
  Sightings all;
  for (Sighting& sighting : sightings) {
    const auto [at, is_new] = known.emplace(sighting.key, all.size());
    if (is_new) {
      all.push_back(std::move(sighting));
    } else {
      all[at->second].servers.push_back(sighting.servers.front());
    }
  }
  return all;
}

bool silent(const LiveKeysOfServer& result) {
  return result.failure != nullptr && result.keys == 0;
}

const std::string unlisted = "its keys cannot be listed: ";

// Says which servers could not be asked; throws when none could.
void report(Session& session, const Pool& pool, const std::vector<LiveKeysOfServer>& results) {
  if (std::all_of(results.begin(), results.end(), silent)) {
    const ReplyFailure& failure = *results.front().failure;
    const bool refused = failure.kind == ReplyFailure::Kind::refused;
    throw NotApplied(refused ? ErrorCode::refused : error_code_of_silence(failure),
                     unlisted + failure.message, pool.front().address());
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (silent(results[i]))
      session.output().warning(pool[i].address() + ": " + unlisted + results[i].failure->message);
  }
}

LiveKeysOptions reading(Session& session) {
  const ConnectOptions connect = session.connect_options();
  return {connect.timeout, connect.connect_timeout, connect.tls, connect.login, {}};
}

}  // namespace

Sightings live_sample(Session& session, const Pool& pool, std::uint64_t wanted) {
  const std::size_t share = std::max<std::uint64_t>(1, (wanted + pool.size() - 1) / pool.size());
  std::vector<Sightings> of_servers(pool.size());
  const auto results = read_live_keys(pool, reading(session), session.clock(), [&](const LiveKey& key) {
    of_servers[key.server].push_back({std::string(key.key), {key.server}});
    return of_servers[key.server].size() < share;
  });
  report(session, pool, results);
  return merged(interleaved(std::move(of_servers)));
}

std::vector<std::string> all_live_keys(Session& session, const Pool& pool) {
  std::unordered_set<std::string> known;
  std::vector<std::string> keys;
  const std::string& prefix = session.key_prefix();
  const auto results = read_live_keys(pool, reading(session), session.clock(), [&](const LiveKey& key) {
    if (key.key.starts_with(prefix) && known.emplace(key.key).second) keys.emplace_back(key.key);
    return true;
  });
  report(session, pool, results);
  return keys;
}

}  // namespace mcds
