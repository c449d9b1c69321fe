// Faulty servers and networks: no call outlasts its deadline, no answer is wrong, nothing crashes.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "common/base/random.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/fault_proxy.hpp"
#include "tests/support/sockets.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr auto kept_for_ever = Exptime::never();
constexpr Milliseconds timeout(200);
// The time of one connection and one reply, plus the delays of a busy machine.
constexpr Milliseconds longest(2 * timeout + Milliseconds(600));

// automatic is meta and, after an ERROR, classic. It is tested only where that matters.
const std::vector<std::string> both = {"classic", "meta"};
const std::vector<std::string> protocols = {"classic", "meta", "automatic"};

std::unique_ptr<Cluster> client_of(const std::vector<Server>& servers, const std::string& protocol) {
  return connect(placement_over(servers), options_of(protocol, timeout));
}

template <typename Action>
Milliseconds duration_of(Action&& action) {
  const auto before = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - before);
}

// Returns true if the server answers again. A server that continues first handles the requests that arrived
// meanwhile, and the machine may be busy.
bool serves_again(Cluster& cluster) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (cluster.execute(Request::version(0)).outcome == Outcome::hit) return true;
  }
  return false;
}

// Executes the request and checks that it ends within the deadline.
Reply timely(Cluster& cluster, const Request& request) {
  Reply reply;
  CHECK(duration_of([&] { reply = cluster.execute(request); }) <= longest);
  return reply;
}

std::vector<Request> one_of_each() {
  return {Request::get("k"),
          Request::gets("k"),
          Request::probe("k", 0),
          Request::add("k", "v", kept_for_ever),
          Request::set("k", "v", kept_for_ever),
          Request::replace("k", "v", kept_for_ever),
          Request::append("k", "v"),
          Request::incr("n", 1),
          Request::decr("n", 1),
          Request::touch("k", kept_for_ever),
          Request::remove("k"),
          Request::incr_or_create("n", 1, 1, kept_for_ever),
          Request::append_or_create("k", "P", "v", kept_for_ever),
          Request::version(0),
          Request::stats(0)};
}

bool changes(Op op) {
  return op != Op::get && op != Op::gets && op != Op::probe && op != Op::version && op != Op::stats;
}

std::uint64_t seed() {
  const char* text = std::getenv("MCDS_TEST_SEED");
  const std::uint64_t seed = text ? std::strtoull(text, nullptr, 10) : SystemRandom().bits() % 1000000;
  MESSAGE("MCDS_TEST_SEED=" << seed);
  return seed;
}

}  // namespace

TEST_CASE("a stopped server costs one deadline, is never a miss, and serves again when resumed") {
  for (const std::string& protocol : both) {
    CAPTURE(protocol);
    MemcachedProcess memcached;
    const auto cluster = client_of({memcached.server()}, protocol);
    CHECK(cluster->execute(Request::set("k", "v", kept_for_ever)).outcome == Outcome::stored);
    memcached.stop();
    for (const Request& request : one_of_each()) {
      const std::string op = name_of(request.op);
      CAPTURE(op);
      const Reply reply = timely(*cluster, request);
      CHECK(reply.is(changes(request.op) ? ReplyFailure::Kind::unknown : ReplyFailure::Kind::unreachable));
    }
    memcached.resume();
    CHECK(serves_again(*cluster));
  }
}

TEST_CASE("a killed server is unreachable at once and its successor is used without a new client") {
  for (const std::string& protocol : protocols) {
    CAPTURE(protocol);
    MemcachedProcess memcached;
    const auto cluster = client_of({memcached.server()}, protocol);
    CHECK(cluster->execute(Request::set("k", "v", kept_for_ever)).outcome == Outcome::stored);
    memcached.kill();
    for (const Request& request : one_of_each()) CHECK(timely(*cluster, request).failed());
    CHECK(timely(*cluster, Request::set("k", "v", kept_for_ever)).is(ReplyFailure::Kind::unreachable));
    memcached.restart();
    CHECK(timely(*cluster, Request::get("k")).outcome == Outcome::miss);
    CHECK(timely(*cluster, Request::set("k", "v", kept_for_ever)).outcome == Outcome::stored);
  }
}

