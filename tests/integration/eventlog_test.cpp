// Event logs written by many processes through a proxy that loses replies, and visitors counted by them, on
// real servers. MCDS_TEST_EVENTS sets how many events each of 64 processes puts.
#include <doctest/doctest.h>

#include <atomic>
#include <map>

#include "common/structures/visitors/visitors.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/lossy_pair.hpp"

namespace mcds::eventlog_test {

namespace {

using namespace std::chrono_literals;
using Protocol = ConnectOptions::Protocol;

using test::processes;

// Which events were acknowledged: a bit for each process and event.
struct Acknowledged {
  std::atomic<bool> flags[processes][4096];
};

void write(const Pool& pool, Protocol protocol, std::size_t process, std::size_t times, test::Tally& tally,
           Acknowledged& acknowledged) {
  test::RealClient client(pool, protocol, 200ms);
  EventLog log(client.context(), "x", RingShape{2, 300});
  for (std::size_t i = 0; i < times; ++i) {
    const std::string text = std::to_string(process) + '.' + std::to_string(i);
    // Every eighth is late.
    const auto at = client.clock.wall() - std::chrono::seconds(i % 8 == 7 ? client.random.below(30) : 0);
    acknowledged.flags[process][i] =
        tally.count([&] { log.put(text + std::string(i % 16 == 0 ? 20000 : 20, 'x'), EventData::text, at); });
  }
}

std::string name_of(const std::string& text) {
  return text.substr(0, text.find('x'));
}

void check_exactly_once(Protocol protocol) {
  const std::size_t times = std::min<std::size_t>(test::amount("MCDS_TEST_EVENTS", 100), 4096);
  test::LossyPair servers(0.01);
  const Pool pool = servers.lossy();
  test::Shared<test::Tally> tally;
  test::Shared<Acknowledged> acknowledged;
  test::Children children;
  for (std::size_t process = 0; process < processes; ++process) {
    children.spawn([&, process] { write(pool, protocol, process, times, *tally, *acknowledged); });
  }
  test::RealClient reader(servers.honest(), Protocol::automatic, 2s);
  EventLog log(reader.context(), "x", RingShape{2, 300});
  CursorState state;
  std::map<std::string, int> delivered;
  const auto deliver = [&] {
    CollectingSink sink;
    state = CursorState::parse((log.deliver(state, sink), state.text()), "cursor");
    for (const auto& text : sink.texts()) ++delivered[name_of(text)];
    CHECK(sink.damages.empty());
  };
  for (int i = 0; i < 20; ++i) {
    deliver();
    reader.clock.sleep_for(50ms);
  }
  CHECK(children.wait_all() == 0);
  deliver();
  CollectingSink all;
  log.fetch({}, all);
  std::map<std::string, int> fetched;
  for (const auto& text : all.texts()) ++fetched[name_of(text)];
  std::size_t missing = 0;
  std::size_t repeated = 0;
  for (std::size_t process = 0; process < processes; ++process) {
    for (std::size_t i = 0; i < times; ++i) {
      const std::string name = std::to_string(process) + '.' + std::to_string(i);
      if (!acknowledged->flags[process][i]) continue;
      missing += fetched[name] == 1 && delivered[name] == 1 ? 0 : 1;
    }
  }
  for (const auto& [name, count] : delivered) repeated += count > 1 ? 1 : 0;
  MESSAGE("acknowledged ", tally->acknowledged.load(), ", unknown ", tally->unknown.load(), ", not applied ",
          tally->refused.load(), ", delivered ", delivered.size(), ", faults ", servers.faults());
  CHECK(missing == 0);
  CHECK(repeated == 0);
  CHECK(servers.faults() > 0);
  CHECK(tally->acknowledged + tally->unknown + tally->refused == processes * times);
  CHECK(tally->acknowledged > processes * times / 2);
}

}  // namespace

TEST_CASE(
    "eventlog: 64 processes, lost requests and replies: every acknowledged event is delivered exactly once") {
  SUBCASE("meta") {
    check_exactly_once(Protocol::meta);
  }
  SUBCASE("classic") {
    check_exactly_once(Protocol::classic);
  }
}

TEST_CASE("eventlog: a server restart is a gap, and what is put afterwards is delivered") {
  test::MemcachedProcess memcached;
  test::RealClient client(test::pool_of({memcached.server()}), Protocol::automatic, 1s);
  EventLog log(client.context(), "x", RingShape{60, 60});
  CursorState state;
  CollectingSink sink;
  log.put("before", EventData::text);
  log.deliver(state, sink);
  memcached.restart();
  // The first try may find out that its connection is dead.
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      log.put("after", EventData::text);
      break;
    } catch (const Failure&) {
    }
  }
  log.deliver(state, sink);
  CHECK(sink.texts().front() == "before");
  CHECK(sink.texts().back() == "after");
  CHECK(sink.gaps.size() == 1);
}

TEST_CASE("eventlog: a server without memory refuses, and every acknowledged event is there") {
  test::MemcachedProcess memcached({"-m", "2", "-M"});
  test::RealClient client(test::pool_of({memcached.server()}), Protocol::automatic, 2s);
  EventLog log(client.context(), "x", RingShape{60, 60});
  std::size_t acknowledged = 0;
  try {
    for (; acknowledged < 20000; ++acknowledged) log.put(std::string(1000, 'x'), EventData::text);
  } catch (const NotApplied& refusal) {
    CHECK(refusal.code() == ErrorCode::refused);
  }
  CHECK(acknowledged < 20000);
  CollectingSink sink;
  log.fetch({}, sink);
  CHECK(sink.events.size() == acknowledged);
}

TEST_CASE("visitors: 64 processes, lost replies: acknowledged <= counted <= acknowledged + unknown") {
  const std::size_t times = test::amount("MCDS_TEST_EVENTS", 100);
  test::MemcachedProcess memcached;
  test::FaultProxy proxy(memcached.server());
  proxy.randomly(0.01, {test::Fault::lose_reply});
  test::Shared<test::Tally> tally;
  test::Children children;
  constexpr auto period = 24h * 30;
  for (std::size_t process = 0; process < processes; ++process) {
    children.spawn([&] {
      test::RealClient client(test::pool_of({proxy.server()}), Protocol::automatic, 200ms);
      Visitors visitors(client.context(), "site", period);
      for (std::size_t i = 0; i < times; ++i) {
        tally->count([&] { visitors.hit(); });
      }
    });
  }
  CHECK(children.wait_all() == 0);
  test::RealClient client(test::pool_of({memcached.server()}), Protocol::automatic, 1s);
  const std::uint64_t counted = Visitors(client.context(), "site", period).value().current;
  CHECK(tally->acknowledged <= counted);
  CHECK(counted <= tally->acknowledged + tally->unknown);
  CHECK(proxy.faults() > 0);
}

TEST_CASE("visitors: 16 processes hit with the same ids: each counts once") {
  test::MemcachedProcess memcached;
  test::Children children;
  constexpr auto period = 24h * 30;
  for (int process = 0; process < 16; ++process) {
    children.spawn([&] {
      test::RealClient client(test::pool_of({memcached.server()}), Protocol::automatic, 2s);
      std::vector<std::string> ids;
      for (int i = 0; i < 500; ++i) ids.push_back(std::to_string(i));
      Visitors(client.context(), "site", period).hit(ids);
    });
  }
  CHECK(children.wait_all() == 0);
  test::RealClient client(test::pool_of({memcached.server()}), Protocol::automatic, 1s);
  CHECK(Visitors(client.context(), "site", period).value().current == 500);
}

}  // namespace mcds::eventlog_test
