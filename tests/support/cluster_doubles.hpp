// Decorators for tests: count trips, inject failures, let a concurrent writer act between two trips.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/random.hpp"
#include "common/cluster/decorators.hpp"

namespace mcds::test {

// Counts calls of execute(). Each is one round trip to every server involved.
class TripCounter final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    ++trips_;
    requests_ += batch.size();
    return inner().execute(batch);
  }
  std::size_t trips() const { return trips_; }
  std::size_t requests() const { return requests_; }
  // Returns the number of trips that `action` makes.
  template <typename Action>
  std::size_t trips_of(Action&& action) {
    const std::size_t before = trips_;
    action();
    return trips_ - before;
  }

 private:
  std::size_t trips_ = 0;
  std::size_t requests_ = 0;
};

// Records which servers left requests unanswered, and which answered some.
class Listening final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::set<std::size_t> silent, answered;
};

// Changes requests in flight, to check that a simulation detects the mistake.
class Spoiled final : public Decorator {
 public:
  using Cluster::execute;
  using Spoil = std::function<void(Request&)>;
  Spoiled(Cluster& inner, Spoil spoil) : Decorator(inner), spoil_(std::move(spoil)) {}
  std::vector<Reply> execute(std::span<const Request> batch) override;

 private:
  Spoil spoil_;
};

// Treats writes that failed as done.
class Believing final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::vector<Reply> execute(std::span<const Request> batch) override;
};

enum class Mishap {
  unreachable,   // not executed, and the client knows
  refused,       // not executed: SERVER_ERROR
  lost_request,  // not executed, the client does not know: unknown
  lost_reply,    // executed, the client does not know: unknown
};

// Makes chosen requests fail.
class ScriptedFaults final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  using Chooser = std::function<std::optional<Mishap>(const Request&)>;

  // Sets a function that is called for every request until it is replaced.
  void choose(Chooser chooser) { chooser_ = std::move(chooser); }
  // Fails every request to this server.
  void cut_off(std::size_t server, Mishap mishap = Mishap::unreachable);
  // Fails one request: the `skip`-th next request with this operation (0: the next one).
  void once(Op op, Mishap mishap, std::size_t skip = 0);
  // Fails every request with this probability, by one of `mishaps`.
  void randomly(Random& random, double probability, std::vector<Mishap> mishaps);
  void none() { chooser_ = nullptr; }
  std::size_t injected() const { return injected_; }

  std::vector<Reply> execute(std::span<const Request> batch) override;

 private:
  Chooser chooser_;
  std::size_t injected_ = 0;
};

// Runs an action before chosen trips, as a concurrent writer would.
class Rival final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  // Sets the action before trip `trip` of this decorator, counted from 0.
  void before(std::size_t trip, std::function<void()> action) { actions_.emplace(trip, std::move(action)); }
  // Sets an action before every trip.
  void always(std::function<void()> action) { always_ = std::move(action); }
  std::size_t trips() const { return trips_; }
  std::vector<Reply> execute(std::span<const Request> batch) override;

 private:
  std::multimap<std::size_t, std::function<void()>> actions_;
  std::function<void()> always_;
  std::size_t trips_ = 0;
};

}  // namespace mcds::test