TEST_CASE("one frozen server of three delays a batch by one deadline and spoils only its own replies") {
  for (const std::string& protocol : both) {
    CAPTURE(protocol);
    MemcachedProcess a, b, c;
    const auto cluster = client_of({a.server(), b.server(), c.server()}, protocol);
    b.stop();
    std::vector<Request> batch;
    for (int i = 0; i < 100; ++i) batch.push_back(Request::set("k" + std::to_string(i), "v", kept_for_ever));
    std::vector<Reply> replies;
    CHECK(duration_of([&] { replies = cluster->execute(batch); }) <= longest);
    for (const Reply& reply : replies) CHECK(reply.failed() == (reply.server == 1));
  }
}

TEST_CASE("nobody listening, or listening and never answering, is found out in time") {
  for (const std::string& protocol : both) {
    CAPTURE(protocol);
    MemcachedProcess memcached;
    FaultProxy proxy(memcached.server());
    proxy.refuse(true);
    const auto cluster = client_of({proxy.server()}, protocol);
    for (const Request& request : one_of_each())
      CHECK(timely(*cluster, request).is(ReplyFailure::Kind::unreachable));
    proxy.refuse(false);
    proxy.silent(true);
    CHECK(timely(*cluster, Request::get("k")).is(ReplyFailure::Kind::unreachable));
    CHECK(timely(*cluster, Request::incr("k", 1)).unknown());
    proxy.silent(false);
    CHECK(timely(*cluster, Request::get("k")).outcome == Outcome::miss);
  }
}

TEST_CASE(
    "lost, cut, truncated and dripped replies: unknown when it may have been applied, never a wrong answer") {
  for (const std::string& protocol : both) {
    for (const Fault fault : {Fault::lose_request, Fault::lose_reply, Fault::cut_request, Fault::cut_reply,
                              Fault::truncate_reply, Fault::drip_reply, Fault::hang_up}) {
      CAPTURE(protocol);
      CAPTURE(static_cast<int>(fault));
      MemcachedProcess memcached;
      FaultProxy proxy(memcached.server());
      proxy.delay(Milliseconds(60));
      const auto cluster = client_of({proxy.server()}, protocol);
      // The machine may be busier than the timeout allows for.
      const auto stored = [&](const Request& request) {
        bool done = false;
        for (int attempt = 0; attempt < 50 && !done; ++attempt)
          done = cluster->execute(request).outcome == Outcome::stored;
        return done;
      };
      REQUIRE(stored(Request::set("k", "a value of some length", kept_for_ever)));
      REQUIRE(stored(Request::set("n", "1", kept_for_ever)));
      for (const Request& request : one_of_each()) {
        const std::string op = name_of(request.op);
        CAPTURE(op);
        proxy.always(fault);
        const Reply reply = timely(*cluster, request);
        // A short reply may drip in completely in time.
        if (fault != Fault::drip_reply) CHECK(reply.failed());
        if (!changes(request.op)) CHECK(!reply.unknown());
        CHECK(reply.outcome != Outcome::miss);
        proxy.always(Fault::none);
      }
      CHECK(timely(*cluster, Request::set("k", "v", kept_for_ever)).outcome == Outcome::stored);
      CHECK(timely(*cluster, Request::get("k")).value == "v");
    }
  }
}

TEST_CASE("a large value that drips is given up in time") {
  for (const std::string& protocol : both) {
    CAPTURE(protocol);
    MemcachedProcess memcached;
    FaultProxy proxy(memcached.server());
    proxy.delay(Milliseconds(20));
    const auto cluster = client_of({proxy.server()}, protocol);
    REQUIRE(cluster->execute(Request::set("k", std::string(5000, 'x'), kept_for_ever)).outcome ==
            Outcome::stored);
    proxy.always(Fault::drip_reply);
    CHECK(timely(*cluster, Request::get("k")).is(ReplyFailure::Kind::unreachable));
    proxy.always(Fault::none);
    CHECK(timely(*cluster, Request::get("k")).value.size() == 5000);
  }
}

