// What becomes of the items of a batch once the new servers have answered: stored, there before, united,
// replaced because they changed on the old servers alone, or left.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "common/structures/move/roots.hpp"
#include "common/structures/move/tally.hpp"

namespace mcds::moving {

class Settler {
 public:
  // `without_cas`: where the new server has none, what is as it was copied is stored over.
  Settler(const Clock& clock, Cluster& to, Roots& roots, Tally& tally, bool without_cas)
      : clock_(clock), to_(to), roots_(roots), tally_(tally), without_cas_(without_cas) {}

  // `batch` and `replies`: for each item an add_and_get; of those that were only touched a get. Returns which
  // are settled:
  // nothing has to be done for them by another run.
  std::vector<bool> settle(Items& items, std::span<const Request> batch, std::span<const Reply> replies);

 private:
  // What became of an item, so far.
  enum class State { settled, left, missing, changed, touched };

  template <typename... Why>
  State left(const Item& item, Why&&... why) {
    tally_.left(item, std::forward<Why>(why)...);
    return State::left;
  }
  State judge(const Item& item, const Request& request, const Reply& seen);
  State judge_added(const Item& item, const Request& add, const Reply& added, const Reply& seen);
  State judge_found(const Item& item, const Request& add, const Reply& seen);
  State judge_other(const Item& item, const Request& add, const Reply& seen);
  void add_again(Items& items, std::span<const Request> batch, std::vector<State>& states);
  void update(Items& items, std::span<const Request> batch, std::vector<State>& states);
  void touch(Items& items, std::vector<State>& states);

  bool has_ended(const Item& item) const;

  const Clock& clock_;
  Cluster& to_;
  Roots& roots_;
  Tally& tally_;
  bool without_cas_;
};

}  // namespace mcds::moving
