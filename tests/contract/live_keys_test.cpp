// Listing every key of every server.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "common/cluster/keys/live.hpp"
#include "tests/support/fault_proxy.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/sockets.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

const SystemClock system_clock;

LiveKeysOptions snapshot() {
  return {.timeout = std::chrono::seconds(10), .connect_timeout = std::chrono::seconds(10)};
}
LiveKeysOptions hasty() {
  return {.timeout = std::chrono::milliseconds(500), .connect_timeout = std::chrono::milliseconds(500)};
}

void fill(const Server& server, std::size_t from, std::size_t to) {
  std::string sets;
  for (std::size_t i = from; i < to; ++i) sets += "set key" + std::to_string(i) + " 0 0 1 noreply\r\nx\r\n";
  talk(server, sets + "version\r\n");
}

using Found = std::map<std::string, std::size_t>;

std::vector<LiveKeysOfServer> collect(const Pool& pool, const LiveKeysOptions& options, Found& found) {
  return read_live_keys(pool, options, system_clock, [&](const LiveKey& key) {
    found.emplace(key.key, key.server);
    return true;
  });
}

}  // namespace

TEST_CASE("live keys: every key of every server, once, with its figures") {
  MemcachedProcess first, second;
  fill(first.server(), 0, 3000);
  fill(second.server(), 3000, 5000);
  std::uint64_t size = 0;
  Found found;
  const auto results =
      read_live_keys({first.server(), second.server()}, snapshot(), system_clock, [&](const LiveKey& key) {
        CHECK(key.server == (std::stoul(std::string(key.key.substr(3))) < 3000 ? 0 : 1));
        CHECK(found.emplace(key.key, key.server).second);
        CHECK(key.expires_at == -1);
        CHECK(key.cas > 0);
        size += key.size_bytes;
        return true;
      });
  CHECK(found.size() == 5000);
  CHECK(results[0].keys == 3000);
  CHECK(results[1].keys == 2000);
  CHECK((results[0].complete && results[1].complete));
  CHECK(size > 5000 * 48);
}

// 1.6.18's walk along its LRUs left out thousands of these: being used moves them from one to another.
TEST_CASE("live keys: those that are read and touched meanwhile are in the list all the same") {
  MemcachedProcess server;
  constexpr std::size_t count = 20000;
  fill(server.server(), 0, count);
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    for (std::size_t i = 0; !stop; i += 50) {
      std::string gets;
      for (std::size_t k = i; k < i + 50; ++k) gets += "get key" + std::to_string(k * 7919 % count) + "\r\n";
      talk(server.server(), gets + "version\r\n");
    }
  });
  for (int turn = 0; turn < 5; ++turn) {
    Found found;
    const auto result = collect({server.server()}, snapshot(), found)[0];
    CHECK((result.complete && result.by_table));
    CHECK(found.size() == count);
  }
  stop = true;
  reader.join();
}

TEST_CASE("live keys: over TCP, where connecting takes a moment") {
  MemcachedProcess server({}, MemcachedProcess::Listen::tcp);
  fill(server.server(), 0, 100);
  Found found;
  CHECK(collect({server.server()}, snapshot(), found)[0].complete);
  CHECK(found.size() == 100);
}

TEST_CASE("live keys: keys of any bytes come back as they are") {
  MemcachedProcess server;
  talk(server.server(), "set 100%25:\xd0\xba 0 100 1\r\nx\r\n");
  talk(server.server(), "ms YSBi 1 b\r\nx\r\n");
  Found found;
  CHECK(collect({server.server()}, snapshot(), found)[0].complete);
  CHECK(found == Found{{"100%25:\xd0\xba", 0}, {"a b", 0}});
}

TEST_CASE("live keys: an empty server and one whose keys were enough") {
  MemcachedProcess empty, full;
  fill(full.server(), 0, 2000);
  const auto results = read_live_keys({empty.server(), full.server()}, snapshot(), system_clock,
                                      [left = 10](const LiveKey&) mutable { return --left > 0; });
  CHECK(results[0].complete);
  CHECK(results[0].keys == 0);
  CHECK(results[1].keys == 10);
  CHECK((!results[1].complete && results[1].failure == nullptr));
}

