// Counters with several copies: exact unless they are to be plain, and what clients with another number of copies do.
#include <doctest/doctest.h>

#include <utility>

#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/lives.hpp"
#include "tests/support/world.hpp"

namespace mcds::counter_copies_test {

namespace {

using namespace std::chrono_literals;

const IncrOptions plain{.ttl = {}, .plain = true};
const std::vector<std::string> names{"c"};
constexpr const char* key = "counter:c";

std::optional<std::uint64_t> value_of(const Context& context, const std::string& name = "c") {
  const auto reading = Counter(context).get(std::vector<std::string>{name}).front();
  if (reading.failure) raise(*reading.failure);
  return reading.value ? std::optional(reading.value->value) : std::nullopt;
}

bool is_exact(const Context& context) {
  return Counter(context).get(names).front().value->exact;
}

bool is_refused(const std::function<void()>& work) {
  const auto failure = attempt(work).failure();
  return failure && failure->code() == ErrorCode::bad_data;
}

std::uint32_t flags_on(test::World& world, std::size_t server) {
  return world.memory.execute(Request::gets(key).on(server)).flags;
}

}  // namespace

TEST_CASE("counter copies: exact by default, in three trips; plain if told so, as a whole key, or set") {
  test::World world(3, 2);
  Counter counter(world.context);
  CHECK(world.trips.trips_of([&] { CHECK(counter.incr("c", 5).exact); }) == 3);
  CHECK(world.trips.trips_of([&] { CHECK(counter.incr("c", 1, plain).exact); }) == 3);
  CHECK(world.trips.trips_of([&] { CHECK_FALSE(counter.incr("p", 5, plain).exact); }) == 2);
  CHECK(world.trips.trips_of([&] { CHECK_FALSE(counter.incr("p", 1).exact); }) == 2);
  counter.set("s", 5, std::nullopt, false);
  CHECK_FALSE(counter.incr("s", 1).exact);
  Counter whole(world.context, Counter::Names::whole_keys);
  CHECK_FALSE(whole.incr("page:7", 5).exact);
  CHECK(value_of(world.context) == 6);
  CHECK(value_of(world.context, "p") == 6);
  CHECK(value_of(world.context, "s") == 6);
}

TEST_CASE("counter copies: a batch of exact ones costs as many trips as one") {
  test::World world(3, 2);
  Counter counter(world.context);
  counter.incr("n7", 1, plain);
  counter.set("n8", 3, std::nullopt, false);
  std::vector<Increment> batch;
  for (int i = 0; i < 100; ++i) batch.push_back({"n" + std::to_string(i % 50), 2});
  IncrementResults results;
  CHECK(world.trips.trips_of([&] { results = counter.incr(batch); }) == 3);
  REQUIRE(results.of_names.size() == 50);
  for (const IncrementResult& result : results.of_names) {
    const std::uint64_t before = result.name == "n7" ? 1 : result.name == "n8" ? 3 : 0;
    CHECK(result.value->value == before + 4);
    CHECK(value_of(world.context, result.name) == before + 4);
  }
}

TEST_CASE("counter copies: exact ones are decreased and set where a client misses one server") {
  for (const std::size_t copies : {2U, 3U}) {
    for (const auto mishap :
         {test::Mishap::unreachable, test::Mishap::lost_request, test::Mishap::lost_reply}) {
      for (std::size_t away = 0; away < 3; ++away) {
        CAPTURE(copies);
        CAPTURE(away);
        test::World world(3, copies);
        Counter counter(world.context);
        counter.incr("c", 100);
        world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
          if (world.memory.server_of(request) == away) return mishap;
          return std::nullopt;
        });
        const auto done = attempt([&] { return counter.decr("c", 7)->value; });
        world.faults.choose(nullptr);
        const std::uint64_t left = *value_of(world.others);
        if (done.failure())
          CHECK(
              (mishap != test::Mishap::unreachable && done.failure()->code() == ErrorCode::unknown_outcome));
        else
          CHECK(left == 93);
        CHECK(counter.decr("c", left + 1)->value == 0);
        CHECK(value_of(world.others) == 0);
        CHECK(is_exact(world.others));
        counter.incr("c", 4);
        world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
          if (world.memory.server_of(request) == away) return mishap;
          return std::nullopt;
        });
        CHECK(counter.set("c", 50, std::nullopt, false).stored);
        world.faults.choose(nullptr);
        CHECK(value_of(world.others) == 50);
        CHECK(counter.incr("c", 1).value == 51);
        CHECK(is_exact(world.others));
        CHECK_FALSE(counter.set("c", 7, std::nullopt, true).stored);
      }
    }
  }
  test::World world(3, 2);
  CHECK_FALSE(Counter(world.context).decr("c", 1));
}

TEST_CASE("counter copies: what was set with an expiry ends") {
  test::World world(3, 2);
  Counter counter(world.context);
  counter.incr("c", 5);
  counter.set("c", 7, 10s, false);
  counter.incr("c", 1);
  CHECK(value_of(world.context) == 8);
  world.clock.advance(12s);
  CHECK_FALSE(value_of(world.context));
}

