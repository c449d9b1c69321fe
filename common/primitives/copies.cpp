#include "common/primitives/copies.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/fiber.hpp"

namespace mcds {

std::vector<std::size_t> copy_servers(const Placement& placement, std::size_t copies, std::string_view key) {
  if (copies == 1) return {placement.server_of(key)};
  auto servers = placement.servers_of(key, copies);
  if (servers.size() == copies) return servers;
  throw InvalidInput("--copies " + std::to_string(copies) +
                     " needs as many servers that hold keys; there are " + std::to_string(servers.size()));
}

std::vector<std::size_t> copy_servers(const Context& context, std::string_view key) {
  return copy_servers(context.cluster.placement(), context.copies, key);
}

namespace {

std::vector<Request> for_copies(const Context& context, std::span<const Request> requests) {
  std::vector<Request> batch;
  batch.reserve(requests.size() * context.copies);
  for (const Request& request : requests) {
    for (const std::size_t server : copy_servers(context, request.placed_by()))
      batch.push_back(Request(request).on(server));
  }
  return batch;
}

}  // namespace

CopyReplies execute_copies(const Context& context, std::span<const Request> requests) {
  // Without copies there is nothing to direct: the requests go as they are.
  if (context.copies == 1) return {context.cluster.execute(requests), 1};
  return {context.cluster.execute(for_copies(context, requests)), context.copies};
}

CopiesOnTheWay::CopiesOnTheWay(const Context& context, std::vector<Request> requests)
    : copies_(context.copies),
      pending_(context.cluster.begin(copies_ == 1 ? std::move(requests) : for_copies(context, requests))) {}

CopyReplies CopiesOnTheWay::finish() {
  return {pending_->finish(), copies_};
}

std::vector<Reply> execute_copies(const Context& context, const Request& request) {
  return execute_copies(context, std::span(&request, 1)).take_all();
}

CopyOutcome copy_outcome(const Context& context, const Reply& reply) {
  CopyOutcome outcome{reply.server, {}, {}};
  try {
    expect(context.cluster, reply);
  } catch (const Failure& failure) {
    outcome.failure = failure;
  }
  return outcome;
}

std::vector<CopyOutcome> copy_outcomes(const Context& context, std::span<const Reply> replies) {
  std::vector<CopyOutcome> outcomes;
  if (replies.size() < 2) return outcomes;
  for (const Reply& reply : replies) {
    CopyOutcome& outcome = outcomes.emplace_back(copy_outcome(context, reply));
    if (reply.outcome == Outcome::stored) outcome.number = reply.number;
    if (reply.outcome == Outcome::hit)
      outcome.number = parse_u64(reply.value.substr(0, reply.value.find(' ')));
  }
  return outcomes;
}

std::vector<CopyOutcome> copy_outcomes(const Context& context, std::string_view key,
                                       std::span<const std::optional<Failure>> failures) {
  std::vector<CopyOutcome> outcomes;
  if (failures.size() < 2) return outcomes;
  const auto servers = copy_servers(context, key);
  for (std::size_t i = 0; i < servers.size(); ++i)
    outcomes.push_back({.server = servers[i], .failure = failures[i]});
  return outcomes;
}

const Reply& telling(std::span<const Reply> replies) {
  for (const auto matches : {+[](const Reply& reply) { return reply.unknown(); },
                             +[](const Reply& reply) { return reply.failed(); }}) {
    const auto found = std::find_if(replies.begin(), replies.end(), matches);
    if (found != replies.end()) return *found;
  }
  return replies.front();
}

std::optional<Failure> failure_of_all(std::span<const std::optional<Failure>> copies) {
  const std::optional<Failure>* told = nullptr;
  for (const auto& failure : copies) {
    if (!failure) return std::nullopt;
    if (told == nullptr || failure->code() == ErrorCode::unknown_outcome) told = &failure;
  }
  return told == nullptr ? std::nullopt : *told;
}

void expect_all(std::span<const std::optional<Failure>> copies) {
  for (const auto& failure : copies) {
    if (failure) throw Failure(*failure);
  }
}

bool enough_written(std::size_t done, std::size_t copies) {
  return done != 0 && (copies < 3 || 2 * done > copies);
}

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

struct Copies::Parts {
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

Copies::Copies(const Context& context) : parts_(std::make_unique<Parts>(context)) {}
Copies::~Copies() = default;
Copies::Copies(Copies&&) noexcept = default;
Copies& Copies::operator=(Copies&&) noexcept = default;

std::size_t Copies::size() const {
  return parts_->whole.copies;
}

Context& Copies::at(std::size_t copy) const {
  return parts_->copies.empty() ? parts_->whole : parts_->copies[copy]->context;
}

std::vector<std::optional<Failure>> Copies::run(const Work& work) const {
  std::vector<std::optional<Failure>> failures(size());
  const auto keep_failure = [&](std::size_t copy) {
    try {
      work(copy);
    } catch (const Failure& failure) {
      failures[copy] = failure;
    }
  };
  if (parts_->copies.empty()) {
    work(0);
    return failures;
  }
  for (std::size_t i = 0; i < size(); ++i) {
    Lane& lane = parts_->copies[i]->lane;
    lane = Lane{};
    lane.fiber = std::make_unique<Fiber>([&lane, &keep_failure, i] {
      try {
        keep_failure(i);
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
  return failures;
}

}  // namespace mcds
