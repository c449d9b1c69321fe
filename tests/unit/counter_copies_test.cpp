// Counters with several copies: records that merge by one rule, under keys that contain the copy count.
#include <doctest/doctest.h>

#include <utility>

#include "common/structures/counter/record.hpp"
#include "tests/support/counters.hpp"
#include "tests/support/move_world.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/world.hpp"

namespace mcds::counter_copies_test {

namespace {

using namespace std::chrono_literals;

const std::vector<std::string> names{"c"};

std::optional<std::uint64_t> value_of(const Context& context, const std::string& name = "c") {
  return test::value_of(test::reading_of(context, name));
}

// The error of a change; unset: it was done.
using Code = std::optional<ErrorCode>;
const Code done;

Code code_of(const std::function<void()>& work) {
  const auto failure = attempt(work).failure();
  return failure ? Code(failure->code()) : done;
}

std::string key_in(std::size_t copies) {
  return copies == 1 ? "counter:c" : "counter" + std::to_string(copies) + ":c";
}

// One client's view of the servers: some do not answer it.
struct Cut {
  Cut(test::World& world, std::vector<std::size_t> servers) : faults(world.memory), away(std::move(servers)) {
    faults.choose([this](const Request& request) -> std::optional<test::Mishap> {
      const bool hit = std::find(away.begin(), away.end(), faults.server_of(request)) != away.end();
      return hit ? std::optional(test::Mishap::unreachable) : std::nullopt;
    });
  }
  Context in(test::World& world, std::size_t copies) {
    return {faults, world.clock, world.random, {}, copies};
  }
  test::ScriptedFaults faults;
  std::vector<std::size_t> away;
};

// Returns the servers of the counter's copies but one.
std::vector<std::size_t> servers_but(test::World& world, std::size_t copies, std::size_t one) {
  auto servers = copy_servers(world.with(copies), key_in(copies));
  std::erase(servers, one);
  return servers;
}

// Sets the counter as a client that reaches one server only.
void set_alone(test::World& world, std::size_t copies, std::uint64_t value, std::size_t reached) {
  Cut cut(world, servers_but(world, copies, reached));
  Counter(cut.in(world, copies)).set("c", value, std::nullopt, false);
}

}  // namespace

TEST_CASE("counter copies: always exact; trips") {
  test::World world(3, 2);
  Counter counter(world.context);
  CHECK(world.trips.trips_of([&] { CHECK(counter.incr("c", 5).exact); }) == 5);
  CHECK(world.trips.trips_of([&] { CHECK(counter.incr("c", 1).value == 6); }) == 3);
  CHECK(world.trips.trips_of([&] { CHECK(counter.decr("c", 2).value == 4); }) == 3);
  CHECK(world.trips.trips_of([&] { CHECK(value_of(world.context) == 4); }) == 1);
  CHECK(world.trips.trips_of([&] { counter.set("c", 9, std::nullopt, false); }) == 2);
  CHECK(counter.incr("c", 1).value == 10);
  CHECK_FALSE(counter.set("c", 3, std::nullopt, true).done);
  CHECK(world.trips.trips_of([&] { CHECK(counter.remove(names).front().done); }) == 3);
  CHECK_FALSE(value_of(world.context));
  CHECK_FALSE(counter.remove(names).front().done);
  CHECK_FALSE(counter.decr("c", 1).done);
  const CounterAnswer again = counter.incr("c", 2, {.ttl = {}, .initial = 40});
  CHECK(again.value == 42);
  CHECK(again.created);
  CHECK(code_of([&] { counter.take("c"); }) == ErrorCode::bad_data);
}

TEST_CASE("counter copies: take has one copy, whatever is asked for") {
  test::World world(3, 1);
  Counter(world.context).incr("c", 5);
  CHECK(Counter(world.with(2)).take("c").value == 5);
  CHECK(value_of(world.context) == 0);
}

TEST_CASE("counter copies: a batch costs as many trips as one") {
  test::World world(3, 2);
  Counter counter(world.context);
  for (int i = 0; i < 50; ++i) counter.incr("n" + std::to_string(i), 1);
  std::vector<Increment> batch;
  for (int i = 0; i < 100; ++i) batch.push_back({"n" + std::to_string(i % 50), 2});
  IncrementResults results;
  CHECK(world.trips.trips_of([&] { results = counter.begin_incr(batch)(); }) == 3);
  REQUIRE(results.of_names.size() == 50);
  for (const IncrementResult& result : results.of_names) {
    CHECK(result.answer.value == 5);
    CHECK(value_of(world.context, result.name) == 5);
  }
}

TEST_CASE("counter copies: a record reads back, and no damaged one does") {
  CounterRecord record;
  record.incarnation = "00000000000000a1";
  record.incarnations[record.incarnation];
  record.base = {
      .number = 3, .kind = CounterRecord::Epoch::Kind::set, .value = 100, .mark = "00000000000000f1"};
  record.count(5, "00000000000000b1");
  record.incarnations["00000000000000a2"] = {{3, 9}, {2, 4}};
  record.base.expires_at = 1795234800;
  const std::string text = record.text();
  REQUIRE(CounterRecord::parse(text));
  CHECK(CounterRecord::parse(text)->text() == text);
  CHECK(CounterRecord::parse(text)->sum() == 110);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    CHECK_FALSE(CounterRecord::parse(damaged));
  }
}

