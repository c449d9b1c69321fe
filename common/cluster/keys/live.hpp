// The keys that servers hold now, all of them, by `lru_crawler metadump` (memcached 1.4.31 and later).
//
// Nothing is changed and no item's place in the LRU either. Keys that come or go while the dump runs may or
// may not be in it; a key that stays is in it once. Before 1.6.9 a key that is in use at that time may be
// missing.
//
// Up to 1.6.18 a server that waits for the reader of its dump keeps all its clients waiting. So a child
// process in a session of its own takes what the servers send, at once: neither a slow `take` nor a stopped
// terminal holds it up. What `take` has not had yet is in memory (4 MiB), then in an unnamed temporary file.
// The child ends with us.
//
// A list ends at twice the items that its server counts and 100,000 more, and is not complete then. A server
// that is being filled meanwhile is asked for its count again before.
#pragma once

#include "common/cluster/keys/line_stream.hpp"

namespace mcds {

struct LiveKey {
  std::string_view key;  // its bytes; valid during the call only
  std::size_t server = 0;
  std::uint64_t size_bytes = 0;       // the whole item in the server's memory: header, key and value
  std::int64_t expires_at = -1;       // UNIX seconds by the server's clock; -1: never
  std::int64_t last_accessed_at = 0;  // UNIX seconds
  std::uint64_t cas = 0;
  std::uint64_t of_items = 0;  // its server counted before the dump; 0: unknown
};

// One server's dump, as far as it came.
struct LiveKeysOfServer {
  std::uint64_t keys = 0;  // given to `take`
  bool complete = false;   // to the end of the dump
  bool by_table = false;   // nothing that stayed is missing; else what is in use may be
  bool busy = false;       // the failure is that it must not, or does not, start a dump now
  // What the server counts before and after the dump; expired items that it has not freed yet are among them.
  // 0: unknown.
  std::uint64_t items_before = 0, items_after = 0;
  // Set when the dump failed: unreachable (no connection), refused (this server has no dump), unknown (it
  // broke off). Not complete without a failure: `take` had enough.
  std::shared_ptr<const ReplyFailure> failure = nullptr;

  // Complete, but more than one in a hundred items that were there before and after are not in it.
  bool may_be_short() const {
    return complete && keys + keys / 100 < (items_before < items_after ? items_before : items_after);
  }
};

using LiveKeysOptions = LineStreamOptions;

// False: enough of this server.
using TakeLiveKey = std::function<bool(const LiveKey&)>;

// One result per server of the pool. Throws what `take` throws, and Failure for files of TlsOptions, for a
// temporary file that has no room (cannot_write), and when there can be no child (system).
std::vector<LiveKeysOfServer> read_live_keys(const Pool& pool, const LiveKeysOptions& options,
                                             const Clock& clock, const TakeLiveKey& take);

// One line of a dump, without its line feed; nullopt if it is not one. `buffer` holds the key when it was
// encoded.
std::optional<LiveKey> parse_metadump_line(std::string_view line, std::string& buffer);

// Selects the keys that a command is about from those that servers list. The same words select everywhere:
// what one step of a procedure looked at is what the next one removes.
struct KeySelection {
  std::string key_prefix = {};              // the namespace
  std::optional<std::string> prefix = {};   // of what follows the namespace
  std::optional<std::string> pattern = {};  // the same: * any bytes, ? one, [a-z] one of these

  bool has(std::string_view key) const;
};

// Whether a pattern leaves nothing out for what it says: it is empty, as an unset variable is, or made of *
// and ? alone.
bool takes_everything(std::string_view pattern);

}  // namespace mcds
