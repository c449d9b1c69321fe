// Decides whether some order of the operations explains their answers. If an operation ended before another
// began, it must come first (Wing, Gong 1993).
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/errors.hpp"
#include "tests/support/trial.hpp"

namespace mcds::models {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

// Returns the reply that represents all copies if none succeeded: an unknown outcome before other failures,
// and a failure before a miss.
inline const Reply& representative_reply(std::span<const Reply> replies) {
  for (const auto matches : {&Reply::unknown, &Reply::failed}) {
    const auto found = std::ranges::find_if(replies, matches);
    if (found != replies.end()) return *found;
  }
  return replies.front();
}

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

// Searches for an order that explains the operations. `left` are those not yet in it, none of them refused;
// `final` returns true if the final state is right.
template <typename State>
class Explanation {
 public:
  explicit Explanation(std::function<bool(State&)> final) : final_(std::move(final)) {}

  // Returns true if there is one, or if the search takes too long to tell: random schedules have operations
  // enough, of which many may or may not have been done.
  bool found(const std::vector<const Act<State>*>& left, const State& before) {
    if (left.size() >= worth_remembering) {
      std::vector<State>& tried = tried_[left];
      if (std::ranges::find(tried, before) != tried.end()) return false;
      tried.push_back(before);
    }
    if (++searched_ > longest_search) return true;
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
      if (found(rest, state)) return true;
    }
    if (!all_known_done) return false;
    State state = before;
    return final_(state);
  }

 private:
  static constexpr std::size_t worth_remembering = 7;
  static constexpr std::size_t longest_search = 20'000;
  std::function<bool(State&)> final_;
  std::map<std::vector<const Act<State>*>, std::vector<State>> tried_;
  std::size_t searched_ = 0;
};

template <typename State>
class Acts {
 public:
  // Runs `act` as an operation. It returns a function that compares the answer with the state before it.
  // Returns false if the operation was certainly not done.
  bool run(Actor& client, const std::string& name, std::function<void(State&)> effect,
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
    if (!done) return !refused;
    one.ended = client.ended();
    one.known = true;
    one.apply = std::move(apply);
    return true;
  }

  // Adds an answer of the client's last operation.
  void answered(const Actor& client, std::function<bool(State&)> apply) {
    acts_.push_back(
        {.begun = client.begun(), .ended = client.ended(), .known = true, .apply = std::move(apply)});
  }

  // Adds an effect that may happen at any time from now on, or not at all.
  void perhaps_from_now(Actor& client, const std::function<void(State&)>& effect) {
    acts_.push_back(
        {.begun = client.run().steps(), .apply = [effect](State& state) { return effect(state), true; }});
  }

  // Adds an effect that may have happened at any time without a request, once for each of `times` faults
  // (losses).
  void perhaps(const std::function<void(State&)>& effect, int times = 2) {
    for (int fault = 0; fault < times; ++fault)
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
    return Explanation<State>(final).found(left, before);
  }

 private:
  std::vector<Act<State>> acts_;
};

}  // namespace mcds::models