TEST_CASE("counter copies: everybody reads what a client did that misses one server") {
  for (const std::size_t copies : {2U, 3U}) {
    for (const auto mishap :
         {test::Mishap::unreachable, test::Mishap::lost_request, test::Mishap::lost_reply}) {
      for (std::size_t away = 0; away < 3; ++away) {
        CAPTURE(copies);
        CAPTURE(away);
        test::World world(3, copies);
        Counter counter(world.context);
        counter.incr("c", 100);
        const auto misses = [&](const std::function<void()>& work) {
          world.faults.cut_off(away, mishap);
          const Code code = code_of(work);
          world.faults.choose(nullptr);
          return code;
        };
        const Code counted = misses([&] { counter.decr("c", 7); });
        const std::uint64_t left = *value_of(world.others);
        CHECK((counted == done
                   ? left == 93
                   : counted == ErrorCode::unknown_outcome && mishap != test::Mishap::unreachable));
        CHECK(misses([&] { counter.set("c", 50, std::nullopt, false); }) == done);
        CHECK(value_of(world.others) == 50);
        CHECK(counter.incr("c", 1).value == 51);
        CHECK(misses([&] { CHECK(counter.remove(names).front().done); }) == done);
        CHECK_FALSE(value_of(world.others));
      }
    }
  }
}

TEST_CASE("counter copies: a change that was refused for want of a majority leaves nothing") {
  test::World world(3, 3);
  Counter counter(world.context);
  counter.set("c", 5, std::nullopt, false);
  const auto servers = copy_servers(world.context, key_in(3));
  for (const std::size_t reached : servers) {
    Cut cut(world, servers_but(world, 3, reached));
    Counter alone(cut.in(world, 3));
    CHECK(code_of([&] { alone.set("c", 500, std::nullopt, false); }) == ErrorCode::unavailable);
    CHECK(code_of([&] { alone.incr("c", 500); }) == ErrorCode::unavailable);
    CHECK(alone.remove(names).front().failure->code() == ErrorCode::unavailable);
    CHECK(alone.get(names).front().failure->code() == ErrorCode::unavailable);
    Cut others(world, {reached});
    Counter(others.in(world, 3)).set("c", 5, std::nullopt, false);
    CHECK(value_of(world.context) == 5);
  }
}

