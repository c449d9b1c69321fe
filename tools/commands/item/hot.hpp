// How often each key of each server is read and written, counted in bounded memory.
#pragma once

#include <array>
#include <unordered_map>

#include "common/cluster/keys/watch.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

enum class KeyFigure { events, gets, misses, stores, refused, deletes, evictions };
inline constexpr std::array key_figures{"events",  "gets",    "misses",   "stores",
                                        "refused", "deletes", "evictions"};

struct KeyCounts {
  std::uint64_t gets = 0;    // found or not
  std::uint64_t misses = 0;  // not found
  std::uint64_t stores = 0;  // whether stored or not, but for those that the server refused
  std::uint64_t too_large = 0, no_memory = 0;
  std::uint64_t deletes = 0;
  std::uint64_t evictions = 0;
  std::uint64_t refused() const { return too_large + no_memory; }
  std::uint64_t events() const { return gets + stores + refused() + deletes + evictions; }
  std::uint64_t of(KeyFigure figure) const {
    return std::array{
        events(), gets, misses, stores, refused(), deletes, evictions}[static_cast<std::size_t>(figure)];
  }
  void add(KeyEvent::What what);
};

struct HotKey {
  std::string key;
  std::size_t server = 0;
  KeyCounts counts;
  std::optional<std::uint64_t> size_bytes;  // of the value, as last seen
};

// Up to twice `kept` keys are counted exactly. When there are more, those with the fewest events are
// forgotten, and their counts with them: no key has had more events than it shows and uncounted() together.
class HotKeys {
 public:
  explicit HotKeys(std::size_t kept = 1 << 16) : kept_(kept) {}

  // `name`: the event's key as it is to be shown.
  void add(const KeyEvent& event, std::string_view name);

  // Those with the most; keys without any are left out.
  std::vector<HotKey> hottest(KeyFigure order, std::size_t count) const;
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
  // By the server's index in 4 bytes and the key.
  std::unordered_map<std::string, Activity, Hash, std::equal_to<>> activities_;
  std::string id_;
  std::uint64_t uncounted_ = 0;
};

}  // namespace mcds
