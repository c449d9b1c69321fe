// A cache behind a faulty network, on a real server with each transport.
#include <doctest/doctest.h>

#include <array>

#include "common/base/errors.hpp"
#include "common/structures/cache/cache.hpp"
#include "tests/support/fault_proxy.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/sockets.hpp"

namespace mcds::cache_fault_test {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fault;
using Kind = Cache::Answer::Kind;
using Stored = CacheRebuild::Stored;
using Protocol = ConnectOptions::Protocol;

constexpr std::array faults{Fault::lose_request,  Fault::lose_reply, Fault::cut_request,
                            Fault::cut_reply,     Fault::hang_up,    Fault::truncate_reply,
                            Fault::answer_garbage};
const CacheTerms terms{.ttl = seconds(60), .stale = seconds(600), .rebuild_ttl = seconds(30)};

// A client behind the proxy, and a client with a reliable network.
struct World {
  explicit World(Protocol protocol, milliseconds timeout = milliseconds(60))
      : cluster(connect(make_placement("ketama", test::pool_of({proxy.server()})),
                        {.timeout = timeout, .connect_timeout = milliseconds(200), .protocol = protocol})),
        honest(connect(make_placement("ketama", test::pool_of({server.server()})), {})),
        cache(Context{*cluster, clock, random, ""}, "c"),
        theirs(Context{*honest, clock, random, ""}, "c") {
    proxy.garbage("garbage\r\n");
    cache.show();
  }

  void clear() {
    proxy.always(Fault::none);
    test::talk(server.server(), "flush_all\r\n", "OK\r\n");
  }

  test::MemcachedProcess server;
  test::FaultProxy proxy{server.server()};
  SystemClock clock;
  SystemRandom random;
  std::unique_ptr<Cluster> cluster, honest;
  Cache cache, theirs;
};

// Returns true if the output is known to be stored.
bool build(Cache& cache, const std::string& out) {
  try {
    auto answer = cache.ask(terms);
    if (!answer.rebuild) return false;
    CacheRecord record;
    record.out = out;
    const Stored stored = answer.rebuild->store(record);
    answer.rebuild->end(true);
    return stored == Stored::stored;
  } catch (const Failure&) {
    return false;
  }
}

template <typename Test>
void for_each_fault(std::size_t trips, const Test& test) {
  for (const Protocol protocol : {Protocol::classic, Protocol::meta}) {
    World world(protocol);
    for (const Fault fault : faults) {
      for (std::size_t trip = 0; trip < trips; ++trip) {
        CAPTURE(static_cast<int>(protocol));
        CAPTURE(static_cast<int>(fault));
        CAPTURE(trip);
        test(world, [&] { world.proxy.after(trip, fault); });
        world.clear();
      }
    }
  }
}

}  // namespace

TEST_CASE("cache: one fault makes no other value of what is stored, and what is said to be stored is") {
  for_each_fault(7, [](World& world, const auto& inject) {
    inject();
    const bool stored = build(world.cache, "first");
    world.proxy.always(Fault::none);
    const auto shown = world.theirs.show();
    if (stored) REQUIRE(shown.record);
    if (shown.record) CHECK(shown.record->out == "first");
  });
}

TEST_CASE("cache: one fault never undoes an invalidation while it is rebuilt") {
  for (const bool expire : {true, false}) {
    CAPTURE(expire);
    for_each_fault(3, [&](World& world, const auto& inject) {
      REQUIRE(build(world.theirs, "old"));
      REQUIRE(world.theirs.expire());
      auto rebuilding = world.theirs.ask(terms);
      REQUIRE(rebuilding.rebuild);
      inject();
      bool done = false;
      try {
        done = expire ? world.cache.expire() : world.cache.remove();
      } catch (const UnknownOutcome&) {
      } catch (const NotApplied&) {
      }
      world.proxy.always(Fault::none);
      CacheRecord record;
      record.out = "outdated";
      const Stored stored = rebuilding.rebuild->store(record);
      if (done) CHECK(stored == Stored::superseded);
      rebuilding.rebuild->end(true);
      CHECK(world.theirs.ask(terms).kind == (stored == Stored::stored ? Kind::fresh : Kind::rebuild));
    });
  }
}

TEST_CASE("cache: a rebuild that outlives a restart of the server is not stored over what came after") {
  for (const Protocol protocol : {Protocol::classic, Protocol::meta}) {
    World world(protocol, seconds(5));
    auto rebuilding = world.cache.ask(terms);
    REQUIRE(rebuilding.rebuild);
    world.server.restart();
    Cache(Context{*world.honest, world.clock, world.random, "other:"}, "c").show();
    REQUIRE(build(world.theirs, "newer"));
    CacheRecord record;
    record.out = "outdated";
    Stored stored = Stored::superseded;
    try {
      stored = rebuilding.rebuild->store(record);
    } catch (const Failure&) {
    }
    CHECK(stored == Stored::superseded);
    CHECK(world.theirs.show().record->out == "newer");
  }
}

}  // namespace mcds::cache_fault_test