TEST_CASE("counter copies: a set that reached one copy takes away what it saw, and no increment after it") {
  test::World world(3, 3);
  Counter counter(world.context);
  counter.incr("c", 100);
  const auto servers = copy_servers(world.context, key_in(3));
  // It reads all three copies, but its write reaches only one of them.
  test::ScriptedFaults faults(world.memory);
  faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    const bool writes = request.op == Op::cas || request.op == Op::add;
    return writes && request.server != servers[0] ? std::optional(test::Mishap::unreachable) : std::nullopt;
  });
  const Context theirs{faults, world.clock, world.random, {}, 3};
  CHECK(code_of([&] { Counter(theirs).set("c", 1, std::nullopt, false); }) == ErrorCode::unknown_outcome);
  Cut cut(world, {servers[0]});
  for (int i = 0; i < 7; ++i) Counter(cut.in(world, 3)).incr("c", 1);
  CHECK(value_of(cut.in(world, 3)) == 107);
  CHECK(value_of(world.context) == 8);
  CHECK(value_of(cut.in(world, 3)) == 8);
}

TEST_CASE("counter copies: an increment that saw a set which is lost by now undoes none that followed") {
  test::World world(2, 2);
  const std::size_t first = copy_servers(world.context, key_in(2)).front();
  Counter(world.context).incr("c", 1);
  set_alone(world, 2, 1500, first);
  test::Rival rival(world.memory);
  // The write is in the first copy, but not yet in the other.
  rival.before(2, [&] {
    world.memory.server(first).flush();
    Counter(world.context).set("c", 20, std::nullopt, false);
    Counter(world.context).set("c", 30, std::nullopt, false);
  });
  const Context slow{rival, world.clock, world.random, {}, 2};
  CHECK(Counter(slow).incr("c", 4).value == 1504);
  CHECK(value_of(world.context) == 34);
}

TEST_CASE("counter copies: an answer that could not be written back is none") {
  test::World world(3, 3);
  Counter counter(world.context);
  counter.set("c", 1, std::nullopt, false);
  const auto servers = copy_servers(world.context, key_in(3));
  const auto writes_to = [&](std::vector<std::size_t> reached) {
    return [=](const Request& request) -> std::optional<test::Mishap> {
      const bool writes = request.op == Op::cas || request.op == Op::add;
      const bool reaches = std::find(reached.begin(), reached.end(), *request.server) != reached.end();
      return writes && !reaches ? std::optional(test::Mishap::unreachable) : std::nullopt;
    };
  };
  test::ScriptedFaults faults(world.memory);
  const Context theirs{faults, world.clock, world.random, {}, 3};
  faults.choose(writes_to({servers[0]}));
  CHECK(code_of([&] { Counter(theirs).set("c", 2, std::nullopt, false); }) == ErrorCode::unknown_outcome);
  faults.choose(writes_to({}));
  CHECK(code_of([&] { value_of(theirs); }) == ErrorCode::unavailable);
  faults.none();
  CHECK(value_of(theirs) == 2);
}

TEST_CASE("counter copies: an increment after the first server lost its item counts, also for the others") {
  for (const std::size_t copies : {2U, 3U}) {
    for (const bool sets : {false, true}) {
      test::World world(4, copies);
      Counter counter(world.context);
      counter.incr("c", 5);
      const auto servers = copy_servers(world.context, key_in(copies));
      world.memory.restart(servers[0]);
      if (sets)
        counter.set("c", 6, std::nullopt, false);
      else
        CHECK(counter.incr("c", 1).value == 6);
      for (const std::size_t server : servers) {
        world.memory.restart(server);
        CHECK(value_of(world.others) == 6);
      }
    }
  }
}

TEST_CASE("counter copies: a server that restarted empty does not vote while another is slow") {
  test::World world(3, 3);
  Counter counter(world.context);
  const auto servers = copy_servers(world.context, key_in(3));
  counter.set("c", 1, std::nullopt, false);
  Cut cut(world, {servers[2]});
  Counter(cut.in(world, 3)).set("c", 2, std::nullopt, false);
  world.memory.restart(servers[1]);
  Cut slow(world, {servers[0]});
  CHECK(code_of([&] { value_of(slow.in(world, 3)); }) == ErrorCode::unavailable);
  CHECK(code_of([&] { Counter(slow.in(world, 3)).incr("c", 1); }) == ErrorCode::unavailable);
  CHECK(value_of(world.context) == 2);
}