TEST_CASE(
    "counter copies: an increment is written again if its only copy is lost before the others are told") {
  test::World world(3, 2);
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, key);
  bool lost = false;
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (lost || request.op != Op::add || request.server != servers[1]) return std::nullopt;
    lost = true;
    world.memory.restart(servers[0]);
    return test::Mishap::lost_request;
  });
  const CounterValue value = counter.incr("c", 5);
  CHECK(lost);
  CHECK(value.value == 5);
  CHECK(value_of(world.others) == 5);
}

TEST_CASE("counter copies: a copy created while the others were away joins the life they are in") {
  test::World world(3, 2);
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, key);
  counter.incr("c", 5);
  counter.set("c", 100, std::nullopt, false);
  world.memory.restart(servers[0]);
  world.memory.stop(servers[1]);
  CHECK(counter.incr("c", 3).value == 3);
  world.memory.proceed(servers[1]);
  CHECK(value_of(world.context) == 103);
  CHECK(flags_on(world, servers[0]) == flags_on(world, servers[1]));
}

TEST_CASE("counter copies: a set that meets a life it could not see counts after it") {
  test::World world(3, 2);
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, key);
  counter.incr("c", 5);
  world.memory.restart(servers[0]);
  world.memory.stop(servers[1]);
  counter.incr("c", 4);
  counter.set("c", 1500, std::nullopt, false);
  world.memory.proceed(servers[1]);
  bool silent = false, lost = false;
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.server == servers[0] && !std::exchange(silent, true)) return test::Mishap::unreachable;
    if (request.op == Op::cas && !std::exchange(lost, true)) return test::Mishap::lost_request;
    return std::nullopt;
  });
  CHECK(counter.set("c", 20, std::nullopt, false).stored);
  CHECK(lost);
  CHECK(value_of(world.others) == 20);
}

TEST_CASE("counter copies: nothing that was counted in one copy is lost by an increment with two") {
  test::World world(3, 2);
  Counter alone(world.with(1));
  alone.incr("c", 100);
  CHECK(Counter(world.context).incr("c", 1).value == 101);
  CHECK(value_of(world.with(1)) == 101);
  CHECK(value_of(world.context) == 101);
}

TEST_CASE("counter copies: a removal or decrement with fewer copies than there are reaches them all") {
  enum class Made { exact, plain, set };
  for (const Made made : {Made::exact, Made::plain, Made::set}) {
    for (const auto& [kept, other] : {std::pair{2U, 1U}, {3U, 1U}, {3U, 2U}}) {
      CAPTURE(kept);
      CAPTURE(other);
      test::World world(4, kept);
      Counter counter(world.context);
      Counter fewer(world.with(other));
      const auto make = [&] {
        if (made == Made::set)
          counter.set("c", 5, std::nullopt, false);
        else
          counter.incr("c", 5, {.ttl = {}, .plain = made == Made::plain});
      };
      make();
      if (made == Made::exact && other == 1)
        CHECK(is_refused([&] { fewer.decr("c", 2); }));
      else
        CHECK(fewer.decr("c", 2)->value == 3);
      CHECK(value_of(world.context) == (made == Made::exact && other == 1 ? 5 : 3));
      CHECK(fewer.remove(names).front().removed);
      CHECK_FALSE(value_of(world.context));
      CHECK_FALSE(fewer.remove(names).front().removed);
      make();
      CHECK(value_of(world.context) == 5);
      if (other == 1) {
        CHECK(is_refused([&] { fewer.set("c", 9, std::nullopt, false); }));
        CHECK(is_refused([&] { fewer.take("c"); }));
        CHECK(value_of(world.context) == 5);
      } else {
        fewer.set("c", 9, std::nullopt, false);
        CHECK(value_of(world.context) == 9);
      }
    }
  }
}

TEST_CASE("counter copies: what one copy began and two went on with is not changed in one copy alone") {
  for (const bool ends : {false, true}) {
    test::World world(3, 2);
    Counter alone(world.with(1));
    Counter counter(world.context);
    alone.incr("c", 100, {.ttl = ends ? std::optional<Duration>(1h) : std::nullopt});
    counter.incr("c", 1);
    CHECK(is_refused([&] { alone.take("c"); }));
    CHECK(alone.decr("c", 1)->value == 100);
    CHECK(value_of(world.context) == 100);
    CHECK(alone.remove(names).front().removed);
    CHECK_FALSE(value_of(world.context));
  }
}

TEST_CASE(
    "counter copies: after the removal of an exact one the next is exact, and a plain one of one copy "
    "counts") {
  test::World world(3, 2);
  Counter counter(world.context);
  Counter alone(world.with(1));
  counter.incr("c", 5);
  counter.remove(names);
  CHECK(counter.incr("c", 2, plain).exact);
  CHECK(value_of(world.context) == 2);
  counter.remove(names);
  CHECK_FALSE(value_of(world.with(1)));
  CHECK_FALSE(alone.decr("c", 1));
  CHECK_FALSE(alone.remove(names).front().removed);
  CHECK(alone.incr("c", 1).value == 1);
  CHECK(value_of(world.context) == 1);
  alone.set("c", 17, std::nullopt, false);
  CHECK(value_of(world.context) == 17);
  CHECK(counter.decr("c", 2)->value == 15);
  CHECK(counter.incr("c", 1).value == 16);
  CHECK(counter.remove(names).front().removed);
  CHECK_FALSE(value_of(world.context));
}

