// A structure that is kept in N copies, N at least 1: its code runs once per copy, side by side.
//
// Every copy has a Context of its own, in which a structure finds only that copy of each key. The batches of
// a round leave together, so N copies cost as many round trips as one. What each run returns, or the failure
// it ended with, is one Result per copy, also for a single one: who wants a failure thrown says expect_all()
// or expect_any().
#pragma once

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"
#include "common/replication/copies.hpp"

namespace mcds {

// The same code several times, side by side: a structure's copies, or many names of a batch.
//
// Every run has a Context of its own. One that asks the servers, or sleeps, waits for the others; what all of
// them ask for leaves as one batch, so that many runs cost as many round trips as the longest of them.
//
// The runs are fibers because structures stay plain code that way: whoever waits for a reply simply calls
// execute(), and would otherwise have to be written as a state machine to wait beside others. Everything
// happens on one thread, in the order of the runs. A single run is no fiber, and has the whole context.
class SideBySide {
 public:
  // Where the keys of a run lie, in one copy each; without one they lie as in `whole`.
  using PlacementOf = std::function<std::unique_ptr<Placement>(std::size_t run)>;
  SideBySide(const Context& whole, std::size_t runs, const PlacementOf& placement_of = {});
  ~SideBySide();
  SideBySide(SideBySide&&) noexcept;
  SideBySide& operator=(SideBySide&&) noexcept;

  std::size_t size() const;
  Context& at(std::size_t run) const;

  // Does `work` in every run. It may use nothing but at(run) of the outside world. What one throws leaves
  // here, after all have ended.
  void each(const std::function<void(std::size_t run)>& work) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// One result per copy, in the order of copy_servers.
template <typename T>
class EachResult {
 public:
  explicit EachResult(std::vector<Result<T>> results) : results_(std::move(results)) {}

  std::size_t size() const { return results_.size(); }
  Result<T>& operator[](std::size_t copy) { return results_[copy]; }
  const Result<T>& operator[](std::size_t copy) const { return results_[copy]; }
  auto begin() { return results_.begin(); }
  auto end() { return results_.end(); }
  auto begin() const { return results_.begin(); }
  auto end() const { return results_.end(); }

  // What `make` makes of the values; the failures stay.
  template <typename Make>
  auto mapped(const Make& make) const {
    std::vector<Result<std::invoke_result_t<const Make&, const T&>>> made;
    for (const Result<T>& one : results_) made.push_back(attempt([&] { return make(one.value()); }));
    return EachResult<std::invoke_result_t<const Make&, const T&>>(std::move(made));
  }

  // How many copies have a value, and one like this.
  template <typename Test>
  std::size_t count(const Test& test) const {
    std::size_t count = 0;
    for (const Result<T>& one : results_) {
      if (!one.failure() && test(one.value())) ++count;
    }
    return count;
  }
  template <typename Test>
  bool any(const Test& test) const {
    return count(test) != 0;
  }

  std::vector<std::optional<Failure>> failures() const {
    std::vector<std::optional<Failure>> failures;
    for (const Result<T>& one : results_) failures.push_back(one.failure());
    return failures;
  }

 private:
  std::vector<Result<T>> results_;
};

// Throws if no copy could do it.
template <typename T>
EachResult<T> expect_any(EachResult<T> results) {
  if (const auto failure = failure_of_all(results.failures())) raise(*failure);
  return results;
}

// Throws if one of them could not.
template <typename T>
std::vector<T> expect_all(EachResult<T> results) {
  std::vector<T> values;
  for (Result<T>& one : results) values.push_back(std::move(one.value()));
  return values;
}
inline void expect_all(const EachResult<void>& results) {
  for (const Result<void>& one : results) one.value();
}

class Replicas {
 public:
  explicit Replicas(const Context& context);

  std::size_t size() const { return runs_.size(); }
  // A context in which every key has one copy: its `copy`-th.
  Context& at(std::size_t copy) const { return runs_.at(copy); }

  // Runs `work` for every copy. It may use nothing but at(copy) of the outside world. What it throws is the
  // copy's result if it is a Failure; anything else leaves each().
  template <typename Work>
  auto each(const Work& work) const {
    using T = std::invoke_result_t<const Work&, std::size_t>;
    std::vector<std::optional<Result<T>>> done(size());
    runs_.each([&](std::size_t copy) { done[copy].emplace(attempt([&] { return work(copy); })); });
    std::vector<Result<T>> results;
    for (auto& one : done) results.push_back(std::move(*one));
    return EachResult<T>(std::move(results));
  }

 private:
  SideBySide runs_;
};

}  // namespace mcds