TEST_CASE(
    "counter copies: a set of a copy that forgot may count less than one before; of three it is refused") {
  test::World world(3, 2);
  const auto servers = copy_servers(world.context, key_in(2));
  set_alone(world, 2, 1500, servers[1]);
  Counter(world.context).set("c", 2500, std::nullopt, false);
  world.memory.restart(servers[1]);
  set_alone(world, 2, 3500, servers[1]);
  // No copy that the client could read shows that its number must be higher.
  CHECK(value_of(world.context) == 2500);
  // Once the client reads both copies, its set wins.
  Counter(world.context).set("c", 3500, std::nullopt, false);
  CHECK(value_of(world.others) == 3500);

  test::World three(3, 3);
  const auto all = copy_servers(three.context, key_in(3));
  Counter(three.context).set("c", 2500, std::nullopt, false);
  three.memory.restart(all[1]);
  Cut cut(three, {all[0]});
  CHECK(code_of([&] { Counter(cut.in(three, 3)).set("c", 3500, std::nullopt, false); }) ==
        ErrorCode::unavailable);
  CHECK(value_of(three.context) == 2500);
}

TEST_CASE(
    "counter copies: a set that had to guess its number, and then meets a higher one, is not called done") {
  test::World world(3, 2);
  const auto servers = copy_servers(world.context, key_in(2));
  set_alone(world, 2, 1500, servers[1]);
  Counter(world.context).set("c", 2500, std::nullopt, false);
  world.memory.restart(servers[1]);
  // The other copy does not answer until this one may have been written.
  bool wrote = false;
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    const bool lost = request.op == Op::add && !std::exchange(wrote, true);
    if (lost) return test::Mishap::lost_reply;
    return !wrote && request.server == servers[0] ? std::optional(test::Mishap::unreachable) : std::nullopt;
  });
  CHECK(code_of([&] { Counter(world.context).set("c", 3500, std::nullopt, false); }) ==
        ErrorCode::unknown_outcome);
  world.faults.none();
  CHECK(value_of(world.context) == 2500);
}

TEST_CASE("counter copies: a lost reply to an increment is counted once") {
  for (const std::size_t copies : {2U, 3U}) {
    for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
      for (const auto op : {Op::add, Op::cas}) {
        for (std::size_t skip = 0; skip < 3; ++skip) {
          CAPTURE(copies);
          CAPTURE(skip);
          test::World world(3, copies);
          Counter counter(world.context);
          if (op == Op::cas) counter.incr("c", 1);
          world.faults.once(op, mishap, skip);
          const std::uint64_t before = op == Op::cas ? 1 : 0;
          CHECK(counter.incr("c", 3).value == before + 3);
          CHECK(counter.incr("c", 4).value == before + 7);
          CHECK(value_of(world.others) == before + 7);
        }
      }
    }
  }
}

TEST_CASE("counter copies: an increment without a reply waits for the copy that may have it") {
  for (const std::size_t copies : {2U, 3U}) {
    for (const auto mishap : {test::Mishap::lost_reply, test::Mishap::lost_request}) {
      CAPTURE(copies);
      test::World world(3, copies);
      Counter counter(world.context);
      counter.incr("c", 1);
      std::optional<std::size_t> silent;  // does not answer the next reading either
      std::size_t readings = 0;
      world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
        if (request.op == Op::cas && !silent) {
          silent = world.faults.server_of(request);
          return mishap;
        }
        const bool reads = request.op == Op::probe && silent && world.faults.server_of(request) == *silent;
        return reads && ++readings == 1 ? std::optional(test::Mishap::unreachable) : std::nullopt;
      });
      CHECK(counter.incr("c", 3).value == 4);
      CHECK(readings == 2);
      CHECK(value_of(world.others) == 4);
    }
  }
}

