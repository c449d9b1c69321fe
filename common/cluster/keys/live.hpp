// Lists all keys that servers hold now, by `lru_crawler metadump` (memcached 1.4.31 and later).
//
// A dump changes no item and no item's place in the LRU. Keys that are created or removed during the dump may
// or may not be listed; all other keys are listed once. Before 1.6.9, keys in use may be missing.
//
// Up to 1.6.18 a server blocks all its clients while it waits for the reader of its dump. A child process in
// its own session therefore reads what the servers send at once, so that neither a slow `take` nor a stopped
// terminal delays it. Keys that `take` has not yet received are kept in memory (4 MiB), then in an unnamed
// temporary file. The child ends with its parent.
//
// A list is cut off, and is then incomplete, at twice the number of items that its server counts plus
// 100,000. Before that the server's count is read again, because it may be growing.
#pragma once

#include "common/cluster/keys/line_stream.hpp"

namespace mcds {

struct LiveKey {
  std::string_view key;  // raw bytes; valid during the call only
  std::size_t server = 0;
  std::uint64_t size_bytes = 0;       // the whole item in the server's memory: header, key and value
  std::int64_t expires_at = -1;       // UNIX seconds by the server's clock; -1: never
  std::int64_t last_accessed_at = 0;  // UNIX seconds
  std::uint64_t cas = 0;
  std::uint64_t of_items = 0;  // the server's count before the dump; 0: unknown
};

// How one server's dump ended.
struct DumpOutcome {
  std::uint64_t keys = 0;  // passed to `take`
  bool complete = false;   // the dump ended normally
  bool by_table = false;   // no key that stayed is missing; otherwise keys in use may be
  bool busy = false;       // the failure is that the server must not, or does not, start a dump now
  // The server's item counts before and after the dump, with expired items not yet freed. 0: unknown.
  std::uint64_t items_before = 0, items_after = 0;
};
// The result of one server's dump, which may have ended early.
struct LiveKeysOfServer : DumpOutcome {
  // Set if the dump failed: unreachable (no connection), refused (no dump on this server), unknown (broken
  // off). A dump that is incomplete without a failure was ended by `take`.
  std::shared_ptr<const ReplyFailure> failure = nullptr;

  // Returns true if the dump is complete but lacks more than 1 % of the items counted before and after it.
  bool may_be_short() const {
    return complete && keys + keys / 100 < (items_before < items_after ? items_before : items_after);
  }
};

using LiveKeysOptions = LineStreamOptions;

// Receives each key. Returns false to get no more keys of this server.
using TakeLiveKey = std::function<bool(const LiveKey&)>;

// Returns one result for each server of the pool. Rethrows exceptions of `take`, and throws Failure for files
// of TlsOptions, for a full temporary file (cannot_write), and if no child can be created (system).
std::vector<LiveKeysOfServer> read_live_keys(const Pool& pool, const LiveKeysOptions& options,
                                             const Clock& clock, const TakeLiveKey& take);

// Parses a line of a dump without its line feed, or returns nullopt. `buffer` holds the key if it was
// encoded.
std::optional<LiveKey> parse_metadump_line(std::string_view line, std::string& buffer);

// Selects keys by prefix or pattern. All commands select in the same way, so that one step of a procedure
// removes exactly the keys that an earlier step listed.
struct KeySelection {
  std::string key_prefix = {};              // the namespace
  std::optional<std::string> prefix = {};   // of the name, which follows the namespace
  std::optional<std::string> pattern = {};  // of the name: * any bytes, ? one byte, [a-z] one of these

  bool has(std::string_view key) const;
};

// Returns true if the pattern selects practically every key: it has no characters but * and ?, with at least
// one *, or it is empty, as if an unset variable was given.
bool takes_everything(std::string_view pattern);

}  // namespace mcds
