// Many callers of one entry, some of which invalidate it, under every fault: one rebuild at a time, and no
// invalidation undone. The same for two copies, also while one server after the other is away and comes back
// empty.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

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
  std::size_t server;
  Duration since, until;
};

// An invalidation that missed a copy: who reaches a server that has word of it reads nothing older.
struct Word {
  std::uint64_t version;
  std::set<std::size_t> servers;
};

// The source the command reads, and what was promised about it.
struct World {
  std::uint64_t version = 1;      // of the source
  std::uint64_t invalidated = 0;  // the newest version whose predecessors were invalidated, acknowledged
  std::vector<Word> words;
  std::uint64_t stored = 0;  // the newest version stored, acknowledged
  std::vector<Held> held;
  std::optional<std::size_t> away;  // the server nobody reaches now
  std::set<std::size_t> lost;       // servers that lost everything since the last store
  std::map<std::size_t, Duration> lost_at;
  WallTime fresh_until{};      // of what is surely stored; 0 while somebody changes it
  std::uint64_t changes = 0;   // begun, and invalidations ended
  int invalidations = 0;       // under way: whoever stands still in one may carry it out later
  std::size_t lost_count = 0;  // servers that went away so far
  bool needless = false;       // rebuilt though it was fresh: what ghosts and failures may bring about
  std::string violation;
};

constexpr std::size_t copy_count = 2;

Duration some(Random& random, Duration longest) {
  return Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(longest.count()))));
}

std::uint64_t version_of(const CacheRecord& record) {
  return parse_u64(record.out).value_or(0);
}

const std::string lock_key = "cache:k:rebuild";

enum class Mistake { none, no_look_behind };