TEST_CASE("counter copies: an increment found after a lost reply, and in no majority, may be counted") {
  for (const bool lost : {false, true}) {
    CAPTURE(lost);
    test::World world(3, 3);
    Counter counter(world.context);
    counter.incr("c", 1);
    const std::size_t first = copy_servers(world.context, key_in(3)).front();
    world.faults.choose([&, sent = false](const Request& request) mutable -> std::optional<test::Mishap> {
      if (request.op != Op::cas) return std::nullopt;
      if (world.faults.server_of(request) != first) return test::Mishap::refused;
      return lost && !std::exchange(sent, true) ? std::optional(test::Mishap::lost_reply) : std::nullopt;
    });
    const auto failure = attempt([&] { counter.incr("c", 3); }).failure();
    REQUIRE(failure);
    CHECK(failure->code() == ErrorCode::unknown_outcome);
    CHECK((failure->server() == world.memory.address_of(first)) == lost);
    world.faults.none();
    CHECK(value_of(world.others) == 4);
  }
}

TEST_CASE("counter copies: the later set counts, of one number the larger; increments between count once") {
  test::World world(3, 3);
  Counter counter(world.context);
  counter.incr("c", 7);
  // Each client reads before the other one writes.
  const auto during_write = [&](const std::function<void()>& act) {
    bool met = false;
    test::ScriptedFaults faults(world.memory);
    faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
      if (request.op == Op::cas && !std::exchange(met, true)) act();
      return std::nullopt;
    });
    Counter(Context{faults, world.clock, world.random, {}, 3}).set("c", 20, std::nullopt, false);
    CHECK(met);
  };
  during_write([&] { Counter(world.others).set("c", 30, std::nullopt, false); });
  CHECK(value_of(world.context) == 20);  // it wrote nothing at first, so it comes after the other
  during_write([&] { Counter(world.others).set("c", 10, std::nullopt, false); });
  CHECK(value_of(world.context) == 20);
  during_write([&] { Counter(world.others).incr("c", 5); });
  CHECK(value_of(world.context) == 25);
  during_write([&] { Counter(world.others).remove(names); });
  CHECK(value_of(world.context) == 20);
}

TEST_CASE("counter copies: of those that claim at the same moment one is told that it did it") {
  for (const bool sets : {false, true}) {
    for (std::size_t trip = 0; trip < 6; ++trip) {
      CAPTURE(sets);
      CAPTURE(trip);
      test::World world(3, 3);
      Counter counter(world.context);
      if (!sets) counter.incr("c", 7);
      const auto claims = [&](const Context& context, std::uint64_t value) {
        return sets ? Counter(context).set("c", value, std::nullopt, true).done
                    : Counter(context).remove(names).front().done;
      };
      std::optional<bool> theirs;
      world.rival.before(trip, [&] { theirs = claims(world.others, 30); });
      std::optional<bool> mine;
      const Code code = code_of([&] { mine = claims(world.context, 20); });
      if (!theirs) continue;
      CHECK((code == done || code == ErrorCode::unknown_outcome));
      CHECK(mine.value_or(false) + *theirs <= 1);
      if (mine && *mine != *theirs && sets) CHECK(value_of(world.context) == (*mine ? 20 : 30));
    }
  }
}

