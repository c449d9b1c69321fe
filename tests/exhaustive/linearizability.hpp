// Decides whether some order of the operations explains their answers. If an operation ended before another
// began, it must come first (Wing, Gong 1993).
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
  bool known = false;    // false: may have been done at any time after its beginning, or not at all
  bool refused = false;  // certainly not done
  // Applies the operation to the state. Returns false if that would give another answer.
  std::function<bool(State&)> apply = {};
};

// Returns true if some order explains the operations. `left` are the remaining ones, none of them refused;
// `final` returns true if the final state is right.
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
  // Runs `act` as an operation. It returns a function that compares the answer with the state before it.
  void run(ExploredClient& client, const std::string& name, std::function<void(State&)> effect,
           const std::function<std::function<bool(State&)>(std::string& reported)>& act) {
    const std::size_t number = acts_.size();
    acts_.push_back({.name = name, .begun = client.run().steps(), .apply = [effect](State& state) {
                       return effect ? (effect(state), true) : true;
                     }});
    std::function<bool(State&)> apply;
    bool refused = false;
    const bool done = client.operation(name, [&] {
      std::string reported;
      try {
        apply = act(reported);
      } catch (const UnknownOutcome&) {
        throw;
      } catch (const Failure&) {
        refused = true;
        throw;
      }
      return reported;
    });
    Act<State>& one = acts_[number];
    one.begun = client.begun();
    one.refused = refused;
    if (!done) return;
    one.ended = client.ended();
    one.known = true;
    one.apply = std::move(apply);
  }

  // Adds an effect that may happen at any time from now on, or not at all.
  void perhaps_from_now(ExploredClient& client, const std::function<void(State&)>& effect) {
    acts_.push_back(
        {.begun = client.run().steps(), .apply = [effect](State& state) { return effect(state), true; }});
  }

  // Adds an effect that may have happened at any time without a request, once for each of two faults
  // (losses).
  void perhaps(const std::function<void(State&)>& effect) {
    for (int fault = 0; fault < 2; ++fault)
      acts_.push_back({.apply = [effect](State& state) { return effect(state), true; }});
  }

  // Returns true if an operation of this name was acknowledged.
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