// Spoils the requests on their way, to see that the simulation would notice.
class Spoiled final : public Cluster {
 public:
  using Spoil = void (*)(Request&);
  Spoiled(Cluster& inner, Spoil spoil, Mistake mistake, const World& world, Simulation& simulation)
      : inner_(inner), spoil_(spoil), mistake_(mistake), world_(world), simulation_(simulation) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> requests(batch.begin(), batch.end());
    const WallTime fresh_until = world_.fresh_until;
    if (spoil_ != nullptr) std::for_each(requests.begin(), requests.end(), spoil_);
    note_question(requests);
    auto replies = reach(requests);
    note_silence(requests, replies);
    if (requests.front().op == Op::add && test::is_entry(requests.front()))
      fresh_at_claim_ = fresh_until == world_.fresh_until && all_answered(replies) ? fresh_until : WallTime{};
    return replies;
  }
  // Until when the entry was fresh when its rebuild was claimed last.
  WallTime fresh_at_claim() const { return fresh_at_claim_; }
  // When the lock was last asked for.
  Duration asked_at() const { return asked_at_; }
  // Whether this server did not answer then.
  bool was_silent(std::size_t server) const { return silent_.contains(server); }
  const Placement& placement() const override { return inner_.placement(); }

 private:
  // All that are there: a connection from before a server's restart is reset once more.
  bool all_answered(const std::vector<Reply>& replies) const {
    return std::none_of(replies.begin(), replies.end(),
                        [&](const Reply& reply) { return reply.failed() && reply.server != world_.away; });
  }

  // The first time, with a look at the other server; not when a lost reply is followed up.
  void note_question(const std::vector<Request>& requests) {
    const auto asks = [&](Op op, bool first) {
      return std::any_of(requests.begin(), requests.end(), [&](const Request& request) {
        return request.op == op && request.key == lock_key &&
               (server_of(request) == placement().server_of(lock_key)) == first;
      });
    };
    if (!asks(Op::add, true) || !asks(Op::get, false)) return;
    asked_at_ = simulation_.time().elapsed();
    silent_.clear();
  }

  void note_silence(const std::vector<Request>& requests, const std::vector<Reply>& replies) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].key == lock_key && replies[i].failed()) silent_.insert(replies[i].server);
    }
  }

  // All that go to servers that are there.
  std::vector<Reply> reach(const std::vector<Request>& requests) {
    std::vector<Request> sent;
    const auto away = world_.away;
    for (const Request& request : requests) {
      if (server_of(request) != away) sent.push_back(request);
    }
    auto answers = sent.empty() ? std::vector<Reply>() : inner_.execute(sent);
    std::vector<Reply> replies;
    auto answer = answers.begin();
    for (const Request& request : requests) {
      if (server_of(request) == away)
        replies.push_back(Reply::failed_with(ReplyFailure::Kind::unreachable, "away", *away));
      else
        replies.push_back(std::move(*answer++));
      if (server_of(request) != away && server_of(request) == world_.away)
        replies.back() = Reply::failed_with(ReplyFailure::Kind::unknown, "went away", *world_.away);
      if (mistake_ == Mistake::no_look_behind && request.op == Op::get && request.key == lock_key)
        replies.back() = Reply::of(Outcome::miss, replies.back().server);
    }
    return replies;
  }

  Cluster& inner_;
  Spoil spoil_;
  Mistake mistake_;
  const World& world_;
  Simulation& simulation_;
  WallTime fresh_at_claim_{};
  Duration asked_at_{};
  std::set<std::size_t> silent_;
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
    const std::size_t losses = world_.lost_count;
    const Cache::Invalidation result = under_way(action);
    begin_change();
    if (result.failure) return;
    Word word{version, {}};
    for (const CopyOutcome& copy : result.copies) {
      if (!copy.failure) word.servers.insert(copy.server);
    }
    if (word.servers.size() == result.copies.size())
      world_.invalidated = std::max(world_.invalidated, version);
    else if (losses == world_.lost_count)
      world_.words.push_back(std::move(word));
  }

  template <typename Action>
  Cache::Invalidation under_way(Action action) {
    struct Counted {
      int& count;
      explicit Counted(int& invalidations) : count(++invalidations) {}
      ~Counted() { --count; }
    } const counted(world_.invalidations);
    return action();
  }

  void call() {
    const CacheTerms terms{.ttl = milliseconds(500 + 1500 * context_.random.below(3)),
                           .stale = seconds(context_.random.below(4)),
                           .rebuild_ttl = seconds(4 + context_.random.below(3)),
                           .wait = some(context_.random, seconds(3)),
                           .refresh = context_.random.below(8) == 0};
    const std::uint64_t oldest = std::max(world_.invalidated, world_.stored);
    const std::size_t words = world_.words.size();
    Cache::Answer answer = cache_.ask(terms);
    if (answer.rebuild && !terms.refresh && client_.wall() < wire_.fresh_at_claim()) world_.needless = true;
    if (answer.kind == Cache::Answer::Kind::fresh && version_of(*answer.record) < oldest)
      world_.violation = "a value older than an invalidation or a newer build is fresh";
    if (answer.kind == Cache::Answer::Kind::fresh) check_words(answer, words);
    if (answer.rebuild) rebuild(*answer.rebuild, terms);
  }

  // Of those that were left before it asked.
  void check_words(const Cache::Answer& answer, std::size_t words) const {
    for (std::size_t i = 0; i < words; ++i) {
      const Word& word = world_.words[i];
      const bool heard = std::any_of(
          answer.copies.begin(), answer.copies.end(),
          [&](const CopyOutcome& copy) { return !copy.failure && word.servers.contains(copy.server); });
      if (heard && version_of(*answer.record) < word.version)
        world_.violation = "a value is fresh that is older than an invalidation of which there was word";
    }
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
    const auto lost = std::exchange(world_.lost, {});
    if (rebuild.store(record) != CacheRebuild::Stored::stored) {
      world_.lost.insert(lost.begin(), lost.end());
      return;
    }
    const auto misses = [](const CopyOutcome& copy) { return copy.failure || !*copy.yes; };
    if (std::any_of(rebuild.copies().begin(), rebuild.copies().end(), misses)) return;
    world_.stored = std::max(world_.stored, version);
    const bool undisturbed = world_.changes == before && world_.invalidations == 0;
    if (undisturbed && world_.lost.empty()) world_.fresh_until = fresh_until;
  }

  Duration left(CacheRebuild& rebuild) const { return rebuild.lease()->deadline - client_.steady(); }

  // Where servers come back, who asked before another had the lock may have missed it, and who got no answer,
  // too.
  void begin(const Lease& lease) {
    const Duration left = lease.deadline - client_.steady();
    const std::size_t server = lease.copies.front().server;
    const auto lost = world_.lost_at.find(server);
    const bool forgotten = lost != world_.lost_at.end() && lost->second >= wire_.asked_at();
    if (left <= Duration::zero() || forgotten) return;
    for (const Held& held : world_.held) {
      if (held.until <= now()) continue;
      const bool told = held.since < wire_.asked_at() && !wire_.was_silent(held.server);
      if (told || world_.lost_count == 0) world_.violation = "two rebuilds at a time";
    }
    world_.held.push_back({client_.index(), server, now(), now() + left});
  }

  // Our lease, unless it was lost.
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

