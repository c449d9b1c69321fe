// Records exclusive holders by steps and by times. Two tenures are disjoint if either shows it.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/exhaustive/linearizability.hpp"

namespace mcds::exhaustive {

struct Tenure {
  std::size_t client;
  std::size_t from_step, until_step;
  Duration from, until;
  std::uint64_t fence = 0;

  bool before(const Tenure& other) const { return until <= other.from || until_step <= other.from_step; }
};

class Tenures {
 public:
  // Begins a tenure now, for `left` at most. An answer that arrives too late begins none.
  void begin(ExploredClient& client, Duration left, std::uint64_t fence = 0) {
    const Duration now = client.run().time().elapsed();
    if (left > Duration::zero())
      all_.push_back({client.index(), client.run().steps(), never, now, now + left, fence});
  }
  // Ends a client's tenure at this step, because the client released it.
  void end(const ExploredClient& client, std::size_t step) {
    for (Tenure& one : all_) {
      if (one.client == client.index()) one.until_step = std::min(one.until_step, step);
    }
  }
  // Ends all tenures, because all holders were forced off.
  void end_all(std::size_t step) {
    for (Tenure& one : all_) one.until_step = std::min(one.until_step, step);
  }

  bool any() const { return !all_.empty(); }
  bool two_at_a_time() const {
    return any_two([](const Tenure& a, const Tenure& b) { return !a.before(b) && !b.before(a); });
  }
  bool fences_grow() const {
    return !any_two([](const Tenure& a, const Tenure& b) {
      return a.before(b) ? a.fence >= b.fence : b.fence >= a.fence;
    });
  }
  // Returns true if fences grow between tenures that are at least `apart` from each other.
  bool fences_grow_apart(Duration apart) const {
    return !any_two([&](const Tenure& a, const Tenure& b) {
      return (a.until + apart <= b.from && a.fence >= b.fence) ||
             (b.until + apart <= a.from && b.fence >= a.fence);
    });
  }

 private:
  template <typename Check>
  bool any_two(const Check& check) const {
    for (const Tenure& a : all_) {
      for (const Tenure& b : all_) {
        if (a.client < b.client && check(a, b)) return true;
      }
    }
    return false;
  }

  std::vector<Tenure> all_;
};

}  // namespace mcds::exhaustive
