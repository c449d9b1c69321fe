// The test harness itself: what other tests believe of their servers.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>

#include "tests/support/fault_proxy.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/sockets.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

bool answers_nothing(const Server& server, const char* command = "version\r\n") {
  return talk(server, command, "\r\n", std::chrono::milliseconds(100)).empty();
}

}  // namespace

TEST_CASE("a test server is our own child, on a unix socket and on a port of the kernel's choice") {
  for (const auto listen : {MemcachedProcess::Listen::unix_socket, MemcachedProcess::Listen::tcp}) {
    MemcachedProcess memcached({}, listen);
    CHECK(talk(memcached.server(), "stats\r\n", "END\r\n")
              .find("STAT pid " + std::to_string(memcached.pid()) + "\r\n") != std::string::npos);
  }
}

TEST_CASE("a killed server restarts empty on the same address") {
  for (const auto listen : {MemcachedProcess::Listen::unix_socket, MemcachedProcess::Listen::tcp}) {
    MemcachedProcess memcached({}, listen);
    const std::string address = memcached.address();
    CHECK(talk(memcached.server(), "set k 0 0 1\r\nv\r\n") == "STORED\r\n");
    memcached.kill();
    CHECK(connect_to(memcached.server()) < 0);
    memcached.restart();
    CHECK(memcached.address() == address);
    CHECK(talk(memcached.server(), "get k\r\n") == "END\r\n");
  }
}

TEST_CASE("a stopped server answers nothing until it is resumed") {
  MemcachedProcess memcached;
  memcached.stop();
  CHECK(answers_nothing(memcached.server()));
  memcached.resume();
  CHECK(talk(memcached.server(), "version\r\n").starts_with("VERSION "));
}

TEST_CASE("the proxy forwards honestly and counts trips") {
  MemcachedProcess memcached;
  FaultProxy proxy(memcached.server());
  CHECK(talk(proxy.server(), "set k 0 0 1\r\nv\r\nget k\r\n", "END\r\n") ==
        "STORED\r\nVALUE k 0 1\r\nv\r\nEND\r\n");
  CHECK(talk(proxy.server(), "delete k\r\n") == "DELETED\r\n");
  CHECK(proxy.trips() == 2);
  CHECK(proxy.connections() == 2);
  CHECK(proxy.faults() == 0);
  CHECK(proxy.received().ends_with("delete k\r\n"));
}

TEST_CASE("each fault of the proxy does what its name says") {
  MemcachedProcess memcached;
  FaultProxy proxy(memcached.server());
  proxy.delay(std::chrono::milliseconds(5));
  const auto count = [&] { return talk(memcached.server(), "incr n 1\r\n"); };
  talk(memcached.server(), "set n 0 0 2\r\n10\r\n");
  const auto faulty = [&](Fault fault, const char* command = "incr n 1\r\n") {
    proxy.always(fault);
    const bool silent =
        fault == Fault::lose_request || fault == Fault::lose_reply || fault == Fault::truncate_reply;
    return talk(proxy.server(), command, "\r\n", std::chrono::milliseconds(silent ? 200 : 2000));
  };
  CHECK(faulty(Fault::lose_request).empty());
  CHECK(count() == "11\r\n");
  CHECK(faulty(Fault::lose_reply).empty());
  CHECK(count() == "13\r\n");
  CHECK(faulty(Fault::cut_request).empty());
  CHECK(count() == "14\r\n");
  CHECK(faulty(Fault::cut_reply) == "15");
  CHECK(faulty(Fault::truncate_reply) == "16");
  CHECK(faulty(Fault::hang_up).empty());
  CHECK(count() == "17\r\n");
  CHECK(faulty(Fault::delay_reply) == "18\r\n");
  CHECK(faulty(Fault::drip_reply) == "19\r\n");
  CHECK(faulty(Fault::answer_garbage) == "WAT?\r\n");
  const std::string corrupted = faulty(Fault::corrupt_reply, "get nothing\r\n");
  CHECK(corrupted.size() == 5);
  CHECK(corrupted != "END\r\n");
  proxy.after(1, Fault::answer_garbage);
  CHECK(talk(proxy.server(), "incr n 1\r\n") == "20\r\n");
  CHECK(talk(proxy.server(), "incr n 1\r\n") == "WAT?\r\n");
  CHECK(talk(proxy.server(), "incr n 1\r\n") == "21\r\n");
}

TEST_CASE("the proxy refuses, hangs and recovers") {
  MemcachedProcess memcached;
  FaultProxy proxy(memcached.server());
  proxy.refuse(true);
  CHECK(connect_to(proxy.server()) < 0);
  proxy.refuse(false);
  proxy.silent(true);
  CHECK(answers_nothing(proxy.server()));
  proxy.silent(false);
  CHECK(talk(proxy.server(), "version\r\n").starts_with("VERSION "));
}