TEST_CASE("counter copies: another number is refused, and nothing changes; kept in it, it is found") {
  const auto verbs = std::vector<std::function<void(Counter&)>>{
      [](Counter& counter) { counter.incr("c", 1); },
      [](Counter& counter) { counter.incr("c", 1, {.ttl = {}, .exact = true}); },
      [](Counter& counter) { counter.decr("c", 1); },
      [](Counter& counter) { counter.set("c", 1, std::nullopt, false); },
      [](Counter& counter) { counter.set("c", 1, std::nullopt, true); },
      [](Counter& counter) { raise(*counter.get(names).front().failure); },
      [](Counter& counter) { raise(*counter.remove(names).front().failure); },
      [](Counter& counter) { counter.take("c"); },
      [](Counter& counter) {
        const std::vector<Increment> batch{{"c", 1}};
        raise(*counter.begin_incr(batch)().of_names.front().answer.failure);
      }};
  for (const std::size_t kept : {1U, 2U, 3U}) {
    for (const std::size_t other : {1U, 2U, 3U}) {
      if (kept == other) continue;
      for (const bool exact : {false, true}) {
        test::World world(5, kept);
        Counter counter(world.context);
        counter.incr("c", 5, {.ttl = {}, .exact = exact});
        const auto servers = copy_servers(world.context, key_in(kept));
        const std::string before = world.stored_on(servers.front(), key_in(kept));
        for (std::size_t verb = 0; verb < verbs.size(); ++verb) {
          CAPTURE(kept);
          CAPTURE(other);
          CAPTURE(verb);
          Counter wrong(world.with(other));
          const bool takes = verb == 7;  // which needs a single copy
          if (takes && kept == 1) continue;
          CHECK(code_of([&] { verbs[verb](wrong); }) == ErrorCode::bad_data);
          CHECK(test::left_in(world.memory).size() == kept);
          CHECK(world.stored_on(servers.front(), key_in(kept)) == before);
        }
        CHECK(value_of(world.context) == 5);
      }
    }
  }
}

TEST_CASE(
    "counter copies: of two who create under different numbers one is refused, and takes its own back") {
  for (const auto& [mine, theirs] : {std::pair{1U, 2U}, {2U, 1U}, {2U, 3U}, {3U, 2U}, {3U, 1U}, {1U, 3U}}) {
    for (std::size_t trip = 0; trip < 6; ++trip) {
      CAPTURE(mine);
      CAPTURE(theirs);
      CAPTURE(trip);
      test::World world(5);
      Context others = world.others;
      others.copies = theirs;
      std::optional<Code> their_code;
      world.rival.before(trip, [&] { their_code = code_of([&] { Counter(others).incr("c", 10); }); });
      const Code my_code = code_of([&] { Counter(world.with(mine)).incr("c", 3); });
      if (!their_code) continue;
      CHECK((my_code == done) != (*their_code == done));
      const bool i_did = my_code == done;
      CHECK(test::left_in(world.memory).size() == (i_did ? mine : theirs));
      CHECK(value_of(world.with(i_did ? mine : theirs)) == (i_did ? 3 : 10));
    }
  }
}

TEST_CASE("counter copies: a removal is remembered for an hour, and forbids no other number") {
  test::World world(4, 2);
  Counter counter(world.context);
  counter.incr("c", 5);
  const auto servers = copy_servers(world.context, key_in(2));
  const auto stale = world.stored_on(servers[1], key_in(2));
  CHECK(counter.remove(names).front().done);
  world.memory.execute(Request::set(key_in(2), stale, Exptime::never()).on(servers[1]));
  CHECK_FALSE(value_of(world.context));
  Counter alone(world.with(1));
  CHECK(alone.incr("c", 1).value == 1);
  CHECK(code_of([&] { counter.incr("c", 1); }) == ErrorCode::bad_data);
  alone.remove(names);
  CHECK(counter.incr("c", 2).value == 2);
  CHECK(code_of([&] { alone.incr("c", 1); }) == ErrorCode::bad_data);
  CHECK(counter.remove(names).front().done);
  world.clock.advance(1h + 3s);
  CHECK(test::left_in(world.memory).empty());
}

// Each row: how far another client's clock is ahead of that of the counter's creator, for an hour.
TEST_CASE("counter copies: a client whose clock is wrong neither ends an exact counter nor prolongs it") {
  for (const std::size_t copies : {1U, 2U, 3U}) {
    for (const auto skew : {-180min, -30min, 30min, 180min}) {
      INFO("copies ", copies, ", skew in minutes ", skew.count());
      test::World world(3, copies);
      Counter(world.context).incr("c", 5, {.ttl = 1h, .exact = true});
      world.clock.set_skew(skew);
      CHECK(Counter(world.context).incr("c", 2, {.ttl = 1h, .exact = true}).value == 7);
      world.clock.set_skew(0s);
      CHECK(Counter(world.context).incr("c", 1).value == 8);
      world.clock.advance(59min);
      CHECK(value_of(world.context) == 8);
      world.clock.advance(1min + 10s);
      CHECK_FALSE(value_of(world.context));
    }
  }
}

