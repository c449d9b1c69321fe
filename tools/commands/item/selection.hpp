// Which live keys item list shows, and in what order.
#pragma once

#include <map>
#include <set>

#include "common/cluster/keys/live.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

// A LiveKey that may be kept.
struct ListedKey {
  std::string key;  // without the namespace
  LiveKey about;    // its `key` is not valid
};

// Those of all keys that come first, `most` of them in memory.
class FirstKeys {
 public:
  enum class Order { size, idle, ttl };  // the largest, the longest unused, those that end first
  FirstKeys(Order order, std::size_t most) : order_(order), most_(most) {}
  void add(std::string_view key, const LiveKey& about);
  std::vector<ListedKey> take();

 private:
  std::int64_t rank_of(const LiveKey& about) const;
  struct Ranked {
    std::int64_t rank;
    ListedKey key;
    // The last in order is the first to go.
    bool operator<(const Ranked& other) const { return rank < other.rank; }
  };
  Order order_;
  std::size_t most_;
  std::vector<Ranked> heap_;
};

// Keys and bytes by what stands before the first separator.
class PrefixSums {
 public:
  explicit PrefixSums(std::string separator) : separator_(std::move(separator)) {}
  void add(std::string_view key, std::uint64_t bytes);
  struct Sum {
    std::string prefix;  // with the separator; empty: keys without one
    std::uint64_t keys = 0, bytes = 0;
  };
  // The most bytes first.
  std::vector<Sum> take() const;

 private:
  std::string separator_;
  std::map<std::string, Sum, std::less<>> sums_;
};

}  // namespace mcds
