#include "common/structures/visitors/visitors.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "common/base/errors.hpp"
#include "tests/support/world.hpp"

namespace mcds::visitors_test {

using namespace std::chrono_literals;

namespace {

struct World : test::World {
  Visitors site(Duration period = 10s) { return Visitors(context, "site", period); }
  // Advances to `offset` after the start of the next period of 10 s.
  void to_next_period(Duration offset = 0s) {
    const auto now = clock.wall().time_since_epoch();
    clock.advance((now / 10s + 1) * 10s - now + offset);
  }
};

}  // namespace

TEST_CASE("visitors: the value of the last full period does not move within a period") {
  World world;
  world.to_next_period();
  for (int i = 0; i < 5; ++i) world.site().hit();
  CHECK(world.site().value().visitors == 0);
  CHECK(world.site().value().current == 5);
  world.to_next_period();
  for (int second = 0; second < 10; ++second) {
    CHECK(world.site().value().visitors == 5);
    world.site().hit();
    world.clock.advance(second == 9 ? 999999us : 1s);
  }
  world.to_next_period();
  CHECK(world.site().value().visitors == 10);
}

TEST_CASE("visitors: ids that could not be counted are not marked, and count at the next attempt") {
  World world;
  Visitors site = world.site();
  const std::vector<std::string> ids{"a", "b", "c", "d"};
  world.faults.choose([](const Request& request) -> std::optional<test::Mishap> {
    const bool counts = request.op == Op::incr_or_create || request.op == Op::incr;
    return counts ? std::optional(test::Mishap::unreachable) : std::nullopt;
  });
  for (const auto& hit : site.hit(ids)) CHECK(hit.failure->code() == ErrorCode::unavailable);
  CHECK(test::left_in(world.memory).empty());
  world.faults.choose(nullptr);
  for (const auto& hit : site.hit(ids)) CHECK(hit.counted);
  CHECK(site.value().current == 4);
}

TEST_CASE("visitors: a mark that its server has moved, and that stays for that, is not told as untouched") {
  World world;
  world.faults.choose([&](const Request& request) -> std::optional<test::Mishap> {
    if (request.op == Op::incr_or_create || request.op == Op::incr) return test::Mishap::unreachable;
    if (request.op != Op::remove_if) return std::nullopt;
    // The value stays the same, but gets another cas token.
    MemoryServer& server = world.memory.server_for(request.key);
    server.execute(Request::set(request.key, server.peek(request.key)->value, Exptime::never()));
    return std::nullopt;
  });
  const std::vector<std::string> ids{"a"};
  CHECK(world.site().hit(ids).front().failure->code() == ErrorCode::unknown_outcome);
  CHECK(test::left_in(world.memory).size() == 1);
}

TEST_CASE("visitors: exact at one hit per period, on a period's first and last microsecond") {
  World world;
  for (const Duration offset : {Duration(0), Duration(5s), Duration(10s - 1us)}) {
    for (int period = 0; period < 20; ++period) {
      world.to_next_period(offset);
      const auto hit = world.site().hit();
      CHECK(hit.current == 1);
      world.to_next_period(0s);
      CHECK(world.site().value().visitors == 1);
      world.clock.advance(10s - 1us);
      CHECK(world.site().value().visitors == 1);
      CHECK(world.site().value().period_started_at == hit.period_started_at);
      world.clock.advance(1us);
      CHECK(world.site().value().visitors == 0);
    }
  }
}

TEST_CASE("visitors: clocks half a period apart lose nothing and mix nothing") {
  World world;
  for (int period = 0; period < 20; ++period) {
    world.to_next_period(1s);
    world.clock.set_skew(-5s + 1us);
    const auto behind = world.site().hit();
    world.clock.set_skew(5s - 1us);
    const auto ahead = world.site().hit();
    world.clock.set_skew(0s);
    CHECK(ahead.period_started_at - behind.period_started_at == 10s);
    world.clock.set_skew(-5s + 1us);
    world.clock.advance(8s);  // the slow clock is in the next period too
    CHECK(world.site().value().visitors == (period == 0 ? 1 : 2));
    world.clock.set_skew(0s);
  }
}

TEST_CASE("visitors: an id counts once per period, in a batch too, whatever its bytes") {
  World world;
  world.to_next_period();
  CHECK(world.site().hit("a b:%\n\xff").counted);
  CHECK_FALSE(world.site().hit("a b:%\n\xff").counted);
  const std::vector<std::string> ids{"x", "y", "x", std::string(9000, 'z'), "a b:%\n\xff"};
  const auto hits = world.site().hit(ids);
  std::vector<bool> counted;
  for (const auto& hit : hits) counted.push_back(hit.counted);
  CHECK(counted == std::vector<bool>{true, true, false, true, false});
  CHECK(hits.front().current == 4);
  world.to_next_period();
  CHECK(world.site().value().visitors == 4);
  CHECK(world.site().hit("x").counted);
  CHECK_THROWS_AS(world.site().hit(""), Failure);
}

TEST_CASE("visitors: a dead server costs only the ids it holds") {
  World world;
  world.site().hit();
  const auto counter_server = world.memory.placement().server_of(world.site().keys().back());
  world.memory.kill((counter_server + 1) % 3);
  std::vector<std::string> ids;
  for (int i = 0; i < 60; ++i) ids.push_back(std::to_string(i));
  std::uint64_t counted = 0;
  std::uint64_t failed = 0;
  for (const auto& hit : world.site().hit(ids)) {
    counted += hit.counted ? 1 : 0;
    failed += hit.failure ? 1 : 0;
  }
  CHECK(counted + failed == 60);
  CHECK(failed > 0);
  CHECK(world.site().hit().current == counted + 2);
}

TEST_CASE("visitors: round trips") {
  World world;
  const auto trips = [&](auto&& action) { return world.trips.trips_of(action); };
  CHECK(trips([&] { world.site(Visitors::usual_period).hit(); }) == 1);
  CHECK(trips([&] { world.site().hit(); }) == 4);
  CHECK(trips([&] { world.site().hit(); }) == 1);
  CHECK(trips([&] { world.site().hit("v"); }) == 2);
  CHECK(trips([&] { world.site().hit("v"); }) == 1);
  CHECK(trips([&] { world.site().value(); }) == 1);
}

TEST_CASE("visitors: the period in use is known until its counts are gone, and several are named") {
  World world;
  const auto in_use = [&] { return Visitors::period_in_use(world.context, "site"); };
  CHECK(in_use() == Visitors::usual_period);
  world.site(1h).hit();
  CHECK(world.trips.trips_of([&] { CHECK(in_use() == 1h); }) == 1);
  world.site(10s).hit();
  world.site().hit();
  CHECK_THROWS_WITH_AS(in_use(), doctest::Contains("1h, 10s"), InvalidInput);
  world.clock.advance(30s);
  CHECK(in_use() == 1h);
  world.site(Visitors::usual_period).hit();
  CHECK_THROWS_WITH_AS(in_use(), doctest::Contains("5m, 1h"), InvalidInput);
  world.clock.advance(3h);
  CHECK(in_use() == Visitors::usual_period);
}

TEST_CASE("visitors: a count that no reader would find does not begin, and one that goes on goes on") {
  World world;
  const std::size_t conf = world.memory.placement().server_of("visitors:site:conf");
  const auto begins = [&](Visitors site) {
    const auto failure = attempt([&] { site.hit("a"); }).failure();
    CHECK((!failure || failure->code() == ErrorCode::unavailable));
    return !failure;
  };
  // Only the conf key's server fails, whichever keys it has.
  const auto fail = [&](test::Mishap mishap) {
    world.faults.choose([mishap](const Request& request) {
      return request.key.ends_with(":conf") ? std::optional(mishap) : std::nullopt;
    });
  };
  for (const auto mishap : {test::Mishap::unreachable, test::Mishap::refused, test::Mishap::lost_request}) {
    fail(mishap);
    CHECK_FALSE(begins(world.site()));
    CHECK(test::left_in(world.memory).empty());
    CHECK(begins(world.site(Visitors::usual_period)));
    CHECK_THROWS_AS(Visitors::period_in_use(world.context, "site"), Failure);
    world.faults.none();
    world.clock.advance(1h);
  }
  CHECK(begins(world.site()));
  for (int period = 0; period < 3; ++period) {
    world.to_next_period();
    fail(test::Mishap::unreachable);
    CHECK(begins(world.site()));
  }
  world.memory.server(conf).execute(Request::set("visitors:site:conf", "theirs", Exptime::never()));
  world.faults.none();
  world.to_next_period();
  CHECK_THROWS_AS(world.site().hit(), CorruptData);
  CHECK_THROWS_AS(Visitors::period_in_use(world.context, "site"), CorruptData);
}

TEST_CASE("visitors: a mark that a lost add may leave is not told as left off") {
  using test::Mishap;
  for (const auto then : {Mishap::unreachable, Mishap::refused}) {
    World world;
    int adds = 0;
    world.faults.choose([&](const Request& request) -> std::optional<Mishap> {
      if (request.op != Op::add || !request.value.starts_with('V')) return std::nullopt;
      return adds++ == 0 ? Mishap::lost_request : then;
    });
    const std::vector<std::string> ids{"a"};
    CHECK(world.site().hit(ids).front().failure->code() == ErrorCode::unknown_outcome);
    adds = 0;
    world.faults.choose([&](const Request& request) -> std::optional<Mishap> {
      if (request.op == Op::incr_or_create) return Mishap::unreachable;
      const bool first = request.op == Op::add && adds++ == 0;
      return first ? std::optional(Mishap::lost_request) : std::nullopt;
    });
    CHECK(world.site().hit(ids).front().failure->code() == ErrorCode::unknown_outcome);
  }
}

TEST_CASE("visitors: a foreign value is an error, a strange period is refused") {
  World world;
  world.memory.execute(Request::set(world.site().keys().back(), "Vabc", Exptime::never()));
  CHECK_THROWS_AS(world.site().value(), CorruptData);
  CHECK_THROWS_AS(world.site().hit(), CorruptData);
  CHECK_THROWS_AS(world.site(0s), InvalidInput);
  CHECK_THROWS_AS(world.site(1500ms), InvalidInput);
  CHECK_THROWS_AS(Visitors(world.context, "", 10s), InvalidInput);
}

TEST_CASE("visitors: periods beyond the 30-day rule live as long as they must") {
  World world;
  const auto month = std::chrono::hours(20 * 24);
  world.site(month).hit();
  const auto key = world.site(month).keys().back();
  const auto item = world.memory.server_for(key).peek(key);
  REQUIRE(item);
  world.clock.advance(month);
  CHECK(world.site(month).value().visitors == 1);
}

TEST_CASE("visitors: the estimate's error is 0.41 sqrt(mean), the plain value's sqrt(mean)") {
  SeededRandom random(11);
  constexpr double mean = 400;
  double plain = 0;
  double interpolated = 0;
  double predicted = 0;
  constexpr int rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    const double f = random.unit();
    Visitors::Value value;
    value.elapsed = f;
    double truth = 0;
    // Hits arrive over the last two periods, in slices that each hold one hit with a small probability.
    for (int slice = 0; slice < 8000; ++slice) {
      if (random.unit() >= mean / 4000) continue;
      const double age = (slice + 0.5) / 4000;  // in periods before now
      truth += age < 1 ? 1 : 0;
      if (age < f) ++value.current;
      if (age >= f && age < 1 + f) ++value.visitors;
    }
    plain += std::pow(static_cast<double>(value.visitors) - truth, 2);
    interpolated += std::pow(value.estimate() - truth, 2);
    predicted += std::pow(value.standard_error(), 2);
  }
  const auto relative_rms = [&](double sum) { return std::sqrt(sum / rounds / mean); };
  CHECK(relative_rms(plain) == doctest::Approx(1).epsilon(0.1));
  CHECK(relative_rms(interpolated) == doctest::Approx(0.41).epsilon(0.1));
  CHECK(relative_rms(predicted) == doctest::Approx(0.41).epsilon(0.1));
}

TEST_CASE("visitors: jitter is centred on the value and never negative") {
  World world;
  double sum = 0;
  for (int i = 0; i < 2000; ++i) sum += static_cast<double>(world.site().jittered(1000, 0.05));
  CHECK(sum / 2000 == doctest::Approx(1000).epsilon(0.01));
  for (int i = 0; i < 100; ++i) CHECK(world.site().jittered(1, 1.0) < 10);
  CHECK(world.site().jittered(1000, 0) == 1000);
}

}  // namespace mcds::visitors_test
