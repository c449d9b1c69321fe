// Decides which runs are made and which can be skipped. exploration.hpp has the rule of exchange.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <span>

#include "tests/support/exploration_inside.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t min_search = 500'000;  // steps for each number of faults and preemptions
constexpr int max_preemptions = 4;
constexpr std::size_t max_story_length = 60;  // lines; the rest of a loop is the same again

// A set of steps of a run.
class StepSet {
 public:
  void add(std::size_t step) { words_[step / 64] |= std::uint64_t{1} << (step % 64); }
  bool has(std::size_t step) const { return (words_[step / 64] >> (step % 64) & 1) != 0; }
  void add(const StepSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  static constexpr std::size_t capacity = 1024;

 private:
  std::array<std::uint64_t, capacity / 64> words_{};
};

struct Done {
  int process;
  int variant;
  Footprint footprint;
};

// A state of the run, and the choice made there.
struct Node {
  std::vector<Transition> enabled;
  std::vector<int> backtrack;  // processes to be tried here
  std::vector<Done> sleep;     // steps that can be skipped: an equal run was made
  std::vector<Done> done;      // steps already tried here
  std::size_t chosen = 0;
  Executed executed;
  StepSet before;  // the steps that this one had to follow
  int preemptions = 0;
  int last_client = -1;
};

bool contains(const std::vector<int>& processes, int process) {
  return std::find(processes.begin(), processes.end(), process) != processes.end();
}

bool listed(const std::vector<Done>& all, const Transition& one) {
  return std::any_of(all.begin(), all.end(), [&](const Done& other) {
    return other.process == one.process && other.variant == one.variant;
  });
}

bool in_program_order(const Executed& a, const Executed& b, std::size_t step_of_a) {
  if (a.process == b.process) return true;
  if (b.born == static_cast<int>(step_of_a)) return true;
  return a.client >= 0 && a.client == b.client && a.trip != b.trip;
}

}  // namespace

class Explorer {
 public:
  Explorer(const Scenario& scenario, const Bounds& bounds) : scenario_(scenario), bounds_(bounds) {}

  Verdict search() {
    const std::clock_t started = std::clock();
    do {
      run(false);
    } while (!verdict_.violation && verdict_.schedules + verdict_.pruned < bounds_.max_schedules &&
             steps_ < bounds_.effort && advance());
    verdict_.complete = !verdict_.violation && nodes_.empty();
    if (verdict_.violation) run(true);
    verdict_.seconds = static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
    return std::move(verdict_);
  }

 private:
  // Repeats the choices made so far, then makes the first remaining ones.
  void run(bool representative_reply) {
    Exploration exploration(bounds_);
    Exploration::Inside& inside = *exploration.inside_;
    inside.representative_reply = representative_reply;
    scenario_(exploration);
    inside.start();
    std::size_t depth = 0;
    while (!inside.violation) {
      if (depth == std::min(bounds_.max_steps, StepSet::capacity)) {
        exploration.violated("no end after " + std::to_string(depth) + " steps: somebody spins");
        break;
      }
      if (depth == nodes_.size() && !enter(inside.enabled())) break;
      Node& node = nodes_[depth];
      const Transition& transition = node.enabled[node.chosen];
      const bool fresh = depth + 1 == nodes_.size() && !replayed(depth);
      const Executed executed = inside.execute(transition, representative_reply);
      if (fresh) {
        node.executed = executed;
        examined_ = depth + 1;
        if (transition.kind != Transition::Kind::end) order(depth);
      }
      ++depth;
    }
    steps_ += depth;
    if (representative_reply) {
      verdict_.story = std::move(inside.story);
      return;
    }
    examined_ = depth;
    if (blocked_) {
      ++verdict_.pruned;
      blocked_ = false;
      return;
    }
    ++verdict_.schedules;
    if (!inside.violation && inside.check) {
      if (auto found = inside.check(exploration.observer())) exploration.violated(*found);
    }
    if (bounds_.collect_finals) verdict_.finals.insert(inside.digest());
    verdict_.violation = inside.violation;
  }

  bool replayed(std::size_t depth) const { return depth < examined_; }

