#include "common/structures/counter/counter.hpp"

#include <doctest/doctest.h>

#include "common/base/bytes.hpp"
#include "common/structures/counter/record.hpp"
#include "tests/support/counters.hpp"
#include "tests/support/world.hpp"

namespace mcds::counter_test {

namespace {

using namespace std::chrono_literals;

struct World : test::World {
  explicit World(std::size_t servers = 1) : test::World(servers) {}
  Counter counter() { return Counter(context); }
};

const IncrOptions exact{.ttl = {}, .exact = true};

CounterRecord single() {
  SeededRandom random{1};
  return CounterRecord::of_new_incarnation(true, random);
}

}  // namespace

TEST_CASE("counter: a record reads back, and no damaged one does") {
  CounterRecord record = single();
  for (int i = 0; i < 70; ++i) record.count(2, "00000000000000" + std::to_string(10 + i));
  record.base.expires_at = 1795234800;
  const std::string text = record.text();
  CHECK(text.starts_with("C1 70 140 0000000000000016,"));
  const auto read = CounterRecord::parse(text);
  REQUIRE(read);
  CHECK(read->text() == text);
  CHECK(read->sum() == 140);
  CHECK(read->ids.size() == CounterRecord::kept_ids);
  CHECK(read->ids.back() == "0000000000000079");
  CHECK(read->ids.front() == "0000000000000016");
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    CHECK_FALSE(CounterRecord::parse(damaged));
    CHECK_FALSE(CounterRecord::parse(text.substr(0, i)));
  }
}

TEST_CASE("counter: a record tells whether a change was made among the last 64 of its life only") {
  const std::string lost = "00000000000000aa";
  CounterRecord record = single();
  record.count(1, "0000000000000001");
  CHECK(record.tells("0000000000000001", record.incarnation, 0) == true);
  for (int i = 0; i < 64; ++i) {
    CHECK(record.tells(lost, record.incarnation, 1) == false);
    record.count(1, "00000000000000" + std::to_string(10 + i));
  }
  CHECK(record.tells(lost, record.incarnation, 1) == false);
  record.count(1, "0000000000000002");
  CHECK_FALSE(record.tells(lost, record.incarnation, 1));
  // The counter has been created again since, or in another copy.
  CHECK_FALSE(record.tells(lost, record.incarnation, record.changes() + 1));
  CHECK_FALSE(record.tells(lost, "00000000000000a1", record.changes()));
}

TEST_CASE("counter: decr's padding is a number, texts that incr would overwrite are not") {
  CHECK(parse_padded_u64("9  ") == 9);
  for (const char* text : {"", " ", "+5", " 5", "5 abc", "-1", "18446744073709551616"})
    CHECK_FALSE(parse_padded_u64(text));
}

TEST_CASE("counter: names that need several trips share more of them where the servers are distant") {
  const auto trips_to_create = [](Duration trip) {
    World world(3);
    world.rival.always([&] { world.clock.advance(trip); });
    std::vector<Increment> batch;
    for (int i = 0; i < 2000; ++i) batch.push_back({"c" + std::to_string(i), 1});
    return world.trips.trips_of([&] {
      Counter counter(world.with(3));
      for (const IncrementResult& one : counter.begin_incr(batch)().of_names) CHECK(one.answer.done);
    });
  };
  const std::size_t near = trips_to_create(1ms), distant = trips_to_create(21ms);
  CHECK(near >= 2000 / Counter::max_concurrent * 3);
  CHECK(distant * 4 < near);
}

TEST_CASE("counter: decr leaves text as it was that begins with a number, with its flags") {
  World world;
  for (const char* text : {"12 apples", " 7", "+5"}) {
    Request request = Request::set("counter:a", text, Exptime::never());
    request.flags = 9;
    world.memory.execute(request);
    CHECK_THROWS_AS(world.counter().decr("a", 1), CorruptData);
    const Reply left = world.memory.execute(Request::get("counter:a"));
    CHECK(left.value == text);
    CHECK(left.flags == 9);
  }
}

TEST_CASE("counter: take and set leave an application's flags as they were") {
  World world;
  Request request = Request::set("views", "5", Exptime::never());
  request.flags = 2;
  world.memory.execute(request);
  Counter counter(world.context, Counter::Names::whole_keys);
  CHECK(counter.take("views").value == 5);
  CHECK(world.memory.execute(Request::get("views")).flags == 2);
  counter.set("views", 7, std::nullopt, false);
  CHECK(world.memory.execute(Request::get("views")).flags == 2);
}