TEST_CASE("counter copies: an increment or a read that a set overtakes does not undo it") {
  for (const bool reads : {false, true}) {
    CAPTURE(reads);
    test::World world(3, 2);
    const auto servers = copy_servers(world.context, key);
    if (reads) {
      world.memory.stop(servers[0]);
      Counter(world.others).incr("c", 7);
      world.memory.proceed(servers[0]);
    }
    bool overtaken = false;
    world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      if (request.op != Op::add || request.server != servers[reads ? 0 : 1]) return std::nullopt;
      if (std::exchange(overtaken, true)) return std::nullopt;
      Counter(world.others).set("c", 100, std::nullopt, false);
      for (int i = 0; i < 3; ++i) Counter(world.others).incr("c", 1);
      return std::nullopt;
    });
    if (reads)
      CHECK(value_of(world.context) == 103);
    else
      CHECK(Counter(world.context).incr("c", 1).value >= 1);
    CHECK(overtaken);
    CHECK(value_of(world.others) == 103);
  }
}

TEST_CASE(
    "counter copies: a lost reply is unknown where the copies are of different lives, and not sent again") {
  test::World world(3, 2);
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, key);
  counter.incr("c", 1);
  world.memory.restart(servers[1]);
  world.memory.stop(servers[0]);
  counter.set("c", 100, std::nullopt, false);
  world.memory.proceed(servers[0]);
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.op == Op::incr_or_create && request.server == servers[1]) return test::Mishap::lost_reply;
    return std::nullopt;
  });
  CHECK_THROWS_AS(counter.incr("c", 1), UnknownOutcome);
  world.faults.choose(nullptr);
  CHECK(value_of(world.others) == 101);
}

TEST_CASE("counter copies: a removal holds where a copy that was away has counted by itself") {
  for (const bool set : {false, true}) {
    CAPTURE(set);
    test::World world(3, 2);
    Counter counter(world.context);
    const auto servers = copy_servers(world.context, key);
    counter.incr("c", 1);
    world.memory.stop(servers[0]);
    if (set)
      counter.set("c", 100, std::nullopt, false);
    else
      counter.incr("c", 5);
    world.memory.proceed(servers[0]);
    world.memory.stop(servers[1]);
    CHECK(counter.remove(names).front().removed);
    world.memory.proceed(servers[1]);
    CHECK_FALSE(value_of(world.context));
    CHECK(counter.incr("c", 2).value == 2);
  }
}

TEST_CASE("counter copies: one copy that knows of others does not vouch for them while they are away") {
  test::World world(3, 2);
  Counter counter(world.context);
  Counter alone(world.with(1));
  const auto servers = copy_servers(world.context, key);
  for (const bool exact : {false, true}) {
    counter.incr("c", 10, {.ttl = {}, .plain = !exact});
    world.memory.stop(servers[1]);
    CHECK_THROWS_AS(alone.set("c", 3, std::nullopt, false), NotApplied);
    CHECK_THROWS_AS(alone.take("c"), NotApplied);
    if (!exact) CHECK_THROWS_AS(alone.decr("c", 4), UnknownOutcome);
    CHECK(alone.remove(names).front().failure->code() == ErrorCode::unknown_outcome);
    world.memory.proceed(servers[1]);
    counter.remove(names);
  }
}

TEST_CASE("counter copies: what a removal says") {
  test::World world(3, 2);
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, key);
  counter.set("c", 5, std::nullopt, false);
  const auto twice = counter.remove(std::vector<std::string>{"c", "c"});
  CHECK(twice[0].removed);
  CHECK_FALSE(twice[1].removed);
  for (const std::size_t server : servers)
    world.memory.execute(Request::set(key, "hello", Exptime::never()).on(server));
  CHECK(counter.remove(names).front().removed);
  counter.set("c", 5, std::nullopt, false);
  world.memory.stop(servers[1]);
  CHECK(counter.remove(names).front().removed);
  world.memory.proceed(servers[1]);
  CHECK_FALSE(counter.decr("c", 1));
}

TEST_CASE("counter copies: one copy costs no trip more for it, whoever wrote its flags") {
  test::World world(3, 1);
  Counter counter(world.context);
  counter.incr("c", 5);
  CHECK(world.trips.trips_of([&] { CHECK(counter.decr("c", 1)->value == 4); }) == 1);
  CHECK(world.trips.trips_of([&] { CHECK(counter.remove(names).front().removed); }) == 1);
  Request theirs = Request::set(key, "41", Exptime::never());
  theirs.flags = 2;
  world.context.cluster.execute(theirs);
  CHECK(counter.decr("c", 1)->value == 40);
  CHECK(world.memory.execute(Request::gets(key)).flags == 2);
  CHECK(counter.remove(names).front().removed);
  CHECK_FALSE(counter.remove(names).front().removed);
}

}  // namespace mcds::counter_copies_test
