// Records exclusive holders by steps and by times. Two tenures are disjoint if either shows it.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/models/linearizability.hpp"

namespace mcds::models {

struct Tenure {
  std::size_t client;
  std::size_t from_step, until_step;
  Duration from, until;
  std::uint64_t fence = 0;
  std::size_t slot = 0;
  Duration asked{0};     // when its client began to ask for it
  bool renewed = false;  // by the same client, with the same fence

  bool before(const Tenure& other) const { return until <= other.from || until_step <= other.from_step; }
};

class Tenures {
 public:
  // Begins a tenure now, for `left` at most. An answer that arrives too late begins none.
  void begin(Actor& client, Duration left, std::uint64_t fence = 0, std::size_t slot = 0,
             std::optional<Duration> asked = {}, bool renewed = false) {
    const Duration now = client.run().time().elapsed();
    if (left > Duration::zero())
      all_.push_back({client.index(), client.run().steps(), never, now, now + left, fence, slot,
                      asked.value_or(now), renewed});
  }
  // Ends a client's tenure at this step, because the client released it.
  void end(const Actor& client, std::size_t step, std::size_t slot = 0) {
    for (Tenure& one : all_) {
      if (one.client == client.index() && one.slot == slot) one.until_step = std::min(one.until_step, step);
    }
  }
  // Ends all tenures, because all holders were forced off.
  void end_all(std::size_t step) {
    for (Tenure& one : all_) one.until_step = std::min(one.until_step, step);
  }

  bool any() const { return !all_.empty(); }
  // Returns true if more than this many clients hold a slot when one of them begins to.
  bool more_at_a_time(std::size_t most) const {
    return std::ranges::any_of(all_, [&](const Tenure& one) {
      std::vector<const Tenure*> others;
      for (const Tenure& other : all_) {
        const auto same = [&](const Tenure* held) {
          return held->client == other.client && held->slot == other.slot;
        };
        if (other.from_step <= one.from_step && other.from <= one.from && !same(&one) && !other.before(one) &&
            !one.before(other) && std::ranges::none_of(others, same))
          others.push_back(&other);
      }
      return others.size() >= most;
    });
  }
  bool two_at_a_time() const { return more_at_a_time(1); }
  bool fences_grow() const {
    const auto grows = [](const Tenure& a, const Tenure& b) {
      return b.renewed && a.client == b.client ? a.fence <= b.fence : a.fence < b.fence;
    };
    return !any_two([&](const Tenure& a, const Tenure& b) {
      const bool in_order = a.client == b.client ? a.from_step < b.from_step : a.before(b);
      return in_order ? !grows(a, b) : !grows(b, a);
    });
  }
  // Returns true if fences grow between tenures that are at least `apart` from each other.
  bool fences_grow_apart(Duration apart) const {
    return !any_two([&](const Tenure& a, const Tenure& b) {
      return (a.until + apart <= b.asked && a.fence >= b.fence) ||
             (b.until + apart <= a.asked && b.fence >= a.fence);
    });
  }

 private:
  // Returns true if two tenures of one slot are so.
  template <typename Check>
  bool any_two(const Check& check) const {
    for (const Tenure& a : all_) {
      for (const Tenure& b : all_) {
        if (&a < &b && a.slot == b.slot && check(a, b)) return true;
      }
    }
    return false;
  }

  std::vector<Tenure> all_;
};

}  // namespace mcds::models
