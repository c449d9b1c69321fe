#include "tools/cli/live_dump.hpp"

#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

Failure unlisted(const LiveKeysOfServer& result, const Server& server) {
  const ReplyFailure& failure = *result.failure;
  return {result.busy ? ErrorCode::try_again : error_code_of_silence(failure),
          (result.keys == 0 ? "the server's keys cannot be listed: "
                            : "not all keys of the server were listed: ") +
              failure.message,
          server.address()};
}

std::vector<LiveKeysOfServer> list_keys(Session& session, const Pool& pool, const TakeLiveKey& take) {
  Progress progress(session.clock(), "keys");
  std::vector<std::uint64_t> counted(pool.size());  // item count of each server
  std::uint64_t total = 0, keys = 0;
  return read_live_keys(pool, LiveKeysOptions::of(session.connect_options()), session.clock(),
                        [&](const LiveKey& key) {
                          total += key.of_items - std::exchange(counted[key.server], key.of_items);
                          progress.expect(total);
                          progress.advance(1, ++keys);
                          return take(key);
                        });
}

std::vector<LiveKeysOfServer> list_keys_on(Session& session, std::optional<std::size_t> server,
                                           const TakeLiveKey& take) {
  const Pool& pool = session.placement()->pool();
  if (!server) return list_keys(session, pool, take);
  const auto placed = [&](LiveKey key) {
    key.server = *server;
    return take(key);
  };
  std::vector<LiveKeysOfServer> all(pool.size(), LiveKeysOfServer{{.complete = true}, nullptr});
  all[*server] = list_keys(session, {pool[*server]}, placed).front();
  return all;
}

ExitStatus report_unlisted(Session& session, const Pool& pool, const std::vector<LiveKeysOfServer>& results) {
  ExitStatus status = ExitStatus::ok;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const LiveKeysOfServer& result = results[i];
    if (result.may_be_short()) {
      session.output().warning(
          pool[i].address() + ": the key list may be incomplete: " + std::to_string(result.keys) +
          " keys listed, " + std::to_string(std::min(result.items_before, result.items_after)) +
          " items counted (including expired ones); run again to compare");
    }
    if (result.failure == nullptr) continue;
    const Failure failure = unlisted(result, pool[i]);
    session.output().error(failure);
    status = worse(status, status_of(failure.code()));
  }
  return status;
}

}  // namespace mcds