TEST_CASE("garbage is never an answer: no miss, no success, no crash, no hang") {
  const std::vector<std::string> garbage = {"WAT?\r\n",
                                            "ERROR\r\n",
                                            "ERROR Too many open connections\r\n",
                                            "SERVER_ERROR down\r\n",
                                            "\r\n",
                                            "\n",
                                            "E\r\n",
                                            "HTTP/1.1 400 Bad Request\r\n\r\n",
                                            "SSH-2.0-OpenSSH_9\r\n",
                                            std::string(8, '\0'),
                                            std::string(100000, 'x'),
                                            "VALUE other 0 1\r\nv\r\nEND\r\n",
                                            "VALUE k 0 18446744073709551614\r\nv\r\nEND\r\n",
                                            "VALUE k 0 -1\r\nv\r\nEND\r\n",
                                            "VALUE k 0 99999999999999\r\nv\r\nEND\r\n",
                                            "VALUE k 0 1\r\nvalue\r\nEND\r\n",
                                            "VA 99999999999999999999\r\nv\r\n",
                                            "EN EN\r\n",
                                            "STAT a\r\n"};
  for (const std::string& protocol : protocols) {
    for (const std::string& reply : garbage) {
      CAPTURE(protocol);
      CAPTURE(reply.substr(0, 40));
      MemcachedProcess memcached;
      FaultProxy proxy(memcached.server());
      proxy.garbage(reply);
      proxy.always(Fault::answer_garbage);
      const auto cluster = client_of({proxy.server()}, protocol);
      for (const Request& request : one_of_each()) {
        const std::string op = name_of(request.op);
        CAPTURE(op);
        const Reply answer = timely(*cluster, request);
        const bool lines_of_stats = request.op == Op::stats && reply.starts_with("STAT");
        if (!lines_of_stats) CHECK(answer.failed());
      }
    }
  }
}

TEST_CASE("wrong but well-formed answers drop the connection: what follows is right again") {
  for (const std::string& protocol : both) {
    for (const std::string reply :
         {"STORED\r\n", "END\r\n", "OK\r\n", "DELETED\r\n", "5\r\n", "NOT_FOUND\r\n", "EXISTS\r\n",
          "TOUCHED\r\n", "VERSION 1.6\r\n", "HD\r\n", "END\r\nEND\r\n"}) {
      CAPTURE(protocol);
      CAPTURE(reply);
      MemcachedProcess memcached;
      FaultProxy proxy(memcached.server());
      proxy.garbage(reply);
      const auto cluster = client_of({proxy.server()}, protocol);
      REQUIRE(timely(*cluster, Request::set("k", "v", kept_for_ever)).outcome == Outcome::stored);
      for (const Request& request : one_of_each()) {
        proxy.always(Fault::answer_garbage);
        timely(*cluster, request);
        proxy.always(Fault::none);
        proxy.cut();
        Reply after = timely(*cluster, Request::get("k"));
        if (after.failed()) after = timely(*cluster, Request::get("k"));
        const std::string op = name_of(request.op);
        CAPTURE(op);
        CHECK(after.outcome == Outcome::hit);
        CHECK(after.value == "v");
      }
    }
  }
}

TEST_CASE("a change that reached no memcached was not applied, though it was sent") {
  for (const auto& [reply, kind] :
       {std::pair("HTTP/1.1 400 Bad Request\r\n\r\n", ReplyFailure::Kind::refused),
        {"-NOAUTH Authentication required.\r\n", ReplyFailure::Kind::refused},
        {"CLIENT_ERROR unauthenticated\r\n", ReplyFailure::Kind::denied},
        {"ERROR Too many open connections\r\n", ReplyFailure::Kind::unreachable}}) {
    CAPTURE(reply);
    MemcachedProcess memcached;
    FaultProxy proxy(memcached.server());
    proxy.garbage(reply);
    proxy.always(Fault::answer_garbage);
    const auto cluster = client_of({proxy.server()}, "automatic");
    CHECK(timely(*cluster, Request::set("k", "v", kept_for_ever)).is(kind));
  }
}

TEST_CASE("a value that is refused before all of it was sent: its rest and the next batch are not one") {
  const TempDirectory directory;
  Server server;
  server.socket_path = directory.path() + "/refuses";
  const int listener = listen_at(server.socket_path);
  // Answers each connection without reading from it.
  std::thread refusing([listener] {
    std::vector<int> connections{listener};
    for (const std::string_view reply : {"SERVER_ERROR out of memory storing object\r\n", "END\r\n"}) {
      pollfd waiting{listener, POLLIN, 0};
      if (poll(&waiting, 1, 5000) != 1) break;
      connections.push_back(accept(listener, nullptr, nullptr));
      CHECK(send(connections.back(), reply.data(), reply.size(), MSG_NOSIGNAL) > 0);
    }
    std::this_thread::sleep_for(timeout);
    for (const int connection : connections) close(connection);
  });
  const auto cluster = client_of({server}, "classic");
  const Request large = Request::set("k", std::string(16 << 20, 'x'), kept_for_ever);
  CHECK(cluster->execute(large).is(ReplyFailure::Kind::refused));
  CHECK(timely(*cluster, Request::get("k")).outcome == Outcome::miss);
  refusing.join();
}

