#include "common/replication/replicas.hpp"

#include <exception>
#include <iterator>

#include "common/base/fiber.hpp"

namespace mcds {

namespace {

class CopyPlacement final : public Placement {
 public:
  CopyPlacement(const Placement& inner, std::size_t copy) : inner_(inner), copy_(copy) {}
  const Pool& pool() const override { return inner_.pool(); }
  std::string_view profile() const override { return inner_.profile(); }
  std::uint64_t hash_of(std::string_view key) const override { return inner_.hash_of(key); }
  std::size_t server_of(std::string_view key) const override {
    const auto servers = inner_.servers_of(key, copy_ + 1);
    return servers[std::min(copy_, servers.size() - 1)];
  }
  std::vector<std::size_t> servers_of(std::string_view key, std::size_t) const override {
    return {server_of(key)};
  }

 private:
  const Placement& inner_;
  std::size_t copy_;
};

}  // namespace

Replicas::Replicas(const Context& context)
    : runs_(context, context.copies, [&placement = context.cluster.placement()](std::size_t copy) {
        return std::make_unique<CopyPlacement>(placement, copy);
      }) {}

namespace {

// The state of a run: its fiber, and the requests or the time that it waits for.
struct State {
  std::unique_ptr<Fiber> fiber;
  std::vector<Request> batch;
  std::vector<Reply> replies;
  std::optional<SteadyTime> wake;
  std::exception_ptr cancelled;
  std::exception_ptr thrown;

  bool running() const { return fiber && !fiber->finished(); }
  void wait() {
    fiber->pause();
    if (cancelled) std::rethrow_exception(cancelled);
  }
};

// The cluster of one run, whose requests join the common batch. Outside of a run it queries the servers
// directly.
class RunCluster final : public Cluster {
 public:
  RunCluster(Cluster& inner, State& state, std::unique_ptr<Placement> placement)
      : inner_(inner), state_(state), placement_(std::move(placement)) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> directed(batch.begin(), batch.end());
    for (Request& request : directed) {
      if (placement_ && !request.server) request.server = placement_->server_of(request.placed_by());
    }
    if (!state_.running()) return inner_.execute(directed);
    state_.batch = std::move(directed);
    if (!state_.batch.empty()) state_.wait();
    return std::exchange(state_.replies, {});
  }
  const Placement& placement() const override { return placement_ ? *placement_ : inner_.placement(); }

 private:
  Cluster& inner_;
  State& state_;
  std::unique_ptr<Placement> placement_;
};

class RunClock final : public Clock {
 public:
  RunClock(Clock& inner, State& state) : inner_(inner), state_(state) {}
  WallTime wall() const override { return inner_.wall(); }
  SteadyTime steady() const override { return inner_.steady(); }
  void sleep_for(Duration duration) override {
    if (!state_.running()) return inner_.sleep_for(duration);
    state_.wake = steady() + duration;
    state_.wait();
  }

 private:
  Clock& inner_;
  State& state_;
};

struct Run {
  State state;
  RunClock clock;
  RunCluster cluster;
  Context context;

  Run(const Context& whole, std::unique_ptr<Placement> placement, std::size_t copies)
      : clock(whole.clock, state),
        cluster(whole.cluster, state, std::move(placement)),
        context{cluster, clock, whole.random, whole.key_prefix, copies} {}
};

}  // namespace

struct FiberGroup::Parts {
  Context whole;
  std::size_t count;
  std::vector<std::unique_ptr<Run>> runs;  // empty for a single run

  Parts(const Context& context, std::size_t of, const PlacementOf& placement_of) : whole(context), count(of) {
    for (std::size_t i = 0; count != 1 && i < count; ++i) {
      auto placement = placement_of ? placement_of(i) : nullptr;
      runs.push_back(
          std::make_unique<Run>(whole, std::move(placement), placement_of ? std::size_t{1} : whole.copies));
    }
  }

  // Resumes every run that is not asleep, until it waits again. Returns true if any run has not finished.
  bool resume_ready() {
    bool running = false;
    for (const auto& run : runs) {
      State& state = run->state;
      if (!state.running()) continue;
      if (state.wake && *state.wake > whole.clock.steady()) {
        running = true;
        continue;
      }
      state.wake.reset();
      state.fiber->resume();
      running = running || state.running();
    }
    return running;
  }

  // Sends the requests of all runs as one batch, or sleeps if all runs sleep.
  void serve() {
    std::vector<Request> batch;
    std::optional<SteadyTime> wake;
    for (const auto& run : runs) {
      State& state = run->state;
      if (!state.running()) continue;
      if (state.wake) wake = std::min(wake.value_or(*state.wake), *state.wake);
      std::ranges::move(state.batch, std::back_inserter(batch));
    }
    if (batch.empty()) {
      if (!wake) return;
      const Duration nap = std::max(*wake - whole.clock.steady(), Duration::zero());
      whole.clock.sleep_for(nap);
      return;
    }
    auto replies = whole.cluster.execute(batch);
    auto next = replies.begin();
    for (const auto& run : runs) {
      State& state = run->state;
      const auto end = next + static_cast<std::ptrdiff_t>(state.batch.size());
      if (!state.batch.empty())
        state.replies.assign(std::make_move_iterator(next), std::make_move_iterator(end));
      state.batch.clear();
      next = end;
    }
  }

  // Unwinds the stacks of all runs.
  void cancel(const std::exception_ptr& reason) {
    for (const auto& run : runs) {
      State& state = run->state;
      state.cancelled = reason;
      if (state.running() && !state.fiber->started()) state.fiber.reset();
      while (state.running()) state.fiber->resume();
    }
  }
};

FiberGroup::FiberGroup(const Context& whole, std::size_t runs, const PlacementOf& placement_of)
    : parts_(std::make_unique<Parts>(whole, runs, placement_of)) {}
FiberGroup::~FiberGroup() = default;

std::size_t FiberGroup::size() const {
  return parts_->count;
}

Context& FiberGroup::at(std::size_t run) const {
  return size() == 1 ? parts_->whole : parts_->runs[run]->context;
}

void FiberGroup::each(const std::function<void(std::size_t run)>& work) const {
  if (size() == 1) return work(0);
  for (std::size_t i = 0; i < parts_->runs.size(); ++i) {
    State& state = parts_->runs[i]->state;
    state = State{};
    state.fiber = std::make_unique<Fiber>([&state, &work, i] {
      try {
        work(i);
      } catch (...) {
        state.thrown = std::current_exception();
      }
    });
  }
  try {
    while (parts_->resume_ready()) parts_->serve();
  } catch (...) {
    parts_->cancel(std::current_exception());
    throw;
  }
  for (const auto& run : parts_->runs) {
    run->state.fiber.reset();
    if (run->state.thrown) std::rethrow_exception(std::exchange(run->state.thrown, nullptr));
  }
}

}  // namespace mcds
