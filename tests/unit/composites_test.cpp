#include <doctest/doctest.h>

#include "common/cluster/decorators.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/memory_cluster.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

// Composites over an in-memory server with a trip counter, faults and a concurrent writer.
struct Stack {
  FakeClock clock;
  MemoryCluster memory{clock.time(), 1};
  ScriptedFaults faults{memory};
  Rival rival{faults};
  TripCounter trips{rival};
  Composites cluster{trips};

  Reply put(const std::string& key, const std::string& value) {
    return cluster.execute(Request::append_or_create(key, "P", value, Exptime::never()));
  }
  Reply count(const std::string& key) {
    return cluster.execute(Request::incr_or_create(key, 5, 7, Exptime::never()));
  }
  std::string value(const std::string& key) { return memory.execute(Request::get(key)).value; }
};

}  // namespace

TEST_CASE("composites cost one trip when the item exists, two to create it") {
  Stack stack;
  Reply created;
  CHECK(stack.trips.trips_of([&] { created = stack.count("n"); }) == 2);
  CHECK(created.outcome == Outcome::stored);
  CHECK(created.created);
  CHECK(created.number == 7);
  Reply added;
  CHECK(stack.trips.trips_of([&] { added = stack.count("n"); }) == 1);
  CHECK(!added.created);
  CHECK(added.number == 12);
  CHECK(stack.trips.trips_of([&] { CHECK(stack.put("log", "a").created); }) == 2);
  CHECK(stack.trips.trips_of([&] { CHECK(!stack.put("log", "b").created); }) == 1);
  CHECK(stack.value("log") == "Pab");
}

TEST_CASE("a batch of composites costs the trips of its slowest member") {
  Stack stack;
  std::vector<Request> batch;
  for (int i = 0; i < 50; ++i)
    batch.push_back(Request::incr_or_create("n" + std::to_string(i), 1, 1, Exptime::never()));
  for (int i = 0; i < 50; ++i)
    batch.push_back(Request::append_or_create("l" + std::to_string(i), "P", "x", Exptime::never()));
  stack.count("n3");
  CHECK(stack.trips.trips_of([&] { stack.cluster.execute(batch); }) == 2);
  CHECK(stack.trips.trips_of([&] { stack.cluster.execute(batch); }) == 1);
  CHECK(stack.value("n4") == "2");
  CHECK(stack.value("l4") == "Pxx");
}

TEST_CASE("requests of one key take effect in batch order, whatever must be created") {
  Stack stack;
  const std::vector<Request> batch = {Request::append_or_create("k", "P", "a", Exptime::never()),
                                      Request::append_or_create("k", "P", "b", Exptime::never()),
                                      Request::get("k"),
                                      Request::append_or_create("k", "P", "c", Exptime::never()),
                                      Request::remove("k"),
                                      Request::append_or_create("k", "Q", "d", Exptime::never()),
                                      Request::get("k")};
  // A concurrent writer that creates the key between two trips must not reorder ours.
  stack.rival.before(1, [&] { stack.memory.execute(Request::add("k", "R", Exptime::never())); });
  const std::vector<Reply> replies = stack.cluster.execute(batch);
  CHECK(replies[2].value == "Rab");
  CHECK(replies[4].outcome == Outcome::deleted);
  CHECK(replies[5].created);
  CHECK(replies[6].value == "Qd");
}

TEST_CASE("a rival that creates the item between incr and add is counted with, not overwritten") {
  Stack stack;
  stack.rival.before(1, [&] { stack.memory.execute(Request::add("n", "100", Exptime::never())); });
  const Reply reply = stack.count("n");
  CHECK(!reply.created);
  CHECK(reply.number == 105);
}

TEST_CASE("incr_or_create against a rival that always interferes ends, refused") {
  Stack stack;
  stack.rival.always([&] {
    const Request remove = Request::remove("n");
    if (stack.rival.trips() % 2 == 0)
      stack.memory.execute(remove);
    else
      stack.memory.execute(Request::add("n", "1", Exptime::never()));
  });
  const Reply reply = stack.count("n");
  CHECK(reply.is(ReplyFailure::Kind::refused));
  CHECK(stack.trips.trips() == 2 * Composites::max_rounds);
}

