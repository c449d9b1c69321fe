// How far back keys were used before they are asked for again, in bytes of what was used since: from that
// follows the hit ratio of a cache of any size that drops what was used longest ago (SHARDS: Waldspurger and
// others, FAST '15).
//
// A key that is asked for starts a journey down the stack, pushed by the others, which ends when it is asked
// for again. The share of journeys that end within C bytes is the hit ratio of a cache of C bytes. Journeys
// that still go on at the end, and keys that were in the cache before we came, are counted for that part of
// their way that was seen (Kaplan and Meier's estimator), so that a minute is enough. A value that expires or
// is deleted is a miss at any size.
//
// Only keys whose hash says so are to be given: all bytes here are those of the sample.
#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mcds {

class ReuseDistances {
 public:
  // Of sizes up to this.
  explicit ReuseDistances(double largest_bytes);

  static constexpr std::int64_t never = -1;  // an expiry, otherwise in seconds of any clock
  // What is there already, that which was used longest ago first; before anything else.
  void seed(std::uint64_t key, std::uint64_t bytes, std::int64_t expires_at);
  // `bytes` 0: not known.
  void get(std::uint64_t key, std::uint64_t bytes, std::int64_t now);
  void store(std::uint64_t key, std::uint64_t bytes, std::int64_t expires_at, std::int64_t now);
  void remove(std::uint64_t key);
  // No more is to come.
  void finish();

  struct Ratio {
    double value = 0, low = 0, high = 0;  // within what chance does in 95 of 100 cases
  };
  // After finish().
  Ratio hit_ratio(double bytes) const;
  std::uint64_t gets() const { return gets_; }
  double bytes() const { return static_cast<double>(all_); }

 private:
  struct Entry {
    std::size_t slot;
    std::uint64_t bytes;
    std::int64_t expires_at;
    double began_at;  // the depth at which its journey was first seen
    bool counts;      // it was asked for, or was there before
    bool gone;        // deleted or expired: it takes no room
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
  std::vector<std::uint64_t> tree_;  // Fenwick's, of bytes by slot
  std::size_t next_ = 0;
  std::uint64_t all_ = 0;  // bytes in it
  std::uint64_t gets_ = 0;
  bool began_once_ = false;
  std::vector<double> began_, ended_,
      hits_;  // journeys by the bins in which they are first and last seen, and end well
};

}  // namespace mcds
