// One lock and 64 processes that die at random, on a real server. MCDS_TEST_LOCK_SECONDS sets for how long.
#include "common/structures/lock/lock.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "common/base/errors.hpp"
#include "tests/support/children.hpp"
#include "tests/support/memcached_process.hpp"

namespace mcds::lock_test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t processes = 64;
constexpr Duration ttl = 1s;

// One holder's time; nothing is taken back when its process is killed.
struct Tenure {
  std::atomic<std::int64_t> from, until;  // the machine's steady clock
  std::atomic<std::uint64_t> fence;
  std::atomic<pid_t> pid;  // written last
};

struct Log {
  std::atomic<std::size_t> size;
  std::array<Tenure, 1 << 18> tenures;
};

std::int64_t nanoseconds(SteadyTime time) {
  return time.time_since_epoch().count();
}

void contend(const Server& server, Log& log) {
  const auto cluster = connect(make_placement("ketama", test::pool_of({server})), {});
  SystemClock clock;
  SystemRandom random;
  Lock lock({*cluster, clock, random, {}}, "nightly");
  while (true) {
    const auto answer = lock.acquire({.ttl = ttl, .holder = {}, .fence = true, .wait = Duration::max()});
    const SteadyTime from = clock.steady();
    const std::size_t slot = log.size.fetch_add(1);
    if (slot >= log.tenures.size()) return;
    Tenure& tenure = log.tenures[slot];
    tenure.from = nanoseconds(from);
    tenure.until = nanoseconds(answer.lease->deadline);
    tenure.fence = *answer.lease->fence;
    tenure.pid = getpid();
    clock.sleep_for(std::chrono::microseconds(random.below(3000)));
    // A holder that was stalled past its deadline is none any more.
    tenure.until = std::min(nanoseconds(clock.steady()), tenure.until.load());
    lock.release(*answer.lease);
  }
}

}  // namespace

TEST_CASE("lock: 64 processes killed at random: never two holders, fencing tokens strictly grow") {
  test::MemcachedProcess memcached;
  test::Shared<Log> log;
  test::Children children;
  SystemClock clock;
  SystemRandom random;
  const auto spawn = [&] { children.spawn([&] { contend(memcached.server(), *log); }); };
  for (std::size_t i = 0; i < processes; ++i) spawn();
  const SteadyTime end = clock.steady() + std::chrono::seconds(test::amount("MCDS_TEST_LOCK_SECONDS", 3));
  std::size_t kills = 0;
  while (clock.steady() < end) {
    clock.sleep_for(20ms);
    children.kill_one(random.below(children.size()));
    ++kills;
    spawn();
  }
  while (children.size() != 0) children.kill_one(0);

  std::vector<std::array<std::uint64_t, 3>> held;
  const std::size_t size = std::min(log->size.load(), log->tenures.size());
  for (std::size_t i = 0; i < size; ++i) {
    const Tenure& tenure = log->tenures[i];
    if (tenure.pid == 0) continue;
    held.push_back(
        {static_cast<std::uint64_t>(tenure.from), static_cast<std::uint64_t>(tenure.until), tenure.fence});
  }
  std::sort(held.begin(), held.end());
  std::size_t overlaps = 0;
  std::size_t fences_not_grown = 0;
  for (std::size_t i = 1; i < held.size(); ++i) {
    overlaps += held[i - 1][1] > held[i][0] ? 1 : 0;
    fences_not_grown += held[i - 1][2] >= held[i][2] ? 1 : 0;
  }
  MESSAGE(held.size(), " holders, ", kills, " processes killed");
  CHECK(held.size() > 10);
  CHECK(overlaps == 0);
  CHECK(fences_not_grown == 0);
}

}  // namespace mcds::lock_test