  // Enters a new state. Returns false if the run ends here.
  bool enter(std::vector<Transition> enabled) {
    if (enabled.empty()) return false;
    Node node;
    node.enabled = std::move(enabled);
    if (!nodes_.empty()) inherit(nodes_.back(), node);
    if (bounds_.reduced) {
      for (const Transition& one : node.enabled) {
        if (one.is_environment() && !contains(node.backtrack, one.process))
          node.backtrack.push_back(one.process);
      }
      const auto first = first_awake(node);
      if (first == node.enabled.size()) {
        blocked_ = true;
        return false;
      }
      if (!contains(node.backtrack, node.enabled[first].process))
        node.backtrack.push_back(node.enabled[first].process);
      node.chosen = first;
    } else {
      for (const Transition& one : node.enabled) {
        if (!contains(node.backtrack, one.process)) node.backtrack.push_back(one.process);
      }
      node.chosen = first_awake(node);
    }
    nodes_.push_back(std::move(node));
    return true;
  }

  // Returns the first transition to try. The last client continues if it can, to avoid needless switches.
  std::size_t first_awake(const Node& node) const {
    std::size_t first = node.enabled.size();
    for (std::size_t i = 0; i < node.enabled.size(); ++i) {
      const Transition& one = node.enabled[i];
      if (listed(node.sleep, one)) continue;
      if (one.client >= 0 && one.client == node.last_client) return i;
      if (first == node.enabled.size()) first = i;
    }
    return first;
  }

  void inherit(const Node& before, Node& node) const {
    const Transition& step = before.enabled[before.chosen];
    node.last_client = step.client >= 0 ? step.client : before.last_client;
    node.preemptions = before.preemptions + preempts(before, step);
    if (!bounds_.reduced) return;
    for (const std::vector<Done>* list : {&before.sleep, &before.done}) {
      for (const Done& one : *list) {
        if (one.process == step.process || dependent(one.footprint, before.executed.footprint)) continue;
        node.sleep.push_back(one);
        // The last of a client's requests in flight may end its operation.
        if (one.footprint.client >= 0 && one.footprint.client == step.client)
          node.sleep.back().footprint.ends = true;
      }
    }
  }

  static int preempts(const Node& node, const Transition& step) {
    if (node.last_client < 0 || step.client == node.last_client) return 0;
    return std::any_of(node.enabled.begin(), node.enabled.end(),
                       [&](const Transition& one) { return one.client == node.last_client; });
  }

  // Records the steps that this one had to follow. For each earlier step that it could have preceded, marks
  // the reverse order to be tried as well.
  void order(std::size_t step) {
    if (!bounds_.reduced) return;
    Node& node = nodes_[step];
    StepSet covered;
    for (std::size_t earlier = step; earlier-- > 0;) {
      if (covered.has(earlier)) continue;
      const Node& other = nodes_[earlier];
      const bool program = in_program_order(other.executed, node.executed, earlier);
      if (!program && !dependent(other.executed.footprint, node.executed.footprint)) continue;
      node.before.add(earlier);
      node.before.add(other.before);
      covered.add(earlier);
      covered.add(other.before);
      if (!program) races_.push_back(earlier);
    }
    for (const std::size_t earlier : races_) reverse(earlier, step);
    races_.clear();
  }

  // Marks, at the earlier step, a process with which the reverse order can begin: that of the later step, or
  // of a step in between that need not follow the earlier one.
  void reverse(std::size_t earlier, std::size_t later) {
    Node& node = nodes_[earlier];
    StepSet kept;
    int initial = -1;
    for (std::size_t step = earlier + 1; step <= later; ++step) {
      if (step != later && nodes_[step].before.has(earlier)) continue;
      const bool first = !follows_any(step, earlier, kept);
      kept.add(step);
      if (!first) continue;
      const int process = nodes_[step].executed.process;
      if (contains(node.backtrack, process)) return;
      if (initial < 0) initial = process;
    }
    const bool there = std::any_of(node.enabled.begin(), node.enabled.end(),
                                   [&](const Transition& one) { return one.process == initial; });
    if (there) {
      node.backtrack.push_back(initial);
      return;
    }
    for (const Transition& one : node.enabled) {
      if (!contains(node.backtrack, one.process)) node.backtrack.push_back(one.process);
    }
  }