TEST_CASE("live keys: a dead and a silent server are reported and do not hold up the others") {
  MemcachedProcess dead, stopped, good;
  dead.kill();
  stopped.stop();
  fill(good.server(), 0, 10);
  Found found;
  const auto results = collect({dead.server(), stopped.server(), good.server()}, hasty(), found);
  CHECK(results[0].failure->kind == ReplyFailure::Kind::unreachable);
  CHECK(results[1].failure->kind == ReplyFailure::Kind::unreachable);
  CHECK(results[2].complete);
  CHECK(found.size() == 10);
}

TEST_CASE("live keys: a server without the dump, with the crawler off, and a proxy each say what to do") {
  const auto message_of = [](Fault fault, const std::string& garbage) {
    MemcachedProcess server;
    FaultProxy proxy(server.server());
    proxy.garbage(garbage);
    proxy.always(fault);
    Found found;
    const auto result = collect({proxy.server()}, hasty(), found)[0];
    CHECK(result.failure->kind == ReplyFailure::Kind::refused);
    return result.failure->message;
  };
  CHECK(message_of(Fault::answer_garbage, "ERROR\r\n").find("does not support 'lru_crawler metadump'") !=
        std::string::npos);
  CHECK(message_of(Fault::answer_garbage, "CLIENT_ERROR lru crawler disabled\r\n").find("is off") !=
        std::string::npos);
  CHECK(message_of(Fault::hang_up, "").find("proxy") != std::string::npos);
}

TEST_CASE("live keys: a server at its connection limit, and one of the binary protocol, say what they are") {
  MemcachedProcess full({"-c", "30", "-t", "1"}), binary({"-B", "binary"});
  std::vector<int> held;
  for (int i = 0; i < 40; ++i) held.push_back(connect_to(full.server()));
  Found found;
  for (int tries = 0; tries < 5; ++tries) {
    const auto result = collect({full.server()}, snapshot(), found)[0];
    CHECK(result.failure->message.find("connection limit") != std::string::npos);
  }
  std::string message;
  for (int tries = 0; tries < 5 && message.find("only the binary protocol") == std::string::npos; ++tries)
    message = collect({binary.server()}, hasty(), found)[0].failure->message;  // late on a busy machine
  CHECK(message.find("only the binary protocol") != std::string::npos);
  for (const int fd : held) close(fd);
}

TEST_CASE("live keys: a dump that breaks off, or turns into something else, is never complete") {
  MemcachedProcess server;
  FaultProxy proxy(server.server());
  const std::string line = "key=k exp=-1 la=1 cas=1 fetch=no cls=1 size=60\n";
  for (const std::string& answer :
       {line, line + "key=half exp=", line + "nonsense\n", line + std::string(10000, 'x')}) {
    proxy.garbage(answer);
    LiveKeysOptions options = hasty();
    options.timeout = std::chrono::seconds(3);
    options.connect_timeout = std::chrono::seconds(10);
    LiveKeysOfServer result;
    // On a busy machine the request for statistics may arrive in two pieces, which are two trips.
    for (int tries = 0; tries < 5 && result.keys == 0; ++tries) {
      proxy.after(1, Fault::answer_garbage);  // behind the statistics
      Found found;
      result = collect({proxy.server()}, options, found)[0];
    }
    CHECK(result.keys == 1);
    CHECK(!result.complete);
    CHECK(result.failure->kind == ReplyFailure::Kind::unknown);
  }
}

TEST_CASE("live keys: a server that drips keys for ever is given up, with a longest time and without") {
  for (const auto longest : {std::chrono::milliseconds(150), std::chrono::milliseconds(0)}) {
    MemcachedProcess server;
    fill(server.server(), 0, 100);
    FaultProxy proxy(server.server());
    proxy.delay(std::chrono::milliseconds(20));
    proxy.always(Fault::drip_reply);
    LiveKeysOptions options = hasty();
    if (longest.count() > 0) options.longest = longest;
    Found found;
    const auto result = collect({proxy.server()}, options, found)[0];
    CHECK(!result.complete);
    CHECK(result.keys < 100);
    CHECK(result.failure != nullptr);
  }
}

// All but what the server itself is just moving: a dump passes by what it cannot lock.
TEST_CASE("live keys: two dumps of one server at once both get everything") {
  MemcachedProcess server;
  fill(server.server(), 0, 5000);
  Found found;
  const auto results = collect({server.server(), server.server()}, snapshot(), found);
  CHECK(results[0].keys >= 4990);
  CHECK(results[1].keys >= 4990);
}
