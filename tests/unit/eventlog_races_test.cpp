// Interleavings of event logs that once went wrong, found by exhaustive exploration, repeated step by step.
#include <doctest/doctest.h>

#include <functional>
#include <utility>

#include "tests/support/cluster_doubles.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/event_log.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/memory_cluster.hpp"

namespace mcds::eventlog_races_test {

using namespace std::chrono_literals;

namespace {

// Lets other clients act once between two requests of one batch.
class Interrupted final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  // Sets an action that runs after the `count`-th request from now on.
  void behind(std::size_t count, std::function<void()> action) {
    left_ = count;
    action_ = std::move(action);
  }
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies;
    for (const Request& request : batch) {
      replies.push_back(inner().execute(request));
      if (left_ != 0 && --left_ == 0) std::exchange(action_, {})();
    }
    return replies;
  }

 private:
  std::size_t left_ = 0;
  std::function<void()> action_;
};

struct Races {
  static constexpr RingShape shape{10, 4};
  FakeClock clock;
  MemoryCluster servers{clock.time(), 1, {.item_size = 500}};
  Interrupted cluster{servers};
  SeededRandom random{7};
  Context context{cluster, clock, random, ""};
  Context rival{servers, clock, random, ""};

  void put(Context& by, std::string_view text) { EventLog(by, "x", shape).put(text, EventData::text); }
  CollectingSink deliver(CursorState& state) {
    CollectingSink sink;
    EventLog(context, "x", shape).deliver(state, sink);
    return sink;
  }
  std::size_t parts() {
    std::size_t count = 0;
    for (const auto& [key, item] : servers.server(0).items())
      count += key.find(":10x4:1") != key.npos ? 1 : 0;
    return count;
  }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("eventlog: a part created while a reader asks for its chunk's parts is not taken for lost") {
  // The action runs after each request of the read, in turn.
  for (std::size_t behind = 1; behind <= 17; ++behind) {
    Races races;
    races.clock.advance(1s);
    CursorState state;
    races.cluster.behind(behind, [&] {
      races.put(races.rival, std::string(200, 'a'));
      races.put(races.rival, std::string(200, 'b'));
    });
    const CollectingSink first = races.deliver(state);
    REQUIRE(races.parts() == 2);
    CHECK(first.gaps.empty());
    races.clock.advance(3s);
    const CollectingSink second = races.deliver(state);
    CHECK(second.gaps.empty());
    CHECK(first.events.size() + second.events.size() == 2);
  }
}

TEST_CASE("eventlog: a part that came into being while a writer looked is not taken for full") {
  for (std::size_t behind = 1; behind <= 3; ++behind) {
    Races races;
    races.cluster.behind(behind, [&] { races.put(races.rival, "a"); });
    races.put(races.context, "b");
    CHECK(races.parts() == 1);
    CursorState state;
    CHECK(races.deliver(state).events.size() == 2);
  }
}

TEST_CASE("eventlog: a cursor read by clocks less than half a chunk off delivers each event once") {
  for (const int first : {-1, 1}) {
    Races races;
    CursorState state;
    races.put(races.context, "e");
    std::size_t times = 0;
    for (int step = 0; step < 500; ++step) {
      // Each reader reads twice: a cursor must not drop what its other reader still reads.
      races.clock.set_skew(first * (step / 2 % 2 == 0 ? 4900ms : -4900ms));
      times += races.deliver(state).events.size();
      races.clock.advance(200ms);
    }
    CHECK(times == 1);
    CHECK(state.parts.empty());
  }
}

TEST_CASE("eventlog: a clock that was far ahead once makes a cursor neither repeat nor miss an event") {
  Races races;
  CursorState state;
  races.put(races.context, "e");
  CHECK(races.deliver(state).texts() == Texts{"e"});
  races.clock.set_skew(std::chrono::hours(24));
  CHECK(races.deliver(state).events.empty());
  races.clock.set_skew(0s);
  races.put(races.context, "f");
  CHECK(races.deliver(state).texts() == Texts{"f"});
  CHECK(races.deliver(state).events.empty());
}

// The writer got no reply, and was slow to check.
TEST_CASE(
    "eventlog: a part that was read and is found replaced is reported, also when it is promised no more") {
  Races races;
  CursorState state;
  const LogKeys keys = EventLog(races.context, "x", Races::shape).keys();
  races.put(races.context, "a");
  races.deliver(state);
  const PartName name{Races::shape.chunk_of(races.clock.wall()), 0};
  const std::string value = races.servers.server(0).peek(keys.part(name))->value;
  const std::string line = value.substr(parse_part_header(value, name)->size);
  REQUIRE(races.servers.evict(keys.part(name)));
  races.clock.advance(Races::shape.kept() + std::chrono::seconds(Races::shape.chunk_s));
  const std::string again = races.random.token();
  races.servers.execute(Request::append(keys.directory(name.chunk / chunks_per_directory),
                                        named_line(name, again, races.clock.wall())));
  races.servers.execute(Request::set(keys.part(name), part_header(name, again) + line, Exptime::never()));
  const auto sink = races.deliver(state);
  CHECK(sink.texts() == Texts{"a"});
  REQUIRE(sink.gaps.size() == 2);
  CHECK(sink.gaps[0].reason == LogGap::Reason::expired);
  CHECK(sink.gaps[1].reason == LogGap::Reason::evicted);
  CHECK(sink.gaps[1].from == Races::shape.start_of(name.chunk));
}

}  // namespace mcds::eventlog_races_test