// One server after the other is away for a while and comes back empty.
void lose_servers(Context& context, SimulatedClient& client, World& world) {
  const auto copies = copy_servers(context, "cache:k");
  for (int i = 0; i < 4; ++i) {
    client.sleep_for(some(context.random, seconds(3)));
    const std::size_t server = context.random.below(copy_count + 1);
    ++world.lost_count;
    world.away = server;
    world.lost_at[server] = client.simulation().time().elapsed();
    for (Held& held : world.held) {
      if (held.server == server) held.until = Duration::zero();
    }
    world.lost.insert(server);
    for (Word& word : world.words) word.servers.erase(server);
    if (std::all_of(copies.begin(), copies.end(),
                    [&](std::size_t one) { return world.lost.contains(one); })) {
      world.fresh_until = WallTime{};
      ++world.changes;
    }
    if (context.random.below(2) == 0) client.sleep_for(some(context.random, seconds(4)));
    client.simulation().servers().restart(server);
    world.away.reset();
  }
}

struct Setup {
  Faults faults = {};
  bool exclusive = true;  // one rebuild at a time
  bool needed = false;    // none while it is fresh
  std::size_t copies = 1;
  bool loses_servers = false;
  Spoiled::Spoil spoil = nullptr;
  Mistake mistake = Mistake::none;
};

std::optional<std::string> schedule(std::uint64_t seed, const Setup& setup) {
  Simulation simulation(seed, {.servers = setup.copies + 1, .faults = setup.faults});
  World world;
  for (int i = 0; i < 4; ++i) {
    simulation.client([&](Context& honest, SimulatedClient& client) {
      Spoiled spoiled(honest.cluster, setup.spoil, setup.mistake, world, simulation);
      Context context{spoiled, honest.clock, honest.random, honest.key_prefix, setup.copies};
      Caller caller(context, client, world, spoiled);
      for (int round = 0; round < 4; ++round) {
        context.clock.sleep_for(some(context.random, seconds(1)));
        caller.act();
      }
    });
  }
  if (setup.loses_servers) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      Context twice = context;
      twice.copies = setup.copies;
      lose_servers(twice, client, world);
    });
  }
  simulation.run();
  // Word may be evicted; and with clocks that differ a build may count as newer than word that came after it
  // began.
  const bool words_count = !setup.faults.evictions && !setup.faults.client_skew;
  if (!words_count && world.violation.ends_with("of which there was word")) world.violation.clear();
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

// Nobody's view of the servers differs from another's.
Faults calm() {
  Faults faults = Faults::none();
  faults.pauses = faults.late_ticks = true;
  return faults;
}

Faults same_clocks() {
  Faults faults;
  faults.client_skew = false;
  return faults;
}

Faults calm_with_deaths() {
  Faults faults = calm();
  faults.kills = faults.client_skew = true;
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

TEST_CASE("cache, copies: no invalidation is undone, nothing older is fresh, under every fault") {
  check({.exclusive = false, .copies = copy_count}, 0.1);
  check({.faults = Faults::all(), .exclusive = false, .copies = copy_count}, 0.1);
  check({.faults = same_clocks(), .exclusive = false, .copies = copy_count}, 0.1);
}

TEST_CASE("cache, copies: one rebuild at a time, and none needless, where all see the same servers") {
  check({.faults = calm(), .needed = true, .copies = copy_count}, 0.1);
  check({.faults = calm_with_deaths(), .copies = copy_count}, 0.1);
}

TEST_CASE(
    "cache, copies: one server after the other away and back empty: one rebuild while the lock's server is "
    "there, hits "
    "while a copy is") {
  check({.faults = calm(), .needed = true, .copies = copy_count, .loses_servers = true}, 0.1);
  check({.faults = calm_with_deaths(), .copies = copy_count, .loses_servers = true}, 0.1);
}

TEST_CASE(
    "cache, copies: the simulation finds a store by set, who does not look behind a server that came back, "
    "and a removal without word of it") {
  CHECK(finds({.exclusive = false, .copies = copy_count, .spoil = test::store_by_set}));
  CHECK(finds(
      {.faults = calm(), .copies = copy_count, .loses_servers = true, .mistake = Mistake::no_look_behind}));
  CHECK(finds(
      {.faults = same_clocks(), .exclusive = false, .copies = copy_count, .spoil = test::remove_at_once}));
}

}  // namespace mcds::cache_simulation
