// Callers and invalidations of one entry, under every fault: one rebuild at a time, no invalidation undone.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/cache/cache.hpp"
#include "tests/support/mistakes.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::cache_simulation {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A rebuild's lease, in true time.
struct Held {
  std::size_t client;
  Duration until;
};

// The source that the command reads, and the guarantees about it.
struct World {
  std::uint64_t version = 1;      // of the source
  std::uint64_t invalidated = 0;  // the newest version with an acknowledged invalidation of its predecessors
  std::uint64_t stored = 0;       // the newest version whose storing was acknowledged
  std::vector<Held> held;
  WallTime fresh_until{};     // of what is certainly stored; 0 while a change is under way
  std::uint64_t changes = 0;  // changes begun, plus invalidations ended
  int invalidations = 0;      // under way: a client that pauses in one may carry it out later
  bool needless = false;      // rebuilt although it was fresh: delayed requests and failures may cause it
  std::string violation;
};

Duration some(Random& random, Duration longest) {
  return Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(longest.count()))));
}

std::uint64_t version_of(const CacheRecord& record) {
  return parse_u64(record.out).value_or(0);
}

// Changes requests in flight, to check that the simulation detects the mistake.
class Spoiled final : public Cluster {
 public:
  using Spoil = void (*)(Request&);
  Spoiled(Cluster& inner, Spoil spoil, const World& world) : inner_(inner), spoil_(spoil), world_(world) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> requests(batch.begin(), batch.end());
    const WallTime fresh_until = world_.fresh_until;
    if (spoil_ != nullptr) std::for_each(requests.begin(), requests.end(), spoil_);
    auto replies = inner_.execute(requests);
    const auto failed = [](const Reply& reply) { return reply.failed(); };
    if (requests.front().op == Op::add && test::is_entry(requests.front())) {
      const bool reported = fresh_until == world_.fresh_until && std::ranges::none_of(replies, failed);
      fresh_at_claim_ = reported ? fresh_until : WallTime{};
    }
    return replies;
  }
  // Returns until when the entry was fresh when its rebuild was last claimed.
  WallTime fresh_at_claim() const { return fresh_at_claim_; }
  const Placement& placement() const override { return inner_.placement(); }

 private:
  Cluster& inner_;
  Spoil spoil_;
  const World& world_;
  WallTime fresh_at_claim_{};
};

class Caller {
 public:
  Caller(Context& context, SimulatedClient& client, World& world, const Spoiled& wire)
      : context_(context), client_(client), world_(world), wire_(wire), cache_(context, "k") {}

  void act() {
    try {
      switch (context_.random.below(6)) {
        case 0: ++world_.version; return invalidate([&] { return cache_.expire(); });
        case 1: ++world_.version; return invalidate([&] { return cache_.remove(); });
        default: return call();
      }
    } catch (const Failure&) {
      context_.clock.sleep_for(some(context_.random, seconds(2)));
    }
  }

 private:
  Duration now() const { return client_.simulation().time().elapsed(); }

  template <typename Action>
  void invalidate(Action action) {
    const std::uint64_t version = world_.version;
    begin_change();
    under_way(action);
    begin_change();
    world_.invalidated = std::max(world_.invalidated, version);
  }

  template <typename Action>
  void under_way(Action action) {
    struct Counted {
      int& count;
      explicit Counted(int& invalidations) : count(++invalidations) {}
      ~Counted() { --count; }
    } const counted(world_.invalidations);
    action();
  }

  void call() {
    const CacheTerms terms{.ttl = milliseconds(500 + 1500 * context_.random.below(3)),
                           .stale = seconds(context_.random.below(4)),
                           .rebuild_ttl = seconds(4 + context_.random.below(3)),
                           .wait = some(context_.random, seconds(3)),
                           .refresh = context_.random.below(8) == 0};
    const std::uint64_t oldest = std::max(world_.invalidated, world_.stored);
    Cache::Answer answer = cache_.ask(terms);
    if (answer.rebuild && !terms.refresh && client_.wall() < wire_.fresh_at_claim()) world_.needless = true;
    if (answer.kind == Cache::Answer::Kind::fresh && version_of(*answer.record) < oldest)
      world_.violation = "a value older than an invalidation or a newer build is fresh";
    if (answer.rebuild) rebuild(*answer.rebuild, terms);
  }

