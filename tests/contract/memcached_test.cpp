// What mcds relies on in memcached itself, byte for byte.
#include <doctest/doctest.h>

#include <set>

#include "common/cluster/request.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/sockets.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

std::string set_of(const std::string& command, const std::string& key, std::size_t size,
                   const char* rest = "") {
  return command + ' ' + key + " 0 0 " + std::to_string(size) + rest + "\r\n" + std::string(size, 'x') +
         "\r\n";
}

}  // namespace

TEST_CASE("memcached: cas with an exptime in the past is a compare-and-delete") {
  MemcachedProcess memcached;
  talk(memcached.server(), "set k 0 0 1\r\nv\r\n");
  const std::string got = talk(memcached.server(), "gets k\r\n", "END\r\n");
  const std::string unique = got.substr(12, got.find("\r\n") - 12);
  CHECK(talk(memcached.server(), "cas k 0 2592001 0 99999\r\n\r\n") == "EXISTS\r\n");
  CHECK(talk(memcached.server(), "cas k 0 2592001 0 " + unique + "\r\n\r\n") == "STORED\r\n");
  CHECK(talk(memcached.server(), "get k\r\n") == "END\r\n");
  CHECK(talk(memcached.server(), "cas k 0 2592001 0 " + unique + "\r\n\r\n") == "NOT_FOUND\r\n");
}

TEST_CASE("memcached: a too large set or ms deletes the old value, every other refusal keeps it") {
  MemcachedProcess memcached;
  const std::size_t too_large = (1 << 20) + 1;
  const auto survives = [&](const std::string& command) {
    talk(memcached.server(), "set k 0 0 1\r\nv\r\n");
    CHECK(talk(memcached.server(), command).starts_with("SERVER_ERROR"));
    return talk(memcached.server(), "get k\r\n", "END\r\n") != "END\r\n";
  };
  CHECK(!survives(set_of("set", "k", too_large)));
  CHECK(!survives("ms k " + std::to_string(too_large) + "\r\n" + std::string(too_large, 'x') + "\r\n"));
  CHECK(survives(set_of("add", "k", too_large)));
  CHECK(survives(set_of("replace", "k", too_large)));
  CHECK(survives(set_of("append", "k", too_large)));
  CHECK(survives(set_of("cas", "k", too_large, " 1")));
}

TEST_CASE("memcached: an append past the item limit is NOT_STORED, as if missing, and keeps the value") {
  MemcachedProcess memcached;
  CHECK(talk(memcached.server(), set_of("set", "k", max_value_size - 10)) == "STORED\r\n");
  CHECK(talk(memcached.server(), set_of("append", "k", 1000)) == "NOT_STORED\r\n");
  CHECK(talk(memcached.server(), set_of("append", "missing", 10)) == "NOT_STORED\r\n");
  CHECK(talk(memcached.server(), "get k\r\n", "END\r\n").size() > max_value_size - 10);
}

TEST_CASE("memcached: the largest value is max_value_size for the longest key") {
  MemcachedProcess memcached;
  CHECK(talk(memcached.server(), set_of("set", std::string(250, 'k'), max_value_size)) == "STORED\r\n");
}

TEST_CASE(
    "memcached: incr wraps, decr stops at 0 and pads, incr refuses words but takes digits with a tail") {
  MemcachedProcess memcached;
  const auto after = [&](const std::string& value, const std::string& command) {
    talk(memcached.server(), "set n 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n");
    return talk(memcached.server(), command + "\r\n");
  };
  CHECK(after("18446744073709551615", "incr n 1") == "0\r\n");
  CHECK(after("10", "decr n 11") == "0\r\n");
  CHECK(talk(memcached.server(), "get n\r\n", "END\r\n") == "VALUE n 0 2\r\n0 \r\nEND\r\n");
  CHECK(after("word", "incr n 1").starts_with("CLIENT_ERROR"));
  CHECK(after("E 5", "incr n 1").starts_with("CLIENT_ERROR"));
  CHECK(after("5 abc", "incr n 1") == "6\r\n");
}

TEST_CASE("memcached: incr and append change the cas unique and keep exptime and flags") {
  MemcachedProcess memcached;
  talk(memcached.server(), "set n 7 1000 1\r\n1\r\n");
  std::set<std::string> uniques;
  for (const char* command :
       {"touch n 1000\r\n", "incr n 1\r\n", "append n 0 0 1\r\n2\r\n", "prepend n 9 0 1\r\n1\r\n"}) {
    talk(memcached.server(), command);
    const std::string got = talk(memcached.server(), "mg n c f t\r\n");
    const std::size_t cas = got.find(" c");
    uniques.insert(got.substr(cas, got.find(' ', cas + 1) - cas));
    CHECK(got.find(" f7") != std::string::npos);
    CHECK(got.find(" t-1") == std::string::npos);
  }
  CHECK(uniques.size() == 4);
}

TEST_CASE("memcached: a restarted server hands out small cas uniques again; -C hands out 0") {
  MemcachedProcess memcached;
  const auto unique = [&](MemcachedProcess& server) {
    talk(server.server(), "set k 0 0 1\r\nv\r\n");
    return talk(server.server(), "gets k\r\n", "END\r\n");
  };
  const std::string before = unique(memcached);
  memcached.restart();
  CHECK(unique(memcached) == before);
  MemcachedProcess without({"-C"});
  CHECK(unique(without) == "VALUE k 0 1 0\r\nv\r\nEND\r\n");
}

TEST_CASE("memcached: md C compares, ma N creates with J, mg u reads without a bump") {
  MemcachedProcess memcached;
  CHECK(talk(memcached.server(), "ma n N1000 J7 D5 v\r\n", "7\r\n") == "VA 1\r\n7\r\n");
  CHECK(talk(memcached.server(), "ma n N1000 J7 D5 v\r\n", "12\r\n") == "VA 2\r\n12\r\n");
  CHECK(talk(memcached.server(), "md n C99999\r\n") == "EX\r\n");
  CHECK(talk(memcached.server(), "md nothing C99999\r\n") == "NF\r\n");
  CHECK(talk(memcached.server(), "mg n v u\r\n", "12\r\n") == "VA 2\r\n12\r\n");
  CHECK(talk(memcached.server(), "mg nothing v\r\n") == "EN\r\n");
}

TEST_CASE("memcached: under -M a full server refuses instead of evicting, and small incr still works") {
  MemcachedProcess memcached({"-M", "-m", "1", "-I", "512k"});
  talk(memcached.server(), "set n 0 0 1\r\n1\r\n");
  std::string last;
  for (int i = 0; i < 10000 && !last.starts_with("SERVER_ERROR"); ++i)
    last = talk(memcached.server(), set_of("add", "k" + std::to_string(i), 10000));
  CHECK(last == "SERVER_ERROR out of memory storing object\r\n");
  CHECK(talk(memcached.server(), "incr n 1\r\n") == "2\r\n");
}
