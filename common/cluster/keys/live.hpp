// The keys that servers hold now, all of them, by `lru_crawler metadump` (memcached 1.4.31 and later).
//
// Read as a stream: memory is one receive buffer per server however many keys there are, all servers in
// parallel. Nothing is changed and no item's place in the LRU either. A server serves one dump at a time: a
// second reader waits, so `take` must not dawdle. Keys that come or go while the dump runs may or may not be
// in it; a key that stays is in it once. Before 1.6.9 a key that is in use at that time may be missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/keys/line_stream.hpp"

namespace mcds {

struct LiveKey {
  std::string_view key;  // its bytes; valid during the call only
  std::size_t server = 0;
  std::uint64_t size_bytes = 0;       // the whole item in the server's memory: header, key and value
  std::int64_t expires_at = -1;       // UNIX seconds by the server's clock; -1: never
  std::int64_t last_accessed_at = 0;  // UNIX seconds
  std::uint64_t cas = 0;
};

// One server's dump, as far as it came.
struct LiveKeysOfServer {
  std::uint64_t keys = 0;  // given to `take`
  bool complete = false;   // to the end of the dump
  bool by_table = false;   // nothing that stayed is missing; else what is in use may be
  // Set when the dump failed: unreachable (no connection), refused (this server has no dump), unknown (it
  // broke off). Not complete without a failure: `take` had enough.
  std::shared_ptr<const ReplyFailure> failure = nullptr;
};

using LiveKeysOptions = LineStreamOptions;

// False: enough of this server.
using TakeLiveKey = std::function<bool(const LiveKey&)>;

// One result per server of the pool. Throws what `take` throws, and Failure for files of TlsOptions.
std::vector<LiveKeysOfServer> read_live_keys(const Pool& pool, const LiveKeysOptions& options,
                                             const Clock& clock, const TakeLiveKey& take);

// One line of a dump, without its line feed; nullopt if it is not one. `buffer` holds the key when it was
// encoded.
std::optional<LiveKey> parse_metadump_line(std::string_view line, std::string& buffer);

}  // namespace mcds
