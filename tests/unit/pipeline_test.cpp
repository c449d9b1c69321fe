// The requests on one connection: their order, what of them was sent, and the cas tokens they may use.
#include "common/cluster/wire/pipeline.hpp"

#include <doctest/doctest.h>

using namespace mcds;
using meta::Pipeline;
using Kind = ReplyFailure::Kind;
using ReadStep = meta::ReplyReader::Step;
using CommandSet = ServerProtocol::CommandSet;

namespace {

// A connection to a server that says what the test lets it say.
struct Connection {
  Connection() { pipeline.reconnect(); }
  explicit Connection(std::vector<Request> all) : Connection() { batch(std::move(all)); }

  // Begins a batch, whose first request is returned by its number.
  std::size_t batch(std::vector<Request> more) {
    const std::size_t first = requests.size();
    pipeline.begin_batch(meta::IncrForm::whole);
    for (Request& request : more) {
      requests.push_back(std::move(request));
      replies.emplace_back();
      pipeline.add(requests.back(), replies.back());
    }
    return first;
  }
  // Returns the bytes of everything that may be encoded now.
  std::string encoded(meta::RequestFormat format = {}) {
    const std::size_t before = output.size();
    while (pipeline.has_unencoded()) {
      const std::size_t size = output.size();
      if (!pipeline.encode_next(format, output)) break;
      if (output.size() > size) pipeline.lies_at(size, output.size());
    }
    return output.substr(before);
  }
  // Encodes and sends everything, and reads what the server says. Returns the number of unanswered requests.
  std::size_t exchange(const std::string& said, meta::RequestFormat format = {}) {
    encoded(format);
    pipeline.mark_sent(output.size() - pipeline.sent());
    read(said);
    return pipeline.added() - pipeline.answered();
  }
  void read(const std::string& said) {
    std::size_t position = 0;
    while (pipeline.has_in_flight()) {
      const ReadStep step = pipeline.read(said, position);
      if (step == ReadStep::need_more) break;
      CHECK((step == ReadStep::done || step == ReadStep::progress));
      if (step == ReadStep::done) pipeline.finish_command({});
    }
    CHECK(position == said.size());
  }
  void reconnect() {
    pipeline.reconnect();
    output.clear();
  }
  // Returns the kinds of all replies after the connection has failed.
  std::vector<Kind> kinds_after_failure(bool late = false) {
    pipeline.fail({.kind = Kind::unreachable, .message = "gone", .late = late}, {});
    std::vector<Kind> kinds;
    for (const Reply& reply : replies) {
      REQUIRE(reply.failure);
      CHECK(reply.failure->late == late);
      kinds.push_back(reply.failure->kind);
    }
    return kinds;
  }

  std::deque<Request> requests;
  std::deque<Reply> replies;
  ServerProtocol protocol{.words = CommandSet::meta};
  Pipeline pipeline{0, protocol};
  std::string output;
};

Request set(const std::string& key) {
  return Request::set(key, "v", Exptime::never());
}

Request cas(const std::string& key, std::uint64_t unique) {
  return Request::compare_and_set(key, "v", Exptime::never(), CasUnique{unique});
}

const std::string set_a = "set a 0 0 1\r\nv\r\n", set_b = "set b 0 0 1\r\nv\r\n";
const std::vector<Kind> unknown_then_unsent{Kind::unknown, Kind::unreachable};

}  // namespace

TEST_CASE("pipeline: a write that was sent whole has an unknown outcome, half of one was not applied") {
  Connection connection({set("a"), set("b")});
  CHECK(connection.encoded() == set_a + set_b);
  connection.pipeline.mark_sent(set_a.size() + 1);
  CHECK(connection.kinds_after_failure(true) == unknown_then_unsent);
  CHECK(connection.replies[0].failure->message == "gone" + std::string(may_be_applied));
  CHECK_FALSE(connection.pipeline.busy());
  Connection all({set("a"), Request::get("b"), set("c")});
  all.encoded();
  all.pipeline.mark_sent(all.output.size());
  CHECK(all.kinds_after_failure() == std::vector{Kind::unknown, Kind::unreachable, Kind::unknown});
}

TEST_CASE("pipeline: a write that was sent on an earlier connection stays unknown") {
  Connection connection({set("a"), set("b")});
  connection.encoded();
  connection.pipeline.mark_sent(set_a.size());
  for (int questions = 0; questions < 3; ++questions) {
    connection.reconnect();
    connection.pipeline.mark_sent(500);  // of the probe, which is no request
  }
  CHECK(connection.kinds_after_failure() == unknown_then_unsent);
}

