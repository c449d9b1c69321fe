#include <doctest/doctest.h>

#include "common/primitives/replicas.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/record.hpp"
#include "tests/support/world.hpp"

namespace mcds::copies_test {

namespace {

using namespace std::chrono_literals;

struct CopyWorld : test::World {
  explicit CopyWorld(std::size_t servers = 3, std::size_t copies = 2) : World(servers, copies) {}
  std::string stored(const std::string& key, std::size_t copy) {
    return stored_on(copy_servers(context, key)[copy], key);
  }
  void lose(const std::string& key, std::size_t copy) { memory.restart(copy_servers(context, key)[copy]); }
};

std::uint64_t value_of(Counter& counter, const std::string& name) {
  const auto reading = counter.get(std::vector<std::string>{name}).front();
  return reading.value ? reading.value->value : 0;
}

const IncrOptions exact{.ttl = {}, .exact = true};
const IncrOptions plain{.ttl = {}, .plain = true};

}  // namespace

TEST_CASE("copies: a structure runs once per copy in as many trips as once") {
  CopyWorld world;
  const Replicas copies(world.context);
  CHECK(world.trips.trips_of([&] {
    const auto names = expect_all(copies.each([&](std::size_t copy) {
      Context& context = copies.at(copy);
      expect(context.cluster,
             context.cluster.execute(Request::add("k", std::to_string(copy), Exptime::never())));
      context.clock.sleep_for(1ms);
      expect(context.cluster, context.cluster.execute(Request::append("k", "!")));
      return "copy " + std::to_string(copy);
    }));
    CHECK(names == std::vector<std::string>{"copy 0", "copy 1"});
  }) == 2);
  CHECK(world.stored("k", 0) == "0!");
  CHECK(world.stored("k", 1) == "1!");
}

TEST_CASE("copies: a part lies with what it continues, or two copies of it could lie on one server") {
  CopyWorld world(5);
  const Replicas copies(world.context);
  for (int i = 0; i < 50; ++i) {
    const std::string root = "array2:a" + std::to_string(i);
    const Request part = Request::get(root + ":s:" + world.random.token()).lying_with(root);
    CHECK(world.context.cluster.server_of(part) == copy_servers(world.context, root).front());
    const auto replies = execute_copies(world.context, part);
    for (std::size_t copy = 0; copy < 2; ++copy) {
      const std::size_t server = copy_servers(world.context, root)[copy];
      CHECK(replies[copy].server == server);
      CHECK(copies.at(copy).cluster.server_of(part) == server);
    }
  }
}

TEST_CASE("copies: one that fails does not keep the others, and what is no failure leaves the run") {
  CopyWorld world;
  const Replicas copies(world.context);
  world.memory.kill(copy_servers(world.context, "k")[0]);
  const auto written = expect_any(copies.each([&](std::size_t copy) {
    Context& context = copies.at(copy);
    expect(context.cluster, context.cluster.execute(Request::set("k", "v", Exptime::never())));
    expect(context.cluster, context.cluster.execute(Request::append("k", "w")));
  }));
  CHECK(written[0].failure()->code() == ErrorCode::unavailable);
  CHECK_FALSE(written[1].failure());
  CHECK_THROWS_AS(expect_all(written), NotApplied);
  CHECK(world.stored("k", 1) == "vw");
  struct Killed {};
  CHECK_THROWS_AS(copies.each([&](std::size_t copy) {
    copies.at(copy).cluster.execute(Request::get("k"));
    if (copy == 1) throw Killed{};
  }),
                  Killed);
}

TEST_CASE("copies: a single copy that fails is a result like any other, and is thrown as what it was") {
  CopyWorld world(3, 1);
  const Replicas copies(world.context);
  world.memory.kill(copy_servers(world.context, "k")[0]);
  const auto read = copies.each([&](std::size_t copy) {
    Context& context = copies.at(copy);
    return expect_read(context.cluster, context.cluster.execute(Request::get("k"))).value;
  });
  REQUIRE(read.size() == 1);
  CHECK(read[0].failure()->code() == ErrorCode::unavailable);
  CHECK_THROWS_AS(expect_any(read), NotApplied);
  CHECK_THROWS_AS(expect_all(read), NotApplied);
  const auto lengths = read.mapped([](const std::string& value) { return value.size(); });
  CHECK(lengths[0].failure()->code() == ErrorCode::unavailable);
}

TEST_CASE("result: a failure that is kept is thrown later with its code, its message and its class") {
  CHECK(attempt([] { return 5; }).value() == 5);
  CHECK_FALSE(attempt([] {}).failure());
  const auto kept = attempt([]() -> int { throw UnknownOutcome("no reply", "unix:/x"); });
  REQUIRE(kept.failure());
  CHECK(kept.failure()->server() == "unix:/x");
  CHECK_THROWS_WITH_AS(kept.value(), "no reply", UnknownOutcome);
  CHECK_THROWS_AS(raise(*attempt([] { throw CorruptData("damaged"); }).failure()), CorruptData);
  CHECK_THROWS_AS(raise(*attempt([] { throw InvalidInput("no name"); }).failure()), InvalidInput);
  CHECK_THROWS_AS(raise(*attempt([] { throw Contention("rivals"); }).failure()), Contention);
  CHECK_THROWS_AS(raise(Failure(ErrorCode::access_denied, "no login")), NotApplied);
  CHECK_THROWS_AS(raise(Failure(ErrorCode::lock_lost, "gone")), Failure);
  struct Killed {};
  CHECK_THROWS_AS(attempt([] { throw Killed{}; }), Killed);
}

TEST_CASE("copies: a plain counter is the largest copy, right while one has lived from the start") {
  CopyWorld world;
  Counter counter(world.context);
  CHECK(world.trips.trips_of([&] { counter.incr("a", 5, plain); }) == 2);
  counter.incr("a", 2, plain);
  world.lose("counter:a", 0);
  const CounterValue value = counter.incr("a", 1, plain);
  CHECK(value.value == 8);
  CHECK_FALSE(value.created);
  CHECK(value.copies[0].number == 1);
  CHECK(value.copies[1].number == 8);
  CHECK(value_of(counter, "a") == 8);
  CHECK(world.stored("counter:a", 0) == "1");
  CHECK(counter.decr("a", 3)->value == 5);
  CHECK(counter.set("a", 20, {}, false).value == 20);
  CHECK(world.stored("counter:a", 0) == "20");
  CHECK_FALSE(counter.set("a", 30, {}, true).stored);
  CHECK_THROWS_AS(counter.take("a"), InvalidInput);
}

TEST_CASE("copies: an increment that reached one copy is done and says so; one that reached none is not") {
  CopyWorld world;
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, "counter:a");
  world.memory.kill(servers[1]);
  const CounterValue value = counter.incr("a", 5);
  CHECK(value.value == 5);
  CHECK_FALSE(value.copies[0].failure);
  CHECK(value.copies[1].failure->code() == ErrorCode::unavailable);
  world.memory.kill(servers[0]);
  CHECK_THROWS_AS(counter.incr("a", 5), NotApplied);
  const auto reading = counter.get(std::vector<std::string>{"a"}).front();
  CHECK(reading.failure->code() == ErrorCode::unavailable);
}

