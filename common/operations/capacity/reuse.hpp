// ReuseDistances: measures how many bytes of other items are used between two uses of a key. The hit ratio of
// an LRU cache of any size follows from that (SHARDS: Waldspurger et al., FAST '15).
//
// A key that is read starts a journey down the stack, pushed by other keys, which ends when it is read again.
// The share of journeys that end within C bytes is the hit ratio of a cache of C bytes. Journeys that are
// unfinished at the end, and keys that were in the cache at the start, count for the part that was seen
// (Kaplan-Meier estimator), so a minute is enough. A value that expires or is deleted is a miss at any size.
//
// The caller selects a sample of keys by hash; all sizes are those of the sample.
#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mcds {

class ReuseDistances {
 public:
  // `largest_bytes` is the largest cache size that hit_ratio() can answer.
  explicit ReuseDistances(double largest_bytes);

  static constexpr std::int64_t never = -1;  // as expires_at; otherwise seconds of any clock
  // Adds an item that exists at the start. Call it first, from the least to the most recently used.
  void seed(std::uint64_t key, std::uint64_t bytes, std::int64_t expires_at);
  // `bytes` is 0 if unknown.
  void get(std::uint64_t key, std::uint64_t bytes, std::int64_t now);
  void store(std::uint64_t key, std::uint64_t bytes, std::int64_t expires_at, std::int64_t now);
  void remove(std::uint64_t key);
  // Ends the measurement.
  void finish();

  struct Ratio {
    double value = 0, low = 0, high = 0;  // 95 % confidence interval
  };
  // Returns the hit ratio of a cache of this size. Call it after finish().
  Ratio hit_ratio(double bytes) const;
  std::uint64_t gets() const { return gets_; }
  double bytes() const { return static_cast<double>(all_); }

 private:
  struct Entry {
    std::size_t slot;
    std::uint64_t bytes;
    std::int64_t expires_at;
    double began_at;  // depth at which its journey was first seen
    bool counts;      // it was read, or existed at the start
    bool gone;        // deleted or expired: it takes no space
  };
  double depth_of(const Entry& entry) const;
  void place(Entry& entry);
  void leave(Entry& entry);
  void go_on(std::int64_t now);
  void end_journey(const Entry& entry, double depth, bool hit);
  void add(std::size_t slot, std::int64_t bytes);
  std::uint64_t up_to(std::size_t slot) const;
  void pack();
  std::size_t bin_of(double bytes) const;

  double largest_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::priority_queue<std::pair<std::int64_t, std::uint64_t>,
                      std::vector<std::pair<std::int64_t, std::uint64_t>>, std::greater<>>
      expiries_;
  std::vector<std::uint64_t> tree_;  // a Fenwick tree of bytes by slot
  std::size_t next_ = 0;
  std::uint64_t all_ = 0;  // bytes in the tree
  std::uint64_t gets_ = 0;
  bool began_once_ = false;
  std::vector<double> began_, ended_,
      hits_;  // by bin: journeys first seen, last seen, and ended by a hit
};

}  // namespace mcds