TEST_CASE("corrupted replies: no crash, no hang, and the client recovers") {
  SeededRandom random(seed());
  for (const std::string& protocol : both) {
    CAPTURE(protocol);
    MemcachedProcess memcached;
    FaultProxy proxy(memcached.server(), random.bits());
    const auto cluster = client_of({proxy.server()}, protocol);
    proxy.randomly(0.5, {Fault::corrupt_reply});
    for (int i = 0; i < 10; ++i)
      for (const Request& request : one_of_each()) timely(*cluster, request);
    CHECK(proxy.faults() > 0);
    proxy.always(Fault::none);
    timely(*cluster, Request::get("k"));
    CHECK(timely(*cluster, Request::set("k", "v", kept_for_ever)).outcome == Outcome::stored);
    CHECK(timely(*cluster, Request::get("k")).value == "v");
  }
}

TEST_CASE("at the connection limit an existing key is never missing") {
  for (const std::string& protocol : protocols) {
    CAPTURE(protocol);
    MemcachedProcess memcached({"-c", "30", "-t", "1"});
    talk(memcached.server(), "set k 0 0 1\r\nv\r\n");
    std::vector<int> held;
    for (int i = 0; i < 40; ++i) held.push_back(connect_to(memcached.server()));
    for (int i = 0; i < 5; ++i) {
      const auto cluster = client_of({memcached.server()}, protocol);
      const Reply reply = timely(*cluster, Request::get("k"));
      CHECK((reply.failed() || reply.outcome == Outcome::hit));
      CHECK(timely(*cluster, Request::add("k", "w", kept_for_ever)).outcome != Outcome::stored);
    }
    for (const int fd : held)
      if (fd >= 0) close(fd);
  }
}

namespace {

// The outcomes of increments of `n` by 1.
struct Tally {
  std::uint64_t acknowledged = 0, unknown = 0;

  void count(const std::vector<Reply>& replies) {
    for (const Reply& reply : replies) {
      acknowledged += reply.outcome == Outcome::stored;
      unknown += reply.unknown();
    }
  }
  // Checks and returns the value.
  std::uint64_t check(Cluster& cluster) const {
    cluster.execute(Request::get("n"));
    const std::uint64_t value = std::stoull(cluster.execute(Request::get("n")).value);
    CHECK(acknowledged > 0);
    CHECK(acknowledged <= value);
    CHECK(value <= acknowledged + unknown);
    return value;
  }
};

}  // namespace

TEST_CASE(
    "under random lost and cut replies every acknowledged increment counts, unknown ones at most once") {
  SeededRandom random(seed());
  for (const std::string& protocol : both) {
    CAPTURE(protocol);
    MemcachedProcess memcached;
    FaultProxy proxy(memcached.server(), random.bits());
    proxy.delay(Milliseconds(5));
    const auto cluster = client_of({proxy.server()}, protocol);
    proxy.randomly(
        0.1, {Fault::cut_reply, Fault::cut_request, Fault::hang_up, Fault::delay_reply, Fault::lose_reply});
    Tally tally;
    for (int i = 0; i < 100; ++i)
      tally.count(
          cluster->execute(std::vector<Request>(5, Request::incr_or_create("n", 1, 1, kept_for_ever))));
    proxy.always(Fault::none);
    const std::uint64_t value = tally.check(*cluster);
    CHECK(proxy.faults() > 0);
    MESSAGE(protocol << ": " << tally.acknowledged << " acknowledged, " << tally.unknown << " unknown, value "
                     << value << ", " << proxy.faults() << " faults");
  }
}

namespace {

std::vector<Request> sets(int count, std::size_t size) {
  std::vector<Request> batch;
  for (int i = 0; i < count; ++i)
    batch.push_back(Request::set("k" + std::to_string(i), std::string(size, 'x'), kept_for_ever));
  return batch;
}

}  // namespace

TEST_CASE("a server that dies with batches on their way: each tells what it knows") {
  for (const std::string& protocol : protocols) {
    CAPTURE(protocol);
    MemcachedProcess memcached;
    const auto cluster = client_of({memcached.server()}, protocol);
    const auto answered = cluster->begin({Request::set("a", "1", kept_for_ever), Request::get("a")});
    CHECK(timely(*cluster, Request::get("a")).value == "1");
    memcached.stop();
    const auto writes = cluster->begin({Request::set("a", "2", kept_for_ever)});
    const auto reads = cluster->begin({Request::get("a"), Request::version(0)});
    memcached.kill();
    const auto reported = answered->finish();
    CHECK(reported[0].outcome == Outcome::stored);
    CHECK(reported[1].value == "1");
    CHECK(writes->finish()[0].unknown());
    for (const Reply& reply : reads->finish()) CHECK(reply.is(ReplyFailure::Kind::unreachable));
    memcached.restart();
    CHECK(timely(*cluster, Request::get("a")).outcome == Outcome::miss);
  }
}

