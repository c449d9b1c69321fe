#include "common/structures/counter/sliding.hpp"

#include <doctest/doctest.h>

#include <deque>

#include "common/base/random.hpp"
#include "common/primitives/seal.hpp"

namespace mcds::sliding_test {

using namespace std::chrono_literals;

namespace {

WallTime at(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(1'000'000'000 + ms));
}

}  // namespace

TEST_CASE("sliding: uses are allowed until the window is full, and again when the first has left it") {
  const SlidingLimit limit{2, 1000ms};
  CHECK(limit.slack() == 50ms);
  SlidingUses uses;
  CHECK(uses.ask(limit, at(0), 1).allowed);
  CHECK(uses.ask(limit, at(500), 1).allowed);
  const auto denied = uses.ask(limit, at(600), 1);
  CHECK_FALSE(denied.allowed);
  CHECK(denied.used == 2);
  CHECK(denied.retry_after == 451ms);
  CHECK_FALSE(uses.ask(limit, at(1050), 1).allowed);
  CHECK(uses.ask(limit, at(1051), 1).allowed);
  CHECK_FALSE(uses.ask(limit, at(1051), 1).allowed);
}

TEST_CASE("sliding: a large cost waits for as many uses to leave") {
  const SlidingLimit limit{5, 1000ms};
  SlidingUses uses;
  CHECK(uses.ask(limit, at(0), 3).allowed);
  CHECK(uses.ask(limit, at(100), 2).allowed);
  CHECK(uses.ask(limit, at(200), 5).retry_after == 951ms);
  CHECK(uses.ask(limit, at(200), 3).retry_after == 851ms);
}

TEST_CASE(
    "sliding: where the server's clock is known, one that is ahead frees nothing, and one that is behind "
    "waits for nothing") {
  const SlidingLimit limit{2, 60s};
  SlidingUses uses;
  CHECK(uses.ask(limit, at(0), 2).allowed);
  const auto asked = [&](WallTime now, std::chrono::seconds ttl) {
    SlidingUses copy = uses;
    return copy.ask(limit, copy.corrected(limit, now, ttl), 1).allowed;
  };
  CHECK_FALSE(asked(at(0) + 1h, 62s));
  CHECK_FALSE(asked(at(0) + 1h, 10s));
  CHECK(asked(at(0) + 1h, 1s));
  CHECK(uses.corrected(limit, at(0) - 1h, 2s) > at(55'000));
  CHECK(uses.corrected(limit, at(0) - 1h, 2s) < at(60'000));
  CHECK(uses.corrected(limit, at(30'000), 32s) == at(30'000));
  CHECK(uses.corrected(limit, at(30'000), std::nullopt) == at(30'000));
}

TEST_CASE("sliding: a clock that is behind counts as being where the newest was") {
  const SlidingLimit limit{1, 1000ms};
  SlidingUses uses;
  CHECK(uses.ask(limit, at(5000), 1).allowed);
  CHECK_FALSE(uses.ask(limit, at(0), 1).allowed);
  CHECK(uses.ask(limit, at(0), 1).retry_after == 1051ms);
}

TEST_CASE("sliding: what is withdrawn was not used") {
  const SlidingLimit limit{1, 1000ms};
  SlidingUses uses;
  const auto answer = uses.ask(limit, at(0), 1);
  uses.withdraw(answer.stored_at, 1);
  CHECK(uses.ask(limit, at(1), 1).allowed);
}

TEST_CASE("sliding: the value is a record; another's is none") {
  const SlidingLimit limit{3, 1000ms};
  SlidingUses uses;
  CHECK(uses.text() == seal("S1"));
  static_cast<void>(uses.ask(limit, at(0), 2));
  static_cast<void>(uses.ask(limit, at(7), 1));
  CHECK(uses.text() == seal("S1 1000000051:2 1000000058:1"));
  CHECK(SlidingUses::parse(uses.text())->text() == uses.text());
  for (const char* other : {"", "5", "S1", "S1 1:1"}) CHECK_FALSE(SlidingUses::parse(other));
  for (const char* damaged : {"S1 x:1", "S1 1", "S1 1:", "S1  1:1", "S2", "S1 1:-1"})
    CHECK_FALSE(SlidingUses::parse(seal(damaged)));
}

TEST_CASE("sliding: the value of a large limit stays small") {
  const SlidingLimit limit{100000, 60s};
  SlidingUses uses;
  std::uint64_t allowed = 0;
  for (int i = 0; i < 100000; ++i) allowed += uses.ask(limit, at(i), 1).allowed ? 1 : 0;
  CHECK(allowed > 98000);
  CHECK(uses.text().size() < 25000);
}

// Concurrent clients whose clocks differ a little ask in any order, and get their answers some time later.
// Each use may lie anywhere between its request and its answer: no window of the period's length has more
// uses than allowed, and no client is denied for long.
TEST_CASE("sliding: no window has more uses than allowed, whoever asks when") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    const SlidingLimit limit{1 + random.below(seed % 10 == 0 ? 3000 : 6),
                             std::chrono::milliseconds(200 + random.below(4000))};
    SlidingUses uses;
    struct Use {
      std::int64_t asked, answered;
    };
    std::deque<Use> recent;
    std::int64_t now = 0;
    std::uint64_t allowed = 0;
    for (int i = 0; i < 3000; ++i) {
      now += static_cast<std::int64_t>(
          random.below(static_cast<std::uint64_t>(limit.period.count()) / (limit.max + 1) + 1));
      const auto answer = uses.ask(limit, at(now), 1);
      if (!answer.allowed) continue;
      ++allowed;
      recent.push_back({now, now + static_cast<std::int64_t>(
                                       random.below(static_cast<std::uint64_t>(limit.slack().count()) + 1))});
      if (recent.size() <= limit.max) continue;
      // The use that is `max` uses older was answered at least a period before this one was requested.
      REQUIRE(recent.back().asked - recent.front().answered >= limit.period.count());
      recent.pop_front();
    }
    const auto periods = static_cast<std::uint64_t>(now / (limit.period.count() + limit.slack().count() + 2));
    CHECK(allowed + limit.max >= std::min<std::uint64_t>(periods * limit.max * 6 / 10, 3000 * 6 / 10));
  }
}

}  // namespace mcds::sliding_test