// The value that was set may expire, and so may its record in other copies.
TEST_CASE("counter copies: a client whose clock is wrong does not undo a set or a removal") {
  for (const auto skew : {-180min, -30min, 30min, 180min}) {
    INFO("skew in minutes ", skew.count());
    test::World world(3, 3);
    Counter(world.context).incr("c", 5);
    Counter(world.context).set("c", 100, 1h, false);
    world.clock.set_skew(skew);
    CHECK(Counter(world.context).incr("c", 2).value == 102);
    world.clock.set_skew(0s);
    CHECK(value_of(world.context) == 102);
    CHECK(Counter(world.context).remove(std::vector<std::string>{"c"}).front().done);
    world.clock.set_skew(skew);
    CHECK_FALSE(value_of(world.context));
    CHECK(Counter(world.context).incr("c", 3).value == 3);
    world.clock.set_skew(0s);
    CHECK(value_of(world.context) == 3);
  }
}

TEST_CASE("counter copies: what was created or set with an expiry ends") {
  test::World world(3, 3);
  Counter counter(world.context);
  counter.incr("c", 5, {.ttl = 10s});
  counter.incr("c", 5);
  world.clock.advance(12s);
  CHECK_FALSE(value_of(world.context));
  counter.set("c", 7, 10s, false);
  CHECK(counter.incr("c", 1).value == 8);
  counter.set("c", 9, std::nullopt, false);
  world.clock.advance(12s);
  CHECK(value_of(world.context) == 9);
  // A server that missed the set with a ttl must not restore the earlier value.
  Cut cut(world, {copy_servers(world.context, key_in(3))[0]});
  Counter(cut.in(world, 3)).set("c", 3, 10s, false);
  world.clock.advance(5s);
  CHECK(value_of(world.context) == 3);
  world.clock.advance(7s);
  CHECK_FALSE(value_of(world.context));
}

TEST_CASE("counter copies: what a server missed comes back neither before nor after a short expiry") {
  for (const auto wait : {0s, 1s, 6s}) {
    for (const bool removes : {false, true}) {
      for (std::size_t away = 0; away < 3; ++away) {
        CAPTURE(wait.count());
        CAPTURE(removes);
        CAPTURE(away);
        test::World world(3, 3);
        Counter counter(world.context);
        counter.set("c", 700, std::nullopt, false);
        Cut cut(world, {copy_servers(world.context, key_in(3))[away]});
        Counter others(cut.in(world, 3));
        if (removes) {
          CHECK(others.remove(names).front().done);
          CHECK(others.incr("c", 1, {.ttl = 4s}).value == 1);
        } else {
          CHECK(others.set("c", 1, 4s, false).done);
        }
        world.clock.advance(wait);
        CHECK(value_of(world.context) == (wait < 4s ? std::optional<std::uint64_t>(1) : std::nullopt));
        // The expired counter must not cause a refusal of another copy count.
        if (wait > 4s) CHECK(Counter(world.with(1)).incr("c", 2).value == 2);
      }
    }
  }
}

TEST_CASE("counter copies: two that create it at the same moment with a short expiry both count") {
  test::World world(3, 3);
  Cut cut(world, {copy_servers(world.context, key_in(3))[0]});
  world.rival.before(1, [&] { Counter(cut.in(world, 3)).incr("c", 1, {.ttl = 4s}); });
  world.clock.advance(1s);
  Counter(world.context).incr("c", 1, {.ttl = 4s});
  CHECK(value_of(world.context) == 2);
}

