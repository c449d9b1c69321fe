#include <doctest/doctest.h>

#include "common/replication/replicas.hpp"
#include "common/structures/counter/counter.hpp"
#include "tests/support/world.hpp"

namespace mcds::copies_test {

namespace {

using namespace std::chrono_literals;

struct CopyWorld : test::World {
  explicit CopyWorld(std::size_t servers = 3, std::size_t copies = 2) : World(servers, copies) {}
  std::string stored(const std::string& key, std::size_t copy) {
    return stored_on(copy_servers(context, key)[copy], key);
  }
};

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
    const Request part = Request::get(root + ":s:" + world.random.token()).placed_with(root);
    CHECK(world.context.cluster.server_of(part) == copy_servers(world.context, root).front());
    const auto replies = world.context.cluster.execute(to_copies(world.context, std::span(&part, 1)));
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

TEST_CASE("copies: flags of another program keep nobody from setting a counter of one copy") {
  test::World world(5, 1);
  Request theirs = Request::set("counter:c", "41", Exptime::never());
  theirs.flags = 2;
  world.context.cluster.execute(theirs);
  Counter counter(world.context);
  CHECK(counter.set("c", 5, std::nullopt, false).done);
  CHECK(counter.take("c").value == 5);
}

}  // namespace mcds::copies_test