TEST_CASE("counter: round trips are as promised") {
  World world;
  Counter counter = world.counter();
  const auto trips = [&](auto action) { return world.trips.trips_of(action); };
  const std::vector<std::string> names{"a", "e"};
  CHECK(trips([&] { counter.incr("a", 1); }) == 1);
  CHECK(trips([&] { counter.incr("a", 1); }) == 1);
  CHECK(trips([&] { counter.incr("e", 1, exact); }) == 2);
  CHECK(trips([&] { counter.incr("e", 1, exact); }) == 2);
  CHECK(trips([&] { counter.incr("e", 1); }) == 3);
  CHECK(trips([&] { counter.decr("a", 1); }) == 1);
  CHECK(trips([&] { counter.get(names); }) == 1);
  CHECK(trips([&] { counter.set("a", 5, {}, false); }) == 2);
  CHECK(trips([&] { counter.set("a", 5, {}, true); }) == 1);
  CHECK(trips([&] { counter.take("a"); }) == 2);
  CHECK(trips([&] { test::limited(counter, "l", 3, 10s, 2); }) == 1);
  CHECK(trips([&] { test::limited(counter, "l", 3, 10s, 2); }) == 2);
  CHECK(trips([&] { counter.remove(names); }) == 1);
  const std::vector<Increment> batch{{"a", 1}, {"b", 2}, {"a", 3}};
  CHECK(trips([&] { counter.begin_incr(batch)(); }) == 1);
}

TEST_CASE("counter: a batch sums equal names, and one bad line does not stop the others") {
  World world(3);
  Counter counter = world.counter();
  counter.incr("e", 5, exact);
  world.memory.execute(Request::set("counter:text", "abc", Exptime::never()));
  const std::vector<Increment> batch{{"a", 1},    {"b c", 1}, {"a", 2},
                                     {"text", 1}, {"e", 4},   {"big", 1ull << 63}};
  const auto [results, of_lines] = counter.begin_incr(batch)();
  REQUIRE(results.size() == 5);
  CHECK(results[0].delta == 3);
  CHECK(of_lines == std::vector<std::size_t>{0, 1, 0, 2, 3, 4});
  CHECK(results[0].answer.value == 3);
  CHECK(results[1].answer.failure->code() == ErrorCode::usage);
  CHECK(results[2].answer.failure->code() == ErrorCode::bad_data);
  CHECK(results[3].answer.value == 9);
  CHECK(results[4].answer.failure->code() == ErrorCode::usage);
}

TEST_CASE("counter: a copy that was counted on, and then cannot be read, is not left out of the value") {
  test::World world(3, 3);
  Counter counter(world.context);
  for (int i = 0; i < 5; ++i) counter.incr("a", 1);
  const std::size_t first = world.memory.placement().server_of("counter:a");
  for (std::size_t server = 0; server < 3; ++server) {
    if (server == first) continue;
    world.memory.server(server).execute(Request::set("counter:a", "2", Exptime::never()));
  }
  CHECK(counter.incr("a", 1).value == 6);
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.op != Op::probe || request.server != first) return std::nullopt;
    return test::Mishap::unreachable;
  });
  CHECK(counter.incr("a", 1).value == 7);
}

TEST_CASE(
    "counter: a copy that missed a set, is counted on, and then cannot be read, does not undo the set") {
  test::World world(3, 3);
  Counter counter(world.context);
  for (int i = 0; i < 100; ++i) counter.incr("a", 1);
  const std::size_t first = world.memory.placement().server_of("counter:a");
  const auto unreachable = [&](std::optional<Op> op) {
    world.faults.choose([first, op](const Request& request) -> std::optional<test::Mishap> {
      if (request.server != first || (op && request.op != *op)) return std::nullopt;
      return test::Mishap::unreachable;
    });
  };
  unreachable(std::nullopt);
  counter.set("a", 5, {}, false);
  unreachable(Op::probe);
  CHECK(counter.incr("a", 1).value == 6);
}

TEST_CASE("counter: a lost reply is unknown for that name only") {
  World world;
  Counter counter = world.counter();
  world.faults.once(Op::incr_or_create, test::Mishap::lost_reply, 1);
  const std::vector<Increment> batch{{"a", 1}, {"b", 1}, {"c", 1}};
  const auto results = counter.begin_incr(batch)().of_names;
  CHECK_FALSE(results[0].answer.failure);
  CHECK(results[1].answer.failure->code() == ErrorCode::unknown_outcome);
  CHECK_FALSE(results[2].answer.failure);
  CHECK(world.stored("counter:b") == "1");
}

