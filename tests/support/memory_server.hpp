// One memcached in memory: the semantics of memcached 1.6.18 as far as mcds depends on them, seen through the
// requests of common/cluster/request.hpp. The contract suite runs on it and on real servers alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/cluster/request.hpp"
#include "tests/support/fake_clock.hpp"

namespace mcds {

struct MemoryServerOptions {
  Duration tick_phase{0};                   // where in a second the server's clock ticks, 0 … 1 s
  std::chrono::microseconds clock_skew{0};  // of its wall clock, for absolute exptimes
  std::size_t item_size = 1 << 20;          // maximum item size, as memcached's -I
  std::size_t memory_limit = 0;             // bytes; above it stores are refused, as with -M; 0: unlimited
  bool reports_cas = true;                  // stores answer with the new cas token, as meta commands do
};

struct MemoryItem {
  std::string value;
  std::uint32_t flags = 0;
  std::int64_t expires = 0;  // on the server's clock of whole seconds; 0: never
  std::int64_t used = 0;     // last read or write
  std::uint64_t cas = 0;
};

class MemoryServer {
 public:
  MemoryServer(const VirtualTime& time, std::size_t index, MemoryServerOptions options);

  // Applies a request at once and atomically, including composites.
  Reply execute(const Request& request);

  // Drops all items. Cas tokens start at 1 again, and open connections are dead.
  void restart();
  void flush();
  // Returns true if the item existed.
  bool evict(std::string_view key);
  // Delays the clock's ticks by `lag`, less than a second, from now on. When the lag ends, the clock jumps.
  void set_tick_lag(Duration lag) { tick_lag_ = lag; }

  // Returns the number of server starts. A connection belongs to one of them.
  std::uint64_t incarnation() const { return incarnation_; }
  // Returns true if the request is refused whatever the server holds, and changes nothing.
  bool never_fits(const Request& request) const;
  // Returns the item that a client would find, without touching it.
  std::optional<MemoryItem> peek(std::string_view key);
  // Returns all items, including expired ones that no request has touched since.
  const std::map<std::string, MemoryItem, std::less<>>& items() const { return items_; }
  MemoryServerOptions& options() { return options_; }

 private:
  std::int64_t seconds();
  std::int64_t expiry_of(Exptime exptime);
  MemoryItem* find(std::string_view key);
  bool too_large(const Request& request, std::size_t value_size) const;
  bool no_room(const Request& request, std::size_t value_size) const;
  Reply refuse(const char* message) const;
  Reply fetch(const Request& request);
  Reply store(const Request& request);
  Reply store_and_fetch(const Request& request);
  Reply keep(const Request& request, std::string value);
  Reply append(const Request& request);
  Reply change(const Request& request);
  Reply touch(const Request& request);
  Reply remove(const Request& request);
  Reply describe(const Request& request);

  const VirtualTime& time_;
  std::size_t index_;
  MemoryServerOptions options_;
  std::map<std::string, MemoryItem, std::less<>> items_;
  Duration tick_lag_{0};
  std::int64_t ticks_ = 0;
  std::int64_t started_ticks_ = 0;
  std::int64_t started_wall_ = 0;
  std::uint64_t last_cas_ = 0;
  std::uint64_t incarnation_ = 0;
};

}  // namespace mcds
