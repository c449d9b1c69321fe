// What happens to keys now: `watch fetchers mutations evictions` (memcached 1.4.26 and later; -W switches it
// off).
//
// A server writes an event for each key that is looked up (found or not), stored and evicted; later versions
// of 1.6 also for each that is deleted. The look-up that is part of a store, a refused one too, or of a
// deletion is left out;
// increments, touches and, where they are not told, deletions are look-ups and nothing else. Watching costs
// the server time for each event.
// A server that is busier than its log drops events; it counts them (log_worker_dropped, log_watcher_skipped
// of `stats`), so that who watches can tell what share it saw. Nothing is changed.
#pragma once

#include "common/cluster/keys/line_stream.hpp"

namespace mcds {

struct KeyEvent {
  // stored: or not, because of its condition. too_large, no_memory: the server has refused to store it.
  enum class What { found, missed, stored, deleted, evicted, too_large, no_memory };
  std::string_view key;  // its bytes; valid during the call only
  std::size_t server = 0;
  What what = What::found;
  std::optional<std::uint64_t> size_bytes = {};  // of the value, if the server says (1.6.10 and later)
  std::optional<std::uint64_t> ttl_s = {};       // of what is stored, 0: for ever; if the server says
};

// One server's part, as far as it came.
struct WatchedServer {
  std::uint64_t events = 0;   // that it wrote
  std::uint64_t skipped = 0;  // of this watch, as far as the server said so in between
  bool deletions = false;     // whether it tells them
  Duration watched{};         // from its first answer on
  // Set when it could not be watched: as for LiveKeysOfServer.
  std::shared_ptr<const ReplyFailure> failure = nullptr;
};

// For options.longest from each server's first answer on, or until `goes_on` (asked several times a second)
// says false. One result per server of the pool.
// Throws what the functions throw, and Failure for files of TlsOptions.
std::vector<WatchedServer> watch_keys(const Pool& pool, const LineStreamOptions& options, const Clock& clock,
                                      const std::function<void(const KeyEvent&)>& take,
                                      const std::function<bool()>& goes_on = {});

// One line of a watch, without its line feed; nullopt: it is no event of a key. `buffer` holds the key when
// it was encoded.
std::optional<KeyEvent> parse_watch_line(std::string_view line, std::string& buffer);

}  // namespace mcds
