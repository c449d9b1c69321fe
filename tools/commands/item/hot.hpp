// Counts how often each key of each server is read and written, in bounded memory.
#pragma once

#include <array>
#include <unordered_map>

#include "common/cluster/keys/watch.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

enum class KeyMetric { events, gets, misses, stores, refused, deletes, evictions };
inline constexpr std::array key_metrics{"events",  "gets",    "misses",   "stores",
                                        "refused", "deletes", "evictions"};

struct KeyCounts {
  std::uint64_t gets = 0;    // found or not
  std::uint64_t misses = 0;  // not found
  std::uint64_t stores = 0;  // all stores except those that the server refused
  std::uint64_t too_large = 0, no_memory = 0;
  std::uint64_t deletes = 0;
  std::uint64_t evictions = 0;
  std::uint64_t refused() const { return too_large + no_memory; }
  std::uint64_t events() const { return gets + stores + refused() + deletes + evictions; }
  std::uint64_t of(KeyMetric metric) const {
    return std::array{
        events(), gets, misses, stores, refused(), deletes, evictions}[static_cast<std::size_t>(metric)];
  }
  void add(KeyEvent::What what);
};

struct HotKey {
  std::string key;
  std::size_t server = 0;
  KeyCounts counts;
  std::optional<std::uint64_t> size_bytes;  // size of the value when last seen
};

// Counts the events of up to twice `kept` keys exactly. If there are more keys, those with the fewest events
// are dropped with their counts. No key has had more events than its own count plus uncounted().
class HotKeys {
 public:
  explicit HotKeys(std::size_t kept = 1 << 16) : kept_(kept) {}

  // Adds an event. `name` is the event's key as it will be shown.
  void add(const KeyEvent& event, std::string_view name);

  // Returns the keys with the highest counts; keys with a count of 0 are left out.
  std::vector<HotKey> hottest(KeyMetric order, std::size_t count) const;
  std::uint64_t uncounted() const { return uncounted_; }

 private:
  struct Activity {
    KeyCounts counts;
    std::optional<std::uint64_t> size_bytes;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  void forget_the_least();

  std::size_t kept_;
  // The key of this map is the server's index in 4 bytes, followed by the item's key.
  std::unordered_map<std::string, Activity, Hash, std::equal_to<>> activities_;
  std::string id_;
  std::uint64_t uncounted_ = 0;
};

// Returns the failure to watch a server, for people.
Failure unwatched(const WatchedServer& result, const std::string& address);

}  // namespace mcds