TEST_CASE("append_or_create tells a full item from a missing one and from one that cannot be created") {
  Stack stack;
  CHECK(stack.put("k", std::string(max_value_size - 10, 'x')).created);
  Reply full;
  CHECK(stack.trips.trips_of([&] { full = stack.put("k", std::string(1000, 'y')); }) <= 4);
  CHECK(full.outcome == Outcome::not_stored);
  CHECK(stack.value("k").size() == max_value_size - 9);
  stack.memory.server(0).options().memory_limit = 1;
  CHECK(stack.put("k", std::string(400, 'y')).outcome == Outcome::not_stored);
  CHECK(stack.put("other", std::string(100000, 'y')).is(ReplyFailure::Kind::refused));
}

TEST_CASE(
    "append_or_create of an item that was just missing takes one trip, and appends if a rival was faster") {
  const auto create = [](Stack& stack) {
    return stack.cluster.execute(Request::append_or_create("k", "P", "v", Exptime::never()).creating_first());
  };
  Stack alone;
  CHECK(alone.trips.trips_of([&] { CHECK(create(alone).created); }) == 1);
  CHECK(alone.value("k") == "Pv");
  Stack stack;
  stack.memory.execute(Request::add("k", "R", Exptime::never()));
  Reply appended;
  CHECK(stack.trips.trips_of([&] { appended = create(stack); }) == 2);
  CHECK(appended.outcome == Outcome::stored);
  CHECK(!appended.created);
  CHECK(stack.value("k") == "Rv");
  // A server without memory refuses the add although the item is there, and has room for the append.
  stack.faults.once(Op::add, Mishap::refused);
  CHECK(create(stack).outcome == Outcome::stored);
  CHECK(stack.value("k") == "Rvv");
  stack.faults.once(Op::add, Mishap::refused);
  CHECK(stack.put("none", "v").is(ReplyFailure::Kind::refused));
}

TEST_CASE("an unknown outcome inside a composite stays unknown and nothing is sent again") {
  for (const Op step : {Op::incr, Op::add}) {
    Stack stack;
    stack.faults.once(step, Mishap::lost_reply);
    CHECK(stack.count("n").unknown());
    CHECK(stack.trips.trips() == (step == Op::incr ? 1 : 2));
  }
  for (const Op step : {Op::append, Op::add}) {
    Stack stack;
    stack.faults.once(step, Mishap::lost_reply);
    CHECK(stack.put("k", "v").unknown());
    CHECK(stack.value("k") == (step == Op::add ? "Pv" : ""));
  }
}

TEST_CASE("tracing tells every request with its outcome and time") {
  Stack stack;
  std::vector<std::string> lines;
  auto faults = std::make_unique<ScriptedFaults>(stack.memory);
  faults->once(Op::set, Mishap::unreachable);
  Tracing tracing(std::move(faults), [&](const TracedRequest& traced) {
    lines.push_back(std::string(name_of(traced.request.op)) + ' ' + traced.request.key + ' ' +
                    std::string(word_of(traced.reply)) + ' ' + std::to_string(traced.server));
  });
  tracing.execute(std::vector{Request::get("a"), Request::set("b", "1", Exptime::never())});
  CHECK(lines == std::vector<std::string>{"get a miss 0", "set b unreachable 0"});
}

TEST_CASE("composites: a part is looked for, and created, where the key is that it lies with") {
  FakeClock clock;
  MemoryCluster memory(clock.time(), 3);
  Composites cluster(memory);
  for (int i = 0; i < 20; ++i) {
    const std::string owner = "log" + std::to_string(i);
    const std::string part = owner + ".1";
    cluster.execute(Request::append_or_create(part, "P", "a", Exptime::never()).placed_with(owner));
    cluster.execute(Request::incr_or_create(part + "n", 1, 7, Exptime::never()).placed_with(owner));
    CHECK(memory.server_for(owner).peek(part).has_value());
    CHECK(memory.server_for(owner).peek(part + "n").has_value());
  }
}
