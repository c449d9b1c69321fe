// Counters bumped by many processes, on real servers. MCDS_TEST_INCREMENTS sets how often each of 64 does it.
#include "common/structures/counter/counter.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "tests/support/lossy_pair.hpp"

namespace mcds::counter_test {

namespace {

using namespace std::chrono_literals;
using Protocol = ConnectOptions::Protocol;

using test::processes;

void bump(const Server& server, Protocol protocol, const IncrOptions& options, std::size_t times,
          test::Tally& tally, Duration timeout = 100ms) {
  test::RealClient client(test::pool_of({server}), protocol, timeout);
  Counter counter(client.context());
  for (std::size_t i = 0; i < times; ++i) {
    tally.count([&] { counter.incr("hits", 1, options); });
  }
}

std::uint64_t value_at(const Server& server) {
  test::RealClient client(test::pool_of({server}), Protocol::automatic, 30s);
  const std::vector<std::string> names{"hits"};
  return Counter(client.context()).get(names).front().value;
}

void check_many_processes(Protocol protocol, const IncrOptions& options, std::size_t times) {
  test::MemcachedProcess memcached;
  test::FaultProxy proxy(memcached.server());
  proxy.randomly(0.01, {test::Fault::lose_reply});
  test::Shared<test::Tally> tally;
  test::Children children;
  for (std::size_t i = 0; i < processes; ++i) {
    children.spawn([&] { bump(proxy.server(), protocol, options, times, *tally); });
  }
  CHECK(children.wait_all() == 0);
  const std::uint64_t value = value_at(memcached.server());
  MESSAGE("acknowledged ", tally->acknowledged.load(), ", unknown ", tally->unknown.load(), ", not applied ",
          tally->refused.load(), ", value ", value, ", faults ", proxy.faults());
  CHECK(tally->acknowledged + tally->unknown + tally->refused == processes * times);
  CHECK(proxy.faults() > 0);
  CHECK(tally->acknowledged <= value);
  CHECK(value <= tally->acknowledged + tally->unknown);
}

}  // namespace

TEST_CASE("counter: 64 processes, 1 % of the replies lost: acknowledged <= value <= acknowledged + unknown") {
  const std::size_t times = test::amount("MCDS_TEST_INCREMENTS", 200);
  SUBCASE("meta") {
    check_many_processes(Protocol::meta, {}, times);
  }
  SUBCASE("classic") {
    check_many_processes(Protocol::classic, {}, times);
  }
  SUBCASE("exact") {
    check_many_processes(Protocol::meta, {.ttl = {}, .exact = true}, times / 20);
  }
}

TEST_CASE("counter: takes by rivals lose no increment and answer none twice") {
  test::MemcachedProcess memcached;
  test::Shared<test::Tally> added;
  test::Shared<std::atomic<std::uint64_t>> taken;
  test::Children children;
  const std::size_t times = test::amount("MCDS_TEST_INCREMENTS", 200);
  for (int i = 0; i < 8; ++i) {
    children.spawn([&] { bump(memcached.server(), Protocol::automatic, {}, times, *added, 30s); });
  }
  for (int i = 0; i < 4; ++i) {
    children.spawn([&] {
      test::RealClient client(test::pool_of({memcached.server()}), Protocol::automatic, 30s);
      for (std::size_t j = 0; j < times; ++j) {
        *taken += Counter(client.context()).take("hits").value;
      }
    });
  }
  CHECK(children.wait_all() == 0);
  CHECK(added->unknown + added->refused == 0);
  CHECK(*taken + value_at(memcached.server()) == added->acknowledged);
}

}  // namespace mcds::counter_test