TEST_CASE("counter: an exact increment finds out whether a lost one was counted") {
  for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
    World world;
    Counter counter = world.counter();
    world.faults.once(Op::add, mishap);
    CHECK(counter.incr("e", 3, exact).value == 3);
    world.faults.once(Op::cas, mishap);
    CHECK(counter.incr("e", 4, exact).value == 7);
    world.faults.once(Op::cas, mishap);
    CHECK(counter.take("e").value == 7);
    CHECK(counter.get(std::vector<std::string>{"e"}).front().value == 0);
  }
}

TEST_CASE("counter: a lost reply is no doubt where the counter is exact, whether or not that was asked for") {
  for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
    World world;
    Counter counter = world.counter();
    counter.incr("e", 3, exact);
    world.faults.once(Op::incr_or_create, mishap);
    CHECK(counter.incr("e", 4).value == 7);
    world.faults.once(Op::decr, mishap);
    CHECK(counter.decr("e", 2).value == 5);
    world.faults.once(Op::incr_or_create, mishap);
    const std::vector<Increment> batch{{"e", 1}};
    CHECK(counter.begin_incr(batch)().of_names.front().answer.value == 6);
    world.faults.once(Op::incr_or_create, mishap);
    CHECK_THROWS_AS(counter.incr("missing", 1), UnknownOutcome);
  }
}

TEST_CASE("counter: a lost reply to a plain take is unknown if the value changed, else taken") {
  World world;
  Counter counter = world.counter();
  counter.incr("a", 5);
  world.faults.once(Op::cas, test::Mishap::lost_request);
  CHECK(counter.take("a").value == 5);
  counter.incr("a", 5);
  world.faults.once(Op::cas, test::Mishap::lost_reply);
  CHECK_THROWS_WITH_AS(counter.take("a"), doctest::Contains("if so, 5 was taken"), UnknownOutcome);
}

TEST_CASE("counter: a counter stays plain or exact until it is removed") {
  World world;
  Counter counter = world.counter();
  counter.incr("a", 1);
  CHECK_THROWS_AS(counter.incr("a", 1, exact), InvalidInput);
  counter.incr("e", 1, exact);
  counter.set("e", 10, {}, false);
  CHECK(counter.incr("e", 1).exact);
  CHECK(counter.decr("e", 100).value == 0);
  counter.take("e");
  CHECK(world.stored("counter:e").starts_with("C1 "));
}

TEST_CASE("counter: increments do not prolong, also not exact ones; take keeps the ttl") {
  World world;
  Counter counter = world.counter();
  counter.incr("a", 1, {.ttl = 100s});
  counter.incr("e", 1, {.ttl = 100s, .exact = true});
  for (int i = 0; i < 9; ++i) {
    world.clock.advance(10s);
    counter.incr("a", 1, {.ttl = 100s});
    counter.incr("e", 1, {.ttl = 100s, .exact = true});
    counter.take("a");
  }
  CHECK(world.stored("counter:a") == "0");
  world.clock.advance(15s);
  CHECK(world.stored("counter:a") == "<miss>");
  CHECK(world.stored("counter:e") == "<miss>");
}

TEST_CASE("counter: set says when an exact one ends, also if that is earlier, or never was") {
  for (const auto before : {std::optional<Duration>(), std::optional<Duration>(1h)}) {
    World world;
    Counter counter = world.counter();
    counter.incr("e", 1, {.ttl = before, .exact = true});
    counter.set("e", 5, 10s, false);
    world.clock.advance(5s);
    CHECK(counter.incr("e", 1).value == 6);
    world.clock.advance(10s);
    CHECK(world.stored("counter:e") == "<miss>");
  }
}

TEST_CASE("counter: values of 2^63 and above are refused before anything is sent") {
  World world;
  Counter counter = world.counter();
  const std::uint64_t large = std::uint64_t{1} << 63;
  CHECK_THROWS_AS(counter.incr("a", large), InvalidInput);
  CHECK_THROWS_AS(counter.incr("a", large - 1, {.ttl = {}, .initial = 1}), InvalidInput);
  CHECK_THROWS_AS(counter.set("a", large, {}, false), InvalidInput);
  CHECK(world.trips.trips() == 0);
}

TEST_CASE("counter: decr stops at 0, so that 5 - 10 + 10 = 10, and pads; reading does not mind") {
  World world;
  Counter counter = world.counter();
  counter.incr("a", 15);
  CHECK(counter.decr("a", 10).value == 5);
  CHECK(world.stored("counter:a") == "5 ");
  CHECK(counter.get(std::vector<std::string>{"a"}).front().value == 5);
  CHECK(counter.decr("a", 10).value == 0);
  CHECK(counter.incr("a", 10).value == 10);
  CHECK_FALSE(counter.decr("none", 1).done);
}

