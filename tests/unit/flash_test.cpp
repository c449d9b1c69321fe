// Items on flash: the answers of memcached 1.6.18 with extstore, which flash_test.py checks on a real server.
#include <doctest/doctest.h>

#include <set>

#include "common/cluster/decorators.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/memory_cluster.hpp"

using namespace mcds;
using namespace mcds::test;

namespace mcds::flash_test {

namespace {

// An in-memory server whose items move to flash when a test says so. A written item is in memory again.
class FlashServer final : public Decorator {
 public:
  FlashServer(Cluster& inner, bool has_file) : Decorator(inner), has_file_(has_file) {}
  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies;
    for (const Request& request : batch) {
      replies.push_back(answer(request));
      replies.back().protocol = protocol;
      if (on_answer) on_answer(request);
    }
    return replies;
  }

  std::set<std::string> on_flash;
  Reply::Protocol protocol = Reply::Protocol::meta;
  std::function<void(const Request&)> on_answer;
  int statistics = 0;

 private:
  Reply answer(const Request& request) {
    if (request.op == Op::stats) {
      ++statistics;
      Reply reply = Reply::of(Outcome::hit, 0);
      reply.value = has_file_ ? "curr_items 1\nextstore_limit_maxbytes 67108864\n" : "curr_items 1\n";
      return reply;
    }
    const bool flashed = on_flash.contains(request.key);
    if (flashed && request.op == Op::append) return Reply::of(Outcome::not_stored, 0);
    if (flashed && (request.op == Op::incr || request.op == Op::decr || request.op == Op::incr_or_create))
      return Reply::failed_with(ReplyFailure::Kind::not_a_number, "not a number", 0);
    const Reply reply = inner().execute(request);
    if (reply.outcome == Outcome::stored && request.op != Op::touch) on_flash.erase(request.key);
    return reply;
  }

  bool has_file_;
};

struct FlashStack {
  explicit FlashStack(bool has_file = true) : server(memory, has_file) {}
  FakeClock clock;
  MemoryCluster memory{clock.time(), 1};
  FlashServer server;
  FlashItems cluster{std::make_unique<TripCounter>(server)};

  void put(const std::string& key, const std::string& value, Exptime exptime = Exptime::never()) {
    Request request = Request::set(key, value, exptime);
    request.flags = 7;
    memory.execute(request);
    server.on_flash.insert(key);
  }
  MemoryItem item(const std::string& key) { return memory.server(0).peek(key).value(); }
};

}  // namespace

TEST_CASE("flash: what changes a value in place is done by cas, and flags and ttl stay") {
  FlashStack stack;
  stack.put("log", "one", Exptime::after(std::chrono::seconds(90), stack.clock.wall()));
  CHECK(stack.cluster.execute(Request::append("log", "two")).outcome == Outcome::stored);
  CHECK(stack.item("log").value == "onetwo");
  CHECK(stack.item("log").flags == 7);
  const Reply probe = stack.memory.execute(Request::probe("log", 0));
  CHECK(probe.age.ttl.value().count() >= 89);
  CHECK(probe.age.ttl.value().count() <= 91);

  stack.put("n", "41");
  CHECK(stack.cluster.execute(Request::incr("n", 1)).number == 42);
  stack.put("n", "18446744073709551615");
  CHECK(stack.cluster.execute(Request::incr_or_create("n", 2, 9, Exptime::never())).number == 1);
  stack.put("n", "3 ");
  CHECK(stack.cluster.execute(Request::decr("n", 5)).number == 0);
  CHECK(stack.item("n").value == "0");
  stack.put("text", "5 apples");
  CHECK(stack.cluster.execute(Request::incr("text", 1)).is(ReplyFailure::Kind::not_a_number));
  CHECK(stack.item("text").value == "5 apples");
}

TEST_CASE("flash: several changes of one key in one batch are all done, in their order") {
  FlashStack stack;
  stack.put("log", "a");
  const std::vector<Request> batch{Request::append("log", "b"), Request::append("log", "c"),
                                   Request::append("missing", "d")};
  const auto replies = stack.cluster.execute(batch);
  CHECK(replies[0].outcome == Outcome::stored);
  CHECK(replies[1].outcome == Outcome::stored);
  CHECK(replies[2].outcome == Outcome::not_stored);
  CHECK(stack.item("log").value == "abc");
  stack.put("n", "0");
  auto pending = stack.cluster.begin({Request::incr("n", 1), Request::incr("n", 1)});
  CHECK(pending->finish()[1].number == 2);
}

TEST_CASE("flash: a rival between look and cas is not overwritten, and one that goes on is given up") {
  FlashStack stack;
  int left = 1;
  stack.put("log", "a");
  stack.server.on_answer = [&](const Request& request) {
    if (request.op != Op::probe || left == 0) return;
    --left;
    stack.memory.execute(Request::append("log", "rival"));
    stack.server.on_flash.insert("log");
  };
  CHECK(stack.cluster.execute(Request::append("log", "b")).outcome == Outcome::stored);
  CHECK(stack.item("log").value == "arivalb");
  left = 100;
  stack.put("log", "a");
  CHECK(stack.cluster.execute(Request::append("log", "b")).is(ReplyFailure::Kind::refused));
  CHECK(stack.item("log").value.find('b') == std::string::npos);
}

TEST_CASE("flash: an item that goes between the look and the cas") {
  FlashStack stack;
  stack.server.on_answer = [&](const Request& request) {
    if (request.op != Op::probe) return;
    stack.memory.evict(request.key);
    stack.server.on_flash.erase(request.key);
  };
  stack.put("log", "a");
  CHECK(stack.cluster.execute(Request::append("log", "b")).outcome == Outcome::not_stored);
  stack.put("n", "5");
  CHECK(stack.cluster.execute(Request::incr("n", 1)).outcome == Outcome::not_found);
  CHECK(stack.cluster.execute(Request::incr_or_create("n", 1, 9, Exptime::never())).number == 9);
}

TEST_CASE("flash: a lost reply to the cas is unknown, one without room is not_stored") {
  FlashStack stack;
  ScriptedFaults faults(stack.server);
  FlashItems cluster(std::make_unique<TripCounter>(faults));
  stack.put("log", "a");
  faults.once(Op::cas, Mishap::lost_reply);
  CHECK(cluster.execute(Request::append("log", "b")).unknown());
  CHECK(stack.item("log").value == "ab");
  stack.memory.server(0).options().item_size = 1024;
  stack.put("log", std::string(900, 'x'));
  CHECK(cluster.execute(Request::append("log", std::string(200, 'y'))).outcome == Outcome::not_stored);
  CHECK(stack.item("log").value == std::string(900, 'x'));
}

TEST_CASE("flash: servers without such a file are asked once, and those that speak classic never") {
  FlashStack stack(false);
  TripCounter trips(stack.cluster);
  for (int i = 0; i < 5; ++i)
    CHECK(trips.execute(Request::append("missing", "x")).outcome == Outcome::not_stored);
  CHECK(stack.server.statistics == 1);
  FlashStack old;
  old.server.protocol = Reply::Protocol::classic;
  old.put("log", "a");
  CHECK(old.cluster.execute(Request::append("log", "b")).outcome == Outcome::not_stored);
  CHECK(old.server.statistics == 0);
}

}  // namespace mcds::flash_test