TEST_CASE("copies: a missing counter is missing only when most copies say so") {
  CopyWorld world;
  Counter counter(world.context);
  CHECK_FALSE(counter.get(std::vector<std::string>{"a"}).front().value);
  world.memory.kill(copy_servers(world.context, "counter:a")[1]);
  CHECK(counter.get(std::vector<std::string>{"a"}).front().failure);
  world.context.copies = 3;
  const auto reading = Counter(world.context).get(std::vector<std::string>{"a"}).front();
  CHECK_FALSE(reading.failure);
  CHECK_FALSE(reading.value);
  for (const std::size_t server : copy_servers(world.context, "counter:a")) world.memory.kill(server);
  CHECK(Counter(world.context).get(std::vector<std::string>{"a"}).front().failure);
}

TEST_CASE("copies: a counter's set and removal hold where a client that missed one server did them") {
  for (const std::size_t copies : {2U, 3U}) {
    for (std::size_t away = 0; away < 3; ++away) {
      CAPTURE(copies);
      CAPTURE(away);
      CopyWorld world;
      world.context.copies = copies;
      Counter counter(world.context);
      const std::vector<std::string> name{"a"};
      const auto value = [&] { return counter.get(name).front().value; };
      counter.set("a", 100, {}, false);
      test::ScriptedFaults faults(world.memory);
      faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
        if (request.server == away) return test::Mishap::unreachable;
        return std::nullopt;
      });
      Context theirs{faults, world.clock, world.random, "", copies};
      Counter(theirs).set("a", 5, {}, false);
      // Before anybody has read: a change answers with the newest life, too.
      CHECK(counter.incr("a", 1).value == 6);
      CHECK(value()->value == 6);
      CHECK(counter.incr("a", 1).value == 7);
      CHECK(Counter(theirs).remove(name).front().removed);
      CHECK_FALSE(value());
      CHECK(counter.incr("a", 3).value == 3);
      CHECK(value()->value == 3);
      CHECK(counter.remove(name).front().removed);
      CHECK_FALSE(value());
    }
  }
}