TEST_CASE("counter: after an eviction it says that it was created again") {
  World world;
  Counter counter = world.counter();
  counter.incr("a", 7);
  world.memory.evict("counter:a");
  const CounterAnswer value = counter.incr("a", 1);
  CHECK(value.created);
  CHECK(value.value == 1);
}

TEST_CASE("counter: a limit allows its maximum in each window, and what it denied does not count") {
  World world;
  Counter counter = world.counter();
  world.clock.advance(10s - world.clock.wall().time_since_epoch() % 10s);
  CHECK(test::limited(counter, "l", 5, 10s, 3).allowed);
  const LimitResult denied = test::limited(counter, "l", 5, 10s, 3);
  CHECK_FALSE(denied.allowed);
  CHECK(denied.used == 3);
  CHECK(denied.retry_after == 10s);
  CHECK(test::limited(counter, "l", 5, 10s, 2).allowed);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(test::limited(counter, "l", 5, 10s).allowed);
  CHECK(test::limited(counter, "l", 6, 10s).allowed);  // a limit that was raised
  world.clock.advance(10s);
  CHECK(test::limited(counter, "l", 5, 10s, 5).allowed);
  CHECK_THROWS_AS(test::limited(counter, "l", 5, 10s, 6), InvalidInput);
  CHECK_THROWS_AS(test::limited(counter, "l", 5, 10s, 0), InvalidInput);
}

TEST_CASE("counter: a batch of uses is counted in order, one name after the other, all names in one trip") {
  World world;
  Counter counter = world.counter();
  const LimitRule rule{.max = 3, .period = 10s};
  std::vector<LimitUse> uses;
  for (int round = 0; round < 5; ++round) {
    for (const char* name : {"a", "b", "c"}) uses.push_back({name, 1});
  }
  std::vector<LimitResult> results;
  // The first trip has the first use of each name, the second all others, and the third gives back the denied
  // ones.
  CHECK(world.trips.trips_of([&] { results = counter.limit(uses, rule); }) == 3);
  REQUIRE(results.size() == uses.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK_FALSE(results[i].failure);
    CHECK(results[i].allowed == (i / 3 < 3));
    CHECK(results[i].used == std::min<std::uint64_t>(i / 3 + 1, 3));
  }
  // A denied use with a large cost is refunded before the next use of its name is counted.
  const std::vector<LimitUse> costly{{"d", 2}, {"d", 2}, {"d", 1}, {"d", 1}};
  const auto answers = counter.limit(costly, rule);
  CHECK(answers[0].allowed);
  CHECK_FALSE(answers[1].allowed);
  CHECK(answers[2].allowed);
  CHECK_FALSE(answers[3].allowed);
  const auto slid =
      counter.limit(std::vector<LimitUse>(5, {"e", 1}), {.max = 3, .period = 10s, .sliding = true});
  CHECK(std::count_if(slid.begin(), slid.end(), [](const LimitResult& one) { return one.allowed; }) == 3);
  const auto peeked =
      counter.limit(std::vector<LimitUse>(2, {"a", 1}), {.max = 3, .period = 10s, .peek = true});
  CHECK_FALSE(peeked[0].allowed);
  CHECK(peeked[1].used == 3);
}

TEST_CASE("counter: a limit whose server answers too slowly ends after one period and allows nothing") {
  World world;
  Counter counter = world.counter();
  world.clock.advance(10s - world.clock.wall().time_since_epoch() % 10s);
  world.faults.choose([&](const Request&) {
    world.clock.advance(15s);
    return std::nullopt;
  });
  const std::vector<LimitUse> use{{"l", 1}};
  CHECK(counter.limit(use, {.max = 5, .period = 10s}).front().failure.value().code() == ErrorCode::try_again);
  for (const auto reply : {400ms, 700ms, 2000ms}) {
    world.faults.choose([&](const Request&) {
      world.clock.advance(reply);
      return std::nullopt;
    });
    const SteadyTime began = world.clock.steady();
    const auto slid = counter.limit(use, {.max = 5, .period = 1s, .sliding = true}).front();
    REQUIRE(slid.failure);
    CHECK(slid.failure->code() == ErrorCode::try_again);
    CHECK(world.clock.steady() - began <= 1s + 2 * reply);
  }
}

}  // namespace mcds::counter_test