TEST_CASE(
    "pipeline: lost requests keep their place when a batch is added and the answered ones are dropped") {
  Connection connection({set("a")});
  CHECK(connection.exchange("STORED\r\n") == 0);
  connection.batch({set("a"), set("b"), set("c")});
  connection.output.clear();
  connection.encoded();
  connection.pipeline.mark_sent(set_a.size() + set_b.size());
  std::size_t position = 0;
  CHECK(connection.pipeline.read("STORED\r\n", position) == ReadStep::done);
  connection.pipeline.finish_command({});
  connection.reconnect();
  connection.batch({set("d")});
  connection.pipeline.fail({Kind::unreachable, "gone"}, {});
  CHECK(connection.replies[1].outcome == Outcome::stored);
  CHECK(connection.replies[2].is(Kind::unknown));
  CHECK(connection.replies[3].is(Kind::unreachable));
  CHECK(connection.replies[4].is(Kind::unreachable));
}

TEST_CASE("pipeline: after a rewind every unanswered request is sent once more, or was not applied") {
  Connection connection({set("a"), set("b"), set("a")});
  CHECK(connection.encoded() == set_a + set_b + set_a);
  connection.pipeline.mark_sent(connection.output.size());
  std::size_t position = 0;
  CHECK(connection.pipeline.read("STORED\r\n", position) == ReadStep::done);
  connection.pipeline.finish_command({});
  connection.pipeline.rewind();
  connection.reconnect();
  CHECK(connection.encoded() == set_b + set_a);
  CHECK(connection.exchange("STORED\r\nSTORED\r\n") == 0);
  Connection refused({set("a"), set("b")});
  refused.encoded();
  refused.pipeline.mark_sent(refused.output.size());
  refused.pipeline.rewind();
  CHECK(refused.kinds_after_failure() == std::vector(2, Kind::unreachable));
}

TEST_CASE("pipeline: to send after a loss without a rewind is an internal error") {
  Connection connection({set("a"), set("b")});
  std::string output;
  connection.pipeline.encode_next({}, output);
  connection.reconnect();
  CHECK_THROWS_AS(connection.pipeline.encode_next({}, output), std::logic_error);
}

TEST_CASE("pipeline: batches follow each other, and each reply is that of its request") {
  Connection connection({Request::get("a"), set("b")});
  connection.encoded();
  connection.batch({Request::get("c"), Request::get("d")});
  CHECK(connection.encoded() == "get c d\r\n");
  CHECK(connection.exchange("VALUE a 0 1\r\n1\r\nEND\r\nSTORED\r\nVALUE d 0 1\r\n4\r\nEND\r\n") == 0);
  CHECK(connection.replies[0].value == "1");
  CHECK(connection.replies[1].outcome == Outcome::stored);
  CHECK(connection.replies[2].outcome == Outcome::miss);
  CHECK(connection.replies[3].value == "4");
  CHECK(connection.pipeline.added() == 4);
  CHECK(connection.pipeline.answered() == 4);
}

TEST_CASE("pipeline: what is read before a failure is kept") {
  Connection connection({Request::get("a"), Request::get("b"), set("c")});
  connection.encoded();
  connection.pipeline.mark_sent(connection.output.size());
  std::size_t position = 0;
  while (connection.pipeline.read("VALUE a 0 1\r\n1\r\n", position) == ReadStep::progress) continue;
  connection.pipeline.fail({Kind::unreachable, "gone"}, {});
  CHECK(connection.replies[0].value == "1");
  CHECK(connection.replies[1].is(Kind::unreachable));
  CHECK(connection.replies[2].is(Kind::unknown));
}

TEST_CASE("pipeline: replies report when their server was asked, and whether it was connected to") {
  Connection connection({Request::get("a")});
  connection.encoded();
  std::size_t position = 0;
  CHECK(connection.pipeline.read("END\r\n", position) == ReadStep::done);
  const SteadyTime asked_at{std::chrono::seconds(5)};
  connection.pipeline.finish_command({asked_at, asked_at + std::chrono::milliseconds(3), true});
  CHECK(connection.replies[0].round_trip == std::chrono::milliseconds(3));
  CHECK(connection.replies[0].opened);
  CHECK(connection.replies[0].protocol == Reply::Protocol::meta);
}

TEST_CASE("pipeline: a cas token of an earlier connection is never compared with") {
  Connection first({Request::gets("k")});
  CHECK(first.exchange("VA 1 kk f0 c7\r\nv\r\n") == 0);
  first.batch({cas("k", 7)});
  first.output.clear();
  CHECK(first.encoded() == "cas k 0 0 1 7\r\nv\r\n");  // there was no earlier connection
  first.exchange("EXISTS\r\n");

  Connection later({Request::gets("k")});
  later.reconnect();
  CHECK(later.exchange("VA 1 kk f0 c7\r\nv\r\n") == 0);
  later.batch({cas("k", 8), cas("k", 7), Request::remove_if("k", CasUnique{7})});
  later.output.clear();
  CHECK(later.encoded() == "cas k 0 0 1 7\r\nv\r\nmd k C7\r\n");
  CHECK(later.replies[1].outcome == Outcome::exists);
  CHECK(later.exchange("STORED\r\nEX\r\n") == 0);
  later.batch({cas("k", 7)});  // it was used
  later.output.clear();
  CHECK(later.encoded().empty());
  CHECK(later.exchange("") == 0);

  Connection restarted({Request::gets("k")});
  restarted.reconnect();
  restarted.exchange("VA 1 kk f0 c7\r\nv\r\n");
  restarted.reconnect();
  restarted.batch({set("a"), cas("k", 7)});
  CHECK(restarted.encoded() == set_a);  // answered in order, behind the set
  CHECK(restarted.pipeline.has_unencoded());
  CHECK(restarted.exchange("STORED\r\n") == 1);
  CHECK(restarted.encoded().empty());
  CHECK(restarted.replies[2].outcome == Outcome::exists);
}