TEST_CASE("copies: a counter's decrement holds where a client missed one server") {
  for (const std::size_t copies : {2U, 3U}) {
    for (const auto mishap :
         {test::Mishap::unreachable, test::Mishap::lost_request, test::Mishap::lost_reply}) {
      for (std::size_t away = 0; away < 3; ++away) {
        for (const bool was_set : {false, true}) {
          CAPTURE(copies);
          CAPTURE(away);
          CopyWorld world;
          world.context.copies = copies;
          Counter counter(world.context);
          const std::vector<std::string> name{"a"};
          const auto value = [&] { return counter.get(name).front().value->value; };
          if (was_set)
            counter.set("a", 100, 1h, false);
          else
            counter.incr("a", 100, {.ttl = 1h, .plain = true});
          test::ScriptedFaults faults(world.memory);
          faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
            if (request.op == Op::decr && world.memory.server_of(request) == away) return mishap;
            return std::nullopt;
          });
          Context theirs{faults, world.clock, world.random, "", copies};
          CHECK(Counter(theirs).decr("a", 7)->value == 93);
          CHECK(value() == 93);
          CHECK(counter.incr("a", 1).value == 94);
          CHECK(counter.decr("a", 4)->value == 90);
          CHECK(value() == 90);
        }
      }
    }
  }
}

TEST_CASE("copies: a counter is set for the first time while a server is down") {
  for (const std::size_t copies : {2U, 3U}) {
    for (std::size_t away = 0; away < 3; ++away) {
      CopyWorld world;
      world.context.copies = copies;
      Counter counter(world.context);
      const std::vector<std::string> name{"a"};
      world.memory.stop(away);
      CHECK(counter.set("a", 5, {}, false).stored);
      CHECK(counter.get(name).front().value->value == 5);
      world.memory.proceed(away);
      CHECK(counter.get(name).front().value->value == 5);
    }
  }
}

TEST_CASE("copies: a counter that was set with copies is not set with one, and nothing of it changes") {
  for (const std::size_t kept : {2U, 3U}) {
    test::World world(5, kept);
    Counter counter(world.context);
    counter.set("c", 100, std::nullopt, false);
    Counter alone(world.with(1));
    const auto refused = [&](const auto& act) {
      try {
        act();
      } catch (const Failure& failure) {
        CHECK(failure.code() == ErrorCode::bad_data);
        return std::string(failure.what()).find("--copies " + std::to_string(kept)) != std::string::npos;
      }
      return false;
    };
    CHECK(refused([&] { alone.set("c", 5, std::nullopt, false); }));
    CHECK(refused([&] { alone.take("c"); }));
    const std::vector<std::string> names{"c"};
    CHECK(counter.get(names).front().value->value == 100);
    CHECK(alone.get(names).front().value->value == 100);
    CHECK(counter.incr("c", 1).value == 101);
    // Fewer, or more: a new life, which counts for everybody.
    const std::size_t other = kept == 2 ? 3 : 2;
    Counter(world.with(other)).set("c", 7, std::nullopt, false);
    CHECK(counter.get(names).front().value->value == 7);
  }
}

TEST_CASE("copies: flags of another program keep nobody from setting a counter of one copy") {
  test::World world(5, 1);
  Request theirs = Request::set("counter:c", "41", Exptime::never());
  theirs.flags = 2;
  world.context.cluster.execute(theirs);
  Counter counter(world.context);
  CHECK(counter.set("c", 5, std::nullopt, false).stored);
  CHECK(counter.take("c")->value == 5);
}

TEST_CASE("copies: an exact counter's record reads back, and no damaged one does") {
  CounterRecord record;
  record.life = "00000000000000a1";
  record.lives["00000000000000a1"];
  CHECK(CounterRecord::parse(record.text(2), 2)->text(2) == record.text(2));
  record.count(5, "00000000000000b1");
  record.lives["00000000000000a2"] = {3, 9};
  record.expires_at = 1795234800;
  const std::string text = record.text(2);
  REQUIRE(CounterRecord::parse(text, 2));
  CHECK(CounterRecord::parse(text, 2)->text(2) == text);
  CHECK(CounterRecord::parse(text, 2)->sum() == 14);
  CHECK_FALSE(CounterRecord::parse(text, 1));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    CHECK_FALSE(CounterRecord::parse(damaged, 2));
  }
}

TEST_CASE("copies: the removal of an exact counter is not undone by a read before its last copy is reached") {
  CopyWorld world;
  Counter counter(world.context);
  counter.incr("e", 5, exact);
  const auto before = world.context.cluster.execute(Request::get("counter:e").on(1)).value;
  const std::vector<std::string> name{"e"};
  CHECK(world.trips.trips_of([&] { CHECK(counter.remove(name).front().removed); }) == 2);
  for (const std::size_t server : {1U, 0U}) {
    world.context.cluster.execute(Request::set("counter:e", before, Exptime::never()).on(server));
    CHECK_FALSE(counter.get(name).front().value);
    CHECK_FALSE(counter.decr("e", 1));
    CHECK_FALSE(counter.remove(name).front().removed);
  }
  const CounterValue again = counter.incr("e", 2);
  CHECK(again.value == 2);
  CHECK(again.created);
  CHECK(counter.remove(name).front().removed);
  CHECK(counter.set("e", 7, std::nullopt, false).stored);
  CHECK(value_of(counter, "e") == 7);
  CHECK_FALSE(counter.get(name).front().value->exact);
  world.clock.advance(61min);
  CHECK(value_of(counter, "e") == 7);
}

