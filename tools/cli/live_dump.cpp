#include "tools/cli/live_dump.hpp"

#include "common/cluster/cluster.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

Failure unlisted(const LiveKeysOfServer& result, const Server& server) {
  const ReplyFailure& failure = *result.failure;
  const bool refused = failure.kind == ReplyFailure::Kind::refused;
  return {refused ? ErrorCode::refused : error_code_of_silence(failure),
          (result.keys == 0 ? "its keys cannot be listed: " : "not all of its keys were listed: ") +
              failure.message,
          server.address()};
}

std::vector<LiveKeysOfServer> LiveDump::results(const TakeLiveKey& take) const {
  const Pool& pool = session_.placement()->pool();
  const ConnectOptions connect = session_.connect_options();
  const LiveKeysOptions options{connect.timeout, connect.connect_timeout, connect.tls, connect.login, {}};
  if (servers_.empty()) return read_live_keys(pool, options, session_.clock(), take);
  Pool part;
  for (const std::size_t server : servers_) part.push_back(pool[server]);
  const auto some = read_live_keys(part, options, session_.clock(), [&](const LiveKey& key) {
    LiveKey placed = key;
    placed.server = servers_[key.server];
    return take(placed);
  });
  std::vector<LiveKeysOfServer> all(pool.size(), LiveKeysOfServer{.complete = true});
  for (std::size_t i = 0; i < some.size(); ++i) all[servers_[i]] = some[i];
  return all;
}

ExitStatus LiveDump::read(const TakeLiveKey& take) const {
  return report_unlisted(session_, results(take));
}

ExitStatus report_unlisted(Session& session, const std::vector<LiveKeysOfServer>& results) {
  const Pool& pool = session.placement()->pool();
  ExitStatus status = ExitStatus::ok;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].failure == nullptr) continue;
    const Failure failure = unlisted(results[i], pool[i]);
    session.output().error(failure);
    status = worse(status, status_of(failure.code()));
  }
  return status;
}

}  // namespace mcds