  void rebuild(CacheRebuild& rebuild, const CacheTerms& terms) {
    if (rebuild.lease()) begin(*rebuild.lease());
    CacheRecord record;
    record.out = std::to_string(world_.version);
    const std::uint64_t version = world_.version;
    while (context_.random.below(3) != 0) {
      context_.clock.sleep_for(some(context_.random, terms.rebuild_ttl / 2));
      if (rebuild.lease() && context_.random.below(3) != 0) renew(rebuild);
    }
    const bool succeeded = context_.random.below(4) != 0;
    if (succeeded) store(rebuild, record, version, terms.ttl);
    if (rebuild.lease()) hold(Duration::zero());
    rebuild.end(succeeded);
  }

  std::uint64_t begin_change() {
    world_.fresh_until = WallTime{};
    return ++world_.changes;
  }

  void store(CacheRebuild& rebuild, const CacheRecord& record, std::uint64_t version, Duration ttl) {
    const std::uint64_t before = begin_change();
    const WallTime fresh_until =
        std::chrono::floor<milliseconds>(client_.wall() + std::chrono::floor<std::chrono::microseconds>(ttl));
    if (rebuild.store(record) != CacheRebuild::Stored::stored) return;
    world_.stored = std::max(world_.stored, version);
    if (world_.changes == before && world_.invalidations == 0) world_.fresh_until = fresh_until;
  }

  Duration left(CacheRebuild& rebuild) const { return rebuild.lease()->deadline - client_.steady(); }

  void begin(const Lease& lease) {
    const Duration left = lease.deadline - client_.steady();
    if (left <= Duration::zero()) return;
    if (std::ranges::any_of(world_.held, [&](const Held& held) { return held.until > now(); }))
      world_.violation = "two rebuilds at a time";
    world_.held.push_back({client_.index(), now() + left});
  }

  // Extends our lease, unless it was lost.
  void hold(Duration left) {
    for (Held& held : world_.held) {
      if (held.client == client_.index() && held.until > now()) held.until = now() + left;
    }
  }

  void renew(CacheRebuild& rebuild) {
    if (left(rebuild) <= Duration::zero()) return;
    if (rebuild.lock().renew(*rebuild.lease(), rebuild.lease_ttl()) != Lock::Renewal::renewed) return;
    if (left(rebuild) > Duration::zero()) hold(left(rebuild));
    rebuild.keep();
  }

  Context& context_;
  SimulatedClient& client_;
  World& world_;
  const Spoiled& wire_;
  Cache cache_;
};

struct Setup {
  Faults faults = {};
  bool exclusive = true;  // one rebuild at a time
  bool needed = false;    // no rebuild while it is fresh
  Spoiled::Spoil spoil = nullptr;
};

std::optional<std::string> schedule(std::uint64_t seed, const Setup& setup) {
  Simulation simulation(seed, {.servers = 2, .faults = setup.faults});
  World world;
  for (int i = 0; i < 4; ++i) {
    simulation.client([&](Context& honest, SimulatedClient& client) {
      Spoiled spoiled(honest.cluster, setup.spoil, world);
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix};
      Caller caller(context, client, world, spoiled);
      for (int round = 0; round < 4; ++round) {
        context.clock.sleep_for(some(context.random, seconds(1)));
        caller.act();
      }
    });
  }
  simulation.run();
  if (setup.needed && world.needless) return "rebuilt though it was fresh";
  if (world.violation.empty() || (!setup.exclusive && world.violation.starts_with("two")))
    return std::nullopt;
  return world.violation;
}

void check(const Setup& setup, double share) {
  check_schedules([&](std::uint64_t seed) { return schedule(seed, setup); }, share);
}

bool finds(const Setup& setup) {
  return finds_violation([&](std::uint64_t seed) { return schedule(seed, setup); });
}

// Returns faults after which all clients see the servers alike.
Faults calm() {
  Faults faults = Faults::none();
  faults.pauses = faults.late_ticks = true;
  return faults;
}

}  // namespace

TEST_CASE("cache: one rebuild at a time, no invalidation undone, under every fault but loss of data") {
  check({}, 1);
}

TEST_CASE("cache: no invalidation is undone where servers lose data, too") {
  check({.faults = Faults::all(), .exclusive = false}, 0.5);
}

TEST_CASE("cache: nobody rebuilds what was fresh when it had the lock") {
  check({.faults = calm(), .needed = true}, 0.3);
}

TEST_CASE(
    "cache: the simulation finds a store by set, a lock that is no lock, a placeholder like any other") {
  for (const auto spoil : {test::store_by_set, test::lock_by_set, test::placeholder_of_nobody}) {
    CHECK(finds({.spoil = spoil}));
  }
}

}  // namespace mcds::cache_simulation