TEST_CASE("pipeline: a request that the protocol cannot express is refused in its turn") {
  Connection connection({Request::incr_or_create("n", 1, 1, Exptime::never()), Request::get("a")});
  CHECK(connection.encoded({.meta = false}) == "get a\r\n");
  CHECK(connection.replies[0].is(Kind::refused));
}

TEST_CASE("pipeline: adds are quiet after enough tokens in order, on the same connection") {
  const meta::RequestFormat memcached{.shows_cas = true};
  const auto add = [](int i) { return Request::add_and_get("k" + std::to_string(i), "v", Exptime::never()); };
  const auto stored = [](int i) {
    const std::string key = "k" + std::to_string(i);
    return "STORED\r\nVALUE " + key + " 0 1 " + std::to_string(100 + i) + "\r\nv\r\nEND\r\n";
  };
  Connection connection;
  for (int i = 0; i < 17; ++i) {
    connection.batch({add(i)});
    connection.output.clear();
    const std::string line = connection.encoded(memcached);
    CHECK((line.find("noreply") != std::string::npos) == (i == 16));
    if (i < 16) CHECK(connection.exchange(stored(i), memcached) == 0);
    if (i < 16) CHECK(connection.replies.back().created);
  }
  CHECK(connection.exchange("VALUE k16 0 1 115\r\nv\r\nEND\r\n") == 0);
  CHECK_FALSE(connection.replies.back().created);  // 115 was the newest before
  connection.reconnect();
  connection.batch({add(17)});
  CHECK(connection.encoded(memcached).find("noreply") == std::string::npos);
  Connection disordered;
  for (int i = 40; i > 0; --i) {
    disordered.batch({add(i)});
    disordered.output.clear();
    CHECK(disordered.encoded(memcached).find("noreply") == std::string::npos);
    CHECK(disordered.exchange(stored(i), memcached) == 0);
  }
}

TEST_CASE("pipeline: a TLS record ends with a command, and a longer command shares no record") {
  Connection connection(
      {set("a"), set("b"), Request::set("c", std::string(100, 'x'), Exptime::never()), set("d"), set("e")});
  const Pipeline& pipeline = connection.pipeline;
  const std::size_t all = connection.encoded().size();
  const std::size_t two = set_a.size() + set_b.size(), long_one = all - 2 * two;
  CHECK(pipeline.whole_commands(all, 2 * all) == all);
  CHECK(pipeline.whole_commands(all, two + 5) == two);
  CHECK(pipeline.whole_commands(all, two) == two);
  CHECK(pipeline.whole_commands(all, set_a.size() + 1) == set_a.size());
  connection.pipeline.mark_sent(two);
  CHECK(pipeline.whole_commands(all - two, 50) == long_one);
  connection.pipeline.mark_sent(100);
  CHECK(pipeline.whole_commands(all - two - 100, 50) == long_one - 100);
  // The server may refuse the long command before it has all of it, and still reads its end alone.
  connection.read("STORED\r\nSTORED\r\nSERVER_ERROR object too large for cache\r\n");
  CHECK(pipeline.whole_commands(all - two - 100, 50) == long_one - 100);
  connection.pipeline.mark_sent(long_one - 100);
  CHECK(pipeline.whole_commands(two, 50) == two);
}

TEST_CASE("pipeline: over TLS, the line that reads a long add back shares no record with its end") {
  Connection connection({Request::add_and_get("c", std::string(100, 'x'), Exptime::never()), set("a")});
  const Pipeline& pipeline = connection.pipeline;
  const std::size_t all = connection.encoded({.meta = false}).size();
  const std::size_t line = std::string_view("get c\r\n").size(), add = all - line - set_a.size();
  CHECK(pipeline.whole_commands(all, add + line) == add + line);
  CHECK(pipeline.whole_commands(all, 50) == add);
  connection.pipeline.mark_sent(50);
  CHECK(pipeline.whole_commands(all - 50, 50) == add - 50);
  connection.pipeline.mark_sent(add - 50);
  CHECK(pipeline.whole_commands(all - add, 50) == line);
}