TEST_CASE("copies: an exact counter heals whichever copy is lost, by the next increment or a read") {
  CopyWorld world;
  Counter counter(world.context);
  CHECK(world.trips.trips_of([&] { counter.incr("e", 5, exact); }) == 3);
  std::uint64_t expected = 5;
  for (int round = 0; round < 40; ++round) {
    world.lose("counter:e", static_cast<std::size_t>(round / 2 % 2));
    if (round % 3 == 0) CHECK(value_of(counter, "e") == expected);
    const CounterValue value = counter.incr("e", 2, round % 2 == 0 ? exact : IncrOptions{});
    expected += 2;
    CHECK(value.value == expected);
    CHECK(value.exact);
    CHECK(value.copies[0].number == expected);
    CHECK(value.copies[1].number == expected);
  }
  CHECK_THROWS_AS(counter.take("e"), InvalidInput);
  CHECK(counter.remove(std::vector<std::string>{"e"}).front().removed);
  CHECK(value_of(counter, "e") == 0);
}

TEST_CASE("copies: what was counted on either copy alone is in the merged counter") {
  CopyWorld world;
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, "counter:e");
  counter.incr("e", 1, exact);
  for (int round = 0; round < 6; ++round) {
    std::optional<std::size_t> down = servers[static_cast<std::size_t>(round % 2)];
    world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      if (request.server == *down) return test::Mishap::unreachable;
      return std::nullopt;
    });
    counter.incr("e", 10, exact);
    world.faults.none();
  }
  CHECK(value_of(counter, "e") == 61);
}

TEST_CASE("copies: a lost reply to an exact increment is counted once") {
  for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
    for (const auto op : {Op::add, Op::cas}) {
      for (std::size_t skip = 0; skip < 3; ++skip) {
        CopyWorld world;
        Counter counter(world.context);
        if (op == Op::cas) counter.incr("e", 1, exact);
        world.faults.once(op, mishap, skip);
        const std::uint64_t before = op == Op::cas ? 1 : 0;
        CHECK(counter.incr("e", 3, exact).value == before + 3);
        CHECK(counter.incr("e", 4, exact).value == before + 7);
        CHECK(value_of(counter, "e") == before + 7);
      }
    }
  }
}

TEST_CASE(
    "copies: an exact increment that creates a copy without a reply is counted once, though that copy is "
    "healed and lost") {
  for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
    for (const bool others_read : {true, false}) {
      CopyWorld world;
      Context calm{world.memory, world.clock, world.random, {}, 2};
      test::Rival rival(world.faults);
      Context context{rival, world.clock, world.random, {}, 2};
      world.faults.once(Op::add, mishap);
      rival.before(2, [&] {
        Counter others(calm);
        if (others_read) static_cast<void>(value_of(others, "e"));
        world.lose("counter:e", 0);
      });
      CHECK(Counter(context).incr("e", 3, exact).value == 3);
      Counter counter(calm);
      CHECK(value_of(counter, "e") == 3);
      CHECK(counter.incr("e", 4, exact).value == 7);
    }
  }
}

TEST_CASE("copies: a counter that was exact with one copy goes on with several") {
  CopyWorld world;
  Context single = world.context;
  single.copies = 1;
  Counter(single).incr("e", 7, exact);
  Counter counter(world.context);
  CHECK(value_of(counter, "e") == 7);
  CHECK(counter.incr("e", 1, exact).value == 8);
  world.lose("counter:e", 0);
  CHECK(counter.incr("e", 1, exact).value == 9);
  CHECK(value_of(counter, "e") == 9);
  CHECK_THROWS_AS(Counter(single).incr("e", 1, exact), CorruptData);
}

TEST_CASE("copies: a limit allows no more for a lost copy while another lives") {
  CopyWorld world;
  Counter counter(world.context);
  CHECK(counter.limit("l", 2, 1h).allowed);
  CHECK(counter.limit("l", 2, 1h).allowed);
  const std::string key =
      "counter:l:limit:3600000:" + std::to_string(world.clock.wall().time_since_epoch() / 1h);
  world.lose(key, 0);
  CHECK_FALSE(counter.limit("l", 2, 1h).allowed);
}

}  // namespace mcds::copies_test
