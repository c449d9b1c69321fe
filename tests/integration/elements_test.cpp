// Tables and hashes changed by many processes, on real servers through a proxy that loses requests and
// replies, while others compact. MCDS_TEST_SECONDS sets how long.
#include "common/structures/elements/elements.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <map>

#include "common/base/errors.hpp"
#include "tests/support/lossy_pair.hpp"

namespace mcds::elements_test {

namespace {

using namespace std::chrono_literals;
using Protocol = ConnectOptions::Protocol;

using test::processes;
constexpr std::size_t names_each = 200;

// Time goes by faster, so that the grace of the index is over within seconds.
class FastClock final : public Clock {
 public:
  static constexpr int factor = 30;
  WallTime wall() const override {
    return began_ + std::chrono::duration_cast<std::chrono::microseconds>((real_.wall() - began_) * factor);
  }
  SteadyTime steady() const override { return SteadyTime(real_.steady().time_since_epoch() * factor); }
  void sleep_for(Duration duration) override { real_.sleep_for(duration); }

 private:
  SystemClock real_;
  WallTime began_ = WallTime(std::chrono::seconds(1'795'000'000));
};

enum class State : char { absent, present, unknown };

struct Ledger {
  std::atomic<State> own[processes][names_each];
  std::atomic<std::uint64_t> done, unknown, not_applied, compactions;
};

std::string own_name(std::size_t process, std::size_t i) {
  const std::string name = std::to_string(process) + '/' + std::to_string(i);
  return i % 4 == 0 ? name + std::string(2000, '.') : name;
}

// Each process has names of its own, of which it knows how it left them, and changes some that all have.
void change(Context context, std::size_t process, SteadyTime end, Ledger& ledger) {
  Elements elements(context, "hash", "h");
  while (context.clock.steady() < end) {
    const bool shared = context.random.below(4) == 0;
    const std::size_t i = context.random.below(names_each);
    const std::string name = shared ? "shared" + std::to_string(i % 8) : own_name(process, i);
    const bool remove = context.random.below(3) == 0;
    const Element element{name, std::to_string(process)};
    // What is not known of the structure, such as whether it is being moved, is thrown.
    const auto answer = attempt([&] {
      const auto result = remove ? elements.remove(std::span(&name, 1)).front()
                                 : elements.set(std::span(&element, 1)).front();
      if (result.failure) raise(*result.failure);
    });
    const auto& failure = answer.failure();
    const bool unknown = failure && failure->code() == ErrorCode::unknown_outcome;
    ++(unknown ? ledger.unknown : failure ? ledger.not_applied : ledger.done);
    if (shared) continue;
    // Once unknown, always: it may still be executed.
    auto& state = ledger.own[process][i];
    if (unknown) state = State::unknown;
    if (!failure && state != State::unknown) state = remove ? State::absent : State::present;
  }
}

void compact(Context context, SteadyTime end, Ledger& ledger) {
  Elements elements(context, "hash", "h");
  while (context.clock.steady() < end) {
    elements.compact();
    ++ledger.compactions;
    context.clock.sleep_for(300ms);
  }
}

void check_many_processes(Protocol protocol) {
  test::LossyPair servers(0.005);
  const Pool lossy = servers.lossy();
  const FastClock clock;
  const SteadyTime end =
      clock.steady() + std::chrono::seconds(test::amount("MCDS_TEST_SECONDS", 4)) * FastClock::factor;
  test::Shared<Ledger> ledger;
  test::Children children;
  for (std::size_t process = 0; process < processes; ++process) {
    children.spawn([&, process] {
      test::RealClient client(lossy, protocol, 200ms);
      FastClock fast;
      change({*client.cluster, fast, client.random, {}}, process, end, *ledger);
    });
  }
  children.spawn([&] {
    test::RealClient client(servers.honest(), protocol, 2s);
    FastClock fast;
    compact({*client.cluster, fast, client.random, {}}, end, *ledger);
  });
  CHECK(children.wait_all() == 0);

  test::RealClient reader(servers.honest(), Protocol::automatic, 2s);
  Elements elements(reader.context(), "hash", "h");
  std::map<std::string, std::string> fetched;
  const auto listing =
      elements.fetch([&](Elements::Found& found) { CHECK(fetched.emplace(found.name, found.value).second); });
  std::size_t present = 0;
  std::size_t wrong = 0;
  for (std::size_t process = 0; process < processes; ++process) {
    for (std::size_t i = 0; i < names_each; ++i) {
      const State state = ledger->own[process][i];
      if (state == State::unknown) continue;
      present += state == State::present ? 1 : 0;
      wrong += fetched.contains(own_name(process, i)) == (state == State::present) ? 0 : 1;
    }
  }
  MESSAGE("done ", ledger->done.load(), ", unknown ", ledger->unknown.load(), ", not applied ",
          ledger->not_applied.load(), ", compactions ", ledger->compactions.load(), ", index lines ",
          listing.lines, ", present ", fetched.size(), ", faults ", servers.faults());
  CHECK(wrong == 0);
  CHECK(present > 0);
  CHECK(servers.faults() > 0);
  CHECK(ledger->done > processes * 10);
}

}  // namespace

TEST_CASE(
    "elements: 64 processes, lost requests and replies, compaction meanwhile: nothing acknowledged is "
    "missing or comes back") {
  SUBCASE("meta") {
    check_many_processes(Protocol::meta);
  }
  SUBCASE("classic") {
    check_many_processes(Protocol::classic);
  }
}

}  // namespace mcds::elements_test