TEST_CASE("of batches on their way to a stopped server what was never sent was not applied") {
  MemcachedProcess memcached;
  const auto cluster = client_of({memcached.server()}, "meta");
  CHECK(cluster->execute(Request::set("k0", "old", kept_for_ever)).outcome == Outcome::stored);
  memcached.stop();
  const auto first = cluster->begin(sets(10, 10));
  const auto second = cluster->begin(sets(40, 100000));
  std::vector<Reply> replies;
  CHECK(duration_of([&] { replies = first->finish(); }) <= longest);
  for (const Reply& reply : replies) CHECK(reply.unknown());
  CHECK(duration_of([&] { replies = second->finish(); }) <= longest);
  CHECK(replies.front().unknown());
  CHECK(replies.back().is(ReplyFailure::Kind::unreachable));
  memcached.resume();
  CHECK(serves_again(*cluster));
  CHECK(cluster->execute(Request::get("k39")).outcome == Outcome::miss);
}

TEST_CASE("the time a caller takes between begin and finish is not held against the server") {
  MemcachedProcess memcached;
  const auto cluster = client_of({memcached.server()}, "meta");
  CHECK(cluster->execute(Request::set("k", "v", kept_for_ever)).outcome == Outcome::stored);
  memcached.stop();
  const auto pending = cluster->begin({Request::get("k")});
  std::this_thread::sleep_for(2 * timeout);
  memcached.resume();
  CHECK(pending->finish()[0].value == "v");
}

TEST_CASE("a batch on its way to one frozen server does not spoil those to others") {
  MemcachedProcess a, b;
  const auto cluster = client_of({a.server(), b.server()}, "meta");
  b.stop();
  const auto both_servers = cluster->begin(sets(100, 10));
  std::vector<Reply> replies;
  CHECK(duration_of([&] { replies = cluster->execute({{Request::version(0)}}); }) <= longest);
  CHECK(replies[0].outcome == Outcome::hit);
  CHECK(duration_of([&] { replies = both_servers->finish(); }) <= longest);
  for (const Reply& reply : replies) CHECK(reply.failed() == (reply.server == 1));
}

TEST_CASE("increments on their way create what is missing once, whichever batch comes first") {
  MemcachedProcess memcached;
  for (const char* protocol : {"meta", "auto"}) {
    const auto cluster = client_of({memcached.server()}, protocol);
    cluster->execute({{Request::version(0)}});
    std::vector<Request> batch;
    for (int i = 0; i < 100; ++i)
      batch.push_back(Request::incr_or_create(protocol + std::to_string(i), 1, 1, kept_for_ever));
    const auto first = cluster->begin(batch);
    const auto second = cluster->begin(batch);
    const std::vector<Reply> replies = first->finish();
    const std::vector<Reply> later = second->finish();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      CHECK(replies[i].created != later[i].created);
      CHECK(replies[i].number + later[i].number == 3);
    }
  }
}

TEST_CASE("under random faults batches on their way count as others do, in every order of finishing") {
  SeededRandom random(seed());
  MemcachedProcess memcached;
  FaultProxy proxy(memcached.server(), random.bits());
  const auto cluster = client_of({proxy.server()}, "meta");
  proxy.randomly(0.1, {Fault::cut_reply, Fault::cut_request, Fault::hang_up});
  Tally tally;
  for (int i = 0; i < 100; ++i) {
    std::vector<std::unique_ptr<Pending>> pending;
    // Large batches take two trips, the second for the missing counters.
    for (const std::size_t size : {5u, 100u, 80u})
      pending.push_back(
          cluster->begin(std::vector<Request>(size, Request::incr_or_create("n", 1, 1, kept_for_ever))));
    if (random.bits() % 2 == 0) std::swap(pending.front(), pending.back());
    for (const auto& one : pending) tally.count(one->finish());
  }
  proxy.always(Fault::none);
  tally.check(*cluster);
  CHECK(proxy.faults() > 0);
}