TEST_CASE("counter copies: a limit allows no more than that, whichever copy its clients count on first") {
  for (std::size_t trip = 0; trip < 6; ++trip) {
    CAPTURE(trip);
    test::World world(3, 3);
    CHECK(test::limited(Counter(world.context), "c", 2, 1h).allowed);
    const auto window = std::to_string(world.clock.wall().time_since_epoch() / 1h);
    Cut cut(world, {copy_servers(world.context, key_in(3) + ":limit:3600000:" + window)[0]});
    bool theirs = false;
    world.rival.before(trip, [&] { theirs = test::limited(Counter(cut.in(world, 3)), "c", 2, 1h).allowed; });
    const bool ours = test::limited(Counter(world.context), "c", 2, 1h).allowed;
    CHECK_FALSE((ours && theirs));
    const LimitRule peek{.max = 2, .period = 1h, .peek = true};
    CHECK(Counter(world.context).limit(std::vector<LimitUse>{{"c"}}, peek).front().used <= 2);
  }
}

TEST_CASE("counter copies: a limit's uses in another number are refused, each of them, and stored nowhere") {
  for (const std::size_t kept : {1U, 2U, 3U}) {
    for (const std::size_t other : {1U, 2U, 3U}) {
      if (kept == other) continue;
      CAPTURE(kept);
      CAPTURE(other);
      test::World world(5, kept);
      CHECK(test::limited(Counter(world.context), "l", 9, 1h).allowed);
      const auto before = test::left_in(world.memory);
      const std::vector<LimitUse> uses{{"l"}, {"m"}, {"l"}, {"l"}, {"l", 2}, {"l"}};
      const auto results = Counter(world.with(other)).limit(uses, {.max = 9, .period = 1h});
      for (std::size_t i = 0; i < uses.size(); ++i) {
        CAPTURE(i);
        CHECK(results[i].failure.has_value() == (uses[i].name == "l"));
      }
      auto after = test::left_in(world.memory);
      std::erase_if(after, [](const std::string& key) { return key.find(":m:") != std::string::npos; });
      CHECK(after == before);
      const LimitRule peek{.max = 9, .period = 1h, .peek = true};
      CHECK(Counter(world.with(other)).limit(uses, peek).front().failure);
      CHECK(Counter(world.context).limit(uses, peek).front().used == 1);
    }
  }
}

TEST_CASE("counter copies: a limit in one copy that others use by now is not taken from them") {
  test::World world(3, 2);
  CHECK(test::limited(Counter(world.context), "l", 9, 1h).allowed);
  bool allowed = false;
  world.rival.before(world.rival.trips() + 1, [&] {
    Context others = world.others;
    others.copies = 1;
    allowed = test::limited(Counter(others), "l", 9, 1h).allowed;
  });
  CHECK(code_of([&] { test::limited(Counter(world.with(1)), "l", 9, 1h); }) == ErrorCode::unknown_outcome);
  CHECK(allowed);
  CHECK(Counter(world.with(1)).limit(std::vector<LimitUse>{{"l"}}, {.max = 9, .period = 1h}).front().used ==
        3);
}

TEST_CASE("counter copies: a limit counts in the record, and forgets nothing with a server") {
  test::World world(3, 3);
  Counter counter(world.context);
  const LimitRule peek{.max = 3, .period = 1h, .peek = true};
  CHECK(counter.limit(std::vector<LimitUse>{{"l"}}, peek).front().copies.size() == 3);
  CHECK(test::limited(counter, "l", 3, 1h, 2).allowed);
  const auto servers =
      copy_servers(world.context,
                   "counter3:l:limit:3600000:" + std::to_string(world.clock.wall().time_since_epoch() / 1h));
  world.memory.restart(servers[0]);
  CHECK_FALSE(test::limited(counter, "l", 3, 1h, 2).allowed);
  CHECK(counter.limit(std::vector<LimitUse>{{"l"}}, peek).front().used == 2);
  CHECK(test::limited(counter, "l", 3, 1h).allowed);
  CHECK_FALSE(test::limited(counter, "l", 3, 1h).allowed);
  CHECK(code_of([&] { test::limited(Counter(world.with(1)), "l", 3, 1h); }) == ErrorCode::bad_data);
  world.clock.advance(1h);
  CHECK(test::limited(counter, "l", 3, 1h, 2).allowed);
}

}  // namespace mcds::counter_copies_test
