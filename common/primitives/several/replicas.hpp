// A structure that is kept in N copies, N at least 1: its code runs once per copy, side by side.
//
// Every copy has a Context of its own, in which a structure finds only that copy of each key. The batches of
// a round leave together, so N copies cost as many round trips as one. What each run returns, or the failure
// it ended with, is one Result per copy, also for a single one: who wants a failure thrown says expect_all()
// or expect_any().
#pragma once

#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/primitives/context.hpp"
#include "common/primitives/several/copies.hpp"
#include "common/primitives/several/side_by_side.hpp"

namespace mcds {

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

// What a copy lacks may be on its way to it for so long.
constexpr auto in_transit = std::chrono::milliseconds(50);

// The read–merge–repair loop of structures whose copies are united by ids, so that it does no harm to write
// what is there by now, or comes later: arrays, event logs and what they keep in use.
//   read    all copies, united. The union knows what lacks() something: a copy that answered, and has less
//           than all have together. Where it cannot tell by its age what may_be_late(), a second look
//           decides, and read is told so.
//   write   gives one copy what it lacks. Best effort: a later read tries again.
// Healing never erases the evidence of a loss: unless the union knows a copy to be whole, write leaves
// standing what names a lost part. A single copy lacks nothing.
//
// Others cannot share it. Versions and exact counters have no ids: what a copy is owed is decided key by key,
// by what each cas meets (versions.hpp, counter/copies.hpp). A fetch of elements heals while millions of them
// stream past, a window at a time, and their index heals when it creates a shard. Who reads from a cache
// writes nothing.
template <typename Read, typename Write>
auto repair(const Replicas& copies, Clock& clock, const Read& read, const Write& write) {
  auto all = read(false);
  const auto any_lacks = [&] {
    for (std::size_t copy = 0; copy < copies.size(); ++copy) {
      if (all.lacks(copy)) return true;
    }
    return false;
  };
  if (any_lacks() && all.may_be_late()) {
    clock.sleep_for(in_transit);
    all = read(true);
  }
  if (!any_lacks()) return all;
  static_cast<void>(copies.each([&](std::size_t copy) {
    if (all.lacks(copy)) write(all, copy);
  }));
  return all;
}

}  // namespace mcds
