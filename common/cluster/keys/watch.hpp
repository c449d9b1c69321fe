// Reports events of keys: `watch fetchers mutations evictions` (memcached 1.4.26 and later, without -W).
//
// A server writes an event for each key that is fetched (hit or miss), stored or evicted; later versions of
// 1.6 also for each deletion. The fetch that is part of a store, even a refused one, or of a deletion is left
// out. Increments, touches and, where deletions are not reported, deletions appear as fetches only. Watching
// costs the server time for each event, and changes nothing.
//
// A server that is busier than its log can hold drops events and counts them (log_worker_dropped and
// log_watcher_skipped in `stats`), so that a watcher can compute the share that it saw.
#pragma once

#include "common/cluster/keys/line_stream.hpp"

namespace mcds {

struct KeyEvent {
  // `stored` includes stores whose condition failed; too_large and no_memory were refused.
  enum class What { found, missed, stored, deleted, evicted, too_large, no_memory };
  std::string_view key;  // raw bytes; valid during the call only
  std::size_t server = 0;
  What what = What::found;
  std::optional<std::uint64_t> size_bytes = {};  // of the value, if reported (1.6.10 and later)
  std::optional<std::uint64_t> ttl_s = {};       // of a stored item, if reported; 0: never expires
};

// The result of watching one server, which may have ended early.
struct WatchedServer {
  std::uint64_t events = 0;   // written by the server
  std::uint64_t skipped = 0;  // by this watch, as far as the server reported
  bool deletions = false;     // deletions are reported
  Duration watched{};         // time since its first answer
  // Set if the server could not be watched, as for LiveKeysOfServer.
  std::shared_ptr<const ReplyFailure> failure = nullptr;
};

// Watches each server for options.longest from its first answer on, or until `goes_on`, called several times
// a second, returns false. Returns one result for each server of the pool. Rethrows exceptions of the
// functions, and throws Failure for files of TlsOptions.
std::vector<WatchedServer> watch_keys(const Pool& pool, const LineStreamOptions& options, const Clock& clock,
                                      const std::function<void(const KeyEvent&)>& take,
                                      const std::function<bool()>& goes_on = {});

// Parses a line of a watch without its line feed, or returns nullopt. `buffer` holds the key if it was
// encoded.
std::optional<KeyEvent> parse_watch_line(std::string_view line, std::string& buffer);

}  // namespace mcds
