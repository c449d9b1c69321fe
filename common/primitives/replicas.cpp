#include "common/primitives/replicas.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "common/base/fiber.hpp"

namespace mcds {

namespace {

// One copy's run: its fiber, and what it waits for.
struct Lane {
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

// Outside of a run it asks the servers itself.
class CopyCluster final : public Cluster {
 public:
  CopyCluster(Cluster& inner, Lane& lane, std::size_t copy)
      : inner_(inner), lane_(lane), placement_(inner.placement(), copy) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> directed(batch.begin(), batch.end());
    for (Request& request : directed) {
      if (!request.server) request.server = placement_.server_of(request.placed_by());
    }
    if (!lane_.running()) return inner_.execute(directed);
    lane_.batch = std::move(directed);
    if (!lane_.batch.empty()) lane_.wait();
    return std::exchange(lane_.replies, {});
  }
  const Placement& placement() const override { return placement_; }

 private:
  Cluster& inner_;
  Lane& lane_;
  CopyPlacement placement_;
};

class CopyClock final : public Clock {
 public:
  CopyClock(Clock& inner, Lane& lane) : inner_(inner), lane_(lane) {}
  WallTime wall() const override { return inner_.wall(); }
  SteadyTime steady() const override { return inner_.steady(); }
  void sleep_for(Duration duration) override {
    if (!lane_.running()) return inner_.sleep_for(duration);
    lane_.wake = steady() + duration;
    lane_.wait();
  }

 private:
  Clock& inner_;
  Lane& lane_;
};

struct Copy {
  Lane lane;
  CopyClock clock;
  CopyCluster cluster;
  Context context;

  Copy(const Context& whole, std::size_t copy)
      : clock(whole.clock, lane),
        cluster(whole.cluster, lane, copy),
        context{cluster, clock, whole.random, whole.key_prefix} {}
};

}  // namespace

struct Replicas::Parts {
  Context whole;
  std::vector<std::unique_ptr<Copy>> copies;  // none: `whole` is the only one

  explicit Parts(const Context& context) : whole(context) {
    for (std::size_t i = 0; whole.copies > 1 && i < whole.copies; ++i) {
      copies.push_back(std::make_unique<Copy>(whole, i));
    }
  }

  // Lets every lane that can go on do so, until it asks for something.
  bool resume_ready() {
    bool running = false;
    for (const auto& copy : copies) {
      Lane& lane = copy->lane;
      if (!lane.running()) continue;
      if (lane.wake && *lane.wake > whole.clock.steady()) {
        running = true;
        continue;
      }
      lane.wake.reset();
      lane.fiber->resume();
      running = running || lane.running();
    }
    return running;
  }

  // One joined batch of those that ask, or a nap when all sleep.
  void serve() {
    std::vector<Request> batch;
    std::optional<SteadyTime> wake;
    for (const auto& copy : copies) {
      Lane& lane = copy->lane;
      if (!lane.running()) continue;
      if (lane.wake) wake = std::min(wake.value_or(*lane.wake), *lane.wake);
      batch.insert(batch.end(), lane.batch.begin(), lane.batch.end());
    }
    if (batch.empty()) {
      if (!wake) return;
      const Duration nap = std::max(*wake - whole.clock.steady(), Duration::zero());
      whole.clock.sleep_for(nap);
      return;
    }
    auto replies = whole.cluster.execute(batch);
    auto next = replies.begin();
    for (const auto& copy : copies) {
      Lane& lane = copy->lane;
      const auto end = next + static_cast<std::ptrdiff_t>(lane.batch.size());
      if (!lane.batch.empty())
        lane.replies.assign(std::make_move_iterator(next), std::make_move_iterator(end));
      lane.batch.clear();
      next = end;
    }
  }

  // So that nothing stays on the lanes' stacks.
  void cancel(const std::exception_ptr& reason) {
    for (const auto& copy : copies) {
      Lane& lane = copy->lane;
      lane.cancelled = reason;
      if (lane.running() && !lane.fiber->started()) lane.fiber.reset();
      while (lane.running()) lane.fiber->resume();
    }
  }
};

Replicas::Replicas(const Context& context) : parts_(std::make_unique<Parts>(context)) {}
Replicas::~Replicas() = default;
Replicas::Replicas(Replicas&&) noexcept = default;
Replicas& Replicas::operator=(Replicas&&) noexcept = default;

std::size_t Replicas::size() const {
  return parts_->whole.copies;
}

Context& Replicas::at(std::size_t copy) const {
  return parts_->copies.empty() ? parts_->whole : parts_->copies[copy]->context;
}

void Replicas::run(const std::function<void(std::size_t copy)>& work) const {
  if (parts_->copies.empty()) return work(0);
  for (std::size_t i = 0; i < size(); ++i) {
    Lane& lane = parts_->copies[i]->lane;
    lane = Lane{};
    lane.fiber = std::make_unique<Fiber>([&lane, &work, i] {
      try {
        work(i);
      } catch (...) {
        lane.thrown = std::current_exception();
      }
    });
  }
  try {
    while (parts_->resume_ready()) parts_->serve();
  } catch (...) {
    parts_->cancel(std::current_exception());
    throw;
  }
  for (const auto& copy : parts_->copies) {
    copy->lane.fiber.reset();
    if (copy->lane.thrown) std::rethrow_exception(std::exchange(copy->lane.thrown, nullptr));
  }
}

}  // namespace mcds
