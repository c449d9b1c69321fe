// Replicas runs the code of a structure with N copies (N at least 1) once per copy, concurrently.
//
// Each copy has its own Context, in which every key has only that copy. The batches of a round leave
// together, so N copies cost as many round trips as one. Each run yields one Result: its return value, or the
// failure that ended it. A caller that wants failures thrown uses expect_all() or expect_any().
#pragma once

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"
#include "common/replication/copies.hpp"

namespace mcds {

// Runs the same code several times concurrently: for the copies of a structure, or for many names of a batch.
//
// Each run has its own Context. A run that sends requests or sleeps waits for the others, and the requests of
// all runs leave as one batch. Together they cost as many round trips as the longest of them.
//
// The runs are fibers, because a structure then simply calls execute() to wait for a reply; without fibers,
// it would have to be a state machine. All fibers run on one thread, in the order of the runs. A single run
// is not a fiber and has the whole context.
class FiberGroup {
 public:
  // Returns the placement of a run's keys, with one copy of each. By default they are placed as in `whole`.
  using PlacementOf = std::function<std::unique_ptr<Placement>(std::size_t run)>;
  FiberGroup(const Context& whole, std::size_t runs, const PlacementOf& placement_of = {});
  ~FiberGroup();

  std::size_t size() const;
  Context& at(std::size_t run) const;

  // Calls `work` for every run. `work` may use nothing outside but at(run). Rethrows the first exception
  // after all runs have ended.
  void each(const std::function<void(std::size_t run)>& work) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// One result per copy, in the order of copy_servers.
template <typename T>
class PerCopyResults {
 public:
  explicit PerCopyResults(std::vector<Result<T>> results) : results_(std::move(results)) {}

  std::size_t size() const { return results_.size(); }
  Result<T>& operator[](std::size_t copy) { return results_[copy]; }
  const Result<T>& operator[](std::size_t copy) const { return results_[copy]; }
  auto begin() { return results_.begin(); }
  auto end() { return results_.end(); }
  auto begin() const { return results_.begin(); }
  auto end() const { return results_.end(); }

  // Returns how many copies have a value that passes the test.
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

 private:
  std::vector<Result<T>> results_;
};

// Throws if no copy succeeded. An unknown outcome takes precedence over other failures.
template <typename T>
PerCopyResults<T> expect_any(PerCopyResults<T> results) {
  const Failure* reported = nullptr;
  for (const Result<T>& one : results) {
    if (!one.failure()) return results;
    if (reported == nullptr || one.failure()->code() == ErrorCode::unknown_outcome)
      reported = &*one.failure();
  }
  require(reported != nullptr, "an operation on copies has a result for each");
  raise(*reported);
}

// Returns the values. Throws if any copy failed.
template <typename T>
std::vector<T> expect_all(PerCopyResults<T> results) {
  std::vector<T> values;
  for (Result<T>& one : results) values.push_back(std::move(one.value()));
  return values;
}
inline void expect_all(const PerCopyResults<void>& results) {
  for (const Result<void>& one : results) one.value();
}

class Replicas {
 public:
  explicit Replicas(const Context& context);

  std::size_t size() const { return runs_.size(); }
  // Returns a context in which every key has a single copy, its `copy`-th.
  Context& at(std::size_t copy) const { return runs_.at(copy); }

  // Runs `work` for every copy. `work` may use nothing outside but at(copy). A Failure that it throws is the
  // copy's result; any other exception is rethrown.
  template <typename Work>
  auto each(const Work& work) const {
    using T = std::invoke_result_t<const Work&, std::size_t>;
    std::vector<std::optional<Result<T>>> done(size());
    runs_.each([&](std::size_t copy) { done[copy].emplace(attempt([&] { return work(copy); })); });
    std::vector<Result<T>> results;
    for (auto& one : done) results.push_back(std::move(*one));
    return PerCopyResults<T>(std::move(results));
  }

 private:
  FiberGroup runs_;
};

}  // namespace mcds
