// Whether answers can be explained by some order of the operations that keeps who ended before whom began
// (Wing, Gong 1993).
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "tests/support/exploration.hpp"

namespace mcds::exhaustive {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

template <typename State>
struct Act {
  std::string name = {};
  std::size_t begun = 0;
  std::size_t ended = never;
  bool known = false;    // otherwise it may have been done, at any time after its beginning, or not
  bool refused = false;  // surely not done
  // Does it to the state; false: the answer was another one.
  std::function<bool(State&)> apply = {};
};

// `left`: none of them refused. `final`: whether the state that is left is the right one.
template <typename State>
bool explained(const std::vector<const Act<State>*>& left, const State& before,
               const std::function<bool(State&)>& final) {
  bool all_known_done = true;
  for (std::size_t i = 0; i < left.size(); ++i) {
    all_known_done = all_known_done && !left[i]->known;
    bool may_be_next = true;
    for (const auto* other : left)
      may_be_next = may_be_next && !(other != left[i] && other->ended < left[i]->begun);
    if (!may_be_next) continue;
    State state = before;
    if (!left[i]->apply(state)) continue;
    auto rest = left;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (explained(rest, state, final)) return true;
  }
  if (!all_known_done) return false;
  State state = before;
  return final(state);
}

template <typename State>
class Acts {
 public:
  // Runs `act` as an operation. It answers what to compare with later: a function of the state before.
  void run(ExploredClient& client, const std::string& name, std::function<void(State&)> effect,
           const std::function<std::function<bool(State&)>(std::string& told)>& act) {
    const std::size_t number = acts_.size();
    acts_.push_back({.name = name, .begun = client.run().steps(), .apply = [effect](State& state) {
                       return effect ? (effect(state), true) : true;
                     }});
    std::function<bool(State&)> apply;
    bool refused = false;
    const bool done = client.operation(name, [&] {
      std::string told;
      try {
        apply = act(told);
      } catch (const UnknownOutcome&) {
        throw;
      } catch (const Failure&) {
        refused = true;
        throw;
      }
      return told;
    });
    Act<State>& one = acts_[number];
    one.begun = client.begun();
    one.refused = refused;
    if (!done) return;
    one.ended = client.ended();
    one.known = true;
    one.apply = std::move(apply);
  }

  // It may be done to the state at any time from now on, or not.
  void perhaps_from_now(ExploredClient& client, const std::function<void(State&)>& effect) {
    acts_.push_back(
        {.begun = client.run().steps(), .apply = [effect](State& state) { return effect(state), true; }});
  }

  // It may have been done to the state at any time, by nobody that was asked, once for each of two faults:
  // what servers lose.
  void perhaps(const std::function<void(State&)>& effect) {
    for (int fault = 0; fault < 2; ++fault)
      acts_.push_back({.apply = [effect](State& state) { return effect(state), true; }});
  }

  // Whether an operation of this name was acknowledged.
  bool any_known(const std::string& name) const {
    return std::ranges::any_of(acts_, [&](const auto& act) { return act.known && act.name == name; });
  }

  bool explained(const State& before, const std::function<bool(State&)>& final) const {
    std::vector<const Act<State>*> left;
    for (const auto& act : acts_) {
      if (!act.refused) left.push_back(&act);
    }
    return exhaustive::explained(left, before, final);
  }

 private:
  std::vector<Act<State>> acts_;
};

}  // namespace mcds::exhaustive