  bool follows_any(std::size_t step, std::size_t after, const StepSet& kept) const {
    for (std::size_t other = after + 1; other < step; ++other) {
      if (kept.has(other) && nodes_[step].before.has(other)) return true;
    }
    return false;
  }

  // Moves to the next choice that was not made yet. Returns false if all were made.
  bool advance() {
    while (!nodes_.empty()) {
      Node& node = nodes_.back();
      const Transition& tried = node.enabled[node.chosen];
      node.done.push_back({tried.process, tried.variant, node.executed.footprint});
      const std::size_t next = next_choice(node);
      if (next < node.enabled.size()) {
        node.chosen = next;
        node.before = {};
        examined_ = nodes_.size() - 1;
        return true;
      }
      nodes_.pop_back();
    }
    return false;
  }

  std::size_t next_choice(const Node& node) const {
    const int process = node.enabled[node.chosen].process;
    std::size_t found = node.enabled.size();
    for (std::size_t i = node.enabled.size(); i-- > 0;) {
      const Transition& one = node.enabled[i];
      if (!contains(node.backtrack, one.process) || listed(node.done, one) || listed(node.sleep, one))
        continue;
      if (bounds_.preemptions && node.preemptions + preempts(node, one) > *bounds_.preemptions) continue;
      // All variants of one process are tried in a row.
      if (found == node.enabled.size() || one.process == process || node.enabled[found].process != process)
        found = i;
    }
    return found;
  }

  const Scenario& scenario_;
  Bounds bounds_;
  std::uint64_t steps_ = 0;  // in total
  std::vector<Node> nodes_;
  std::vector<std::size_t> races_;
  std::size_t examined_ = 0;  // nodes whose step was examined in an earlier run
  bool blocked_ = false;
  Verdict verdict_;
};

Verdict explore(const Scenario& scenario, const Bounds& bounds) {
  Verdict verdict = Explorer(scenario, bounds).search();
  if (!verdict.violation) return verdict;
  for (int cost = 0; cost <= bounds.faults + bounds.max_pauses; ++cost) {
    for (int preemptions = 0; preemptions <= max_preemptions; ++preemptions) {
      for (int pauses = 0; pauses <= std::min(cost, bounds.max_pauses); ++pauses) {
        if (cost - pauses > bounds.faults) continue;
        Bounds small = bounds;
        small.reduced = false;
        small.faults = cost - pauses;
        small.max_pauses = pauses;
        small.preemptions = preemptions;
        small.effort = min_search;
        const Verdict shortest = Explorer(scenario, small).search();
        if (!shortest.violation) continue;
        verdict.violation = shortest.violation;
        verdict.story = shortest.story;
        return verdict;
      }
    }
  }
  return verdict;
}

std::string Bounds::reported() const {
  std::string text = "faults " + std::to_string(faults);
  if (max_pauses != 0) text += ", pauses " + std::to_string(max_pauses);
  if (mortal) text += ", of client " + std::to_string(*mortal + 1);
  if (prompt) text += ", no time passes in the midst of an operation";
  if (hasty_attempts) text += ", hasty back-offs " + std::to_string(*hasty_attempts);
  if (servers_in_order) text += ", servers in order";
  if (preemptions) text += ", preemptions " + std::to_string(*preemptions);
  return text;
}

std::string Verdict::reported() const {
  std::string text = violation.value_or("no violation");
  for (const std::string& line : std::span(story).first(std::min(story.size(), max_story_length)))
    text += "\n  " + line;
  return text + (story.size() > max_story_length ? "\n  …" : "");
}

std::string Verdict::line() const {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "%8llu schedules %8llu pruned  %s  %.2f s",
                static_cast<unsigned long long>(schedules), static_cast<unsigned long long>(pruned),
                violation  ? "violated"
                : complete ? "complete"
                           : "not complete",
                seconds);
  return text.data();
}

}  // namespace mcds
