#include "common/placement/pools/pool.hpp"

#include <doctest/doctest.h>

#include "common/base/errors.hpp"

using namespace mcds;

TEST_CASE("a server list is read as it is written") {
  const Pool pool =
      parse_pool("10.0.0.1, web2:11212/?3,[::1],[fe80::1%eth0]:5,unix:/run/m.sock/?2,a=db:1/?0,b=unix:/x");
  REQUIRE(pool.size() == 7);
  CHECK(pool[0] == Server{.host = "10.0.0.1", .has_port = false});
  CHECK(pool[1] == Server{.host = "web2", .port = 11212, .weight = 3});
  CHECK(pool[2].address() == "[::1]:11211");
  CHECK(pool[3] == Server{.host = "fe80::1%eth0", .port = 5});
  CHECK(pool[4] == Server{.socket_path = "/run/m.sock", .weight = 2});
  CHECK(pool[5] == Server{.host = "db", .port = 1, .weight = 0, .name = "a"});
  CHECK(pool[6].address() == "unix:/x");
  CHECK(pool[6].name == "b");
}

TEST_CASE("an address reads back as the same server") {
  for (const char* text : {"10.0.0.1:11211", "[::1]:11211", "unix:/run/m.sock", "localhost:65535"}) {
    CHECK(parse_pool(text).front().address() == text);
  }
}

TEST_CASE("what is no server list is refused") {
  for (const std::string text :
       {"",        " ",          ",",      "a,",     "a,,b",       "a:0",           "a:65536",
        "a:99999", "a:",         "a:x",    "a:-1",   "a:1 1",      ":11211",        "::1",
        "1:2:3",   "[::1",       "[::1]x", "[::1]:", "[no]:1",     "a/?",           "a/?x",
        "a/?-1",   "a/?9999999", "a/?1.5", "a/2",    "a?weight=2", "a:1/?weight=2", "=a:1",
        "unix:",   "unix:x",     "/tmp/x", "a\tb",   "a\nb",       "a b",           "a@b",
        "a=b=c",   "a/?100001"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_pool(text), InvalidInput);
  }
}

TEST_CASE("how a server is reached is no part of what it is called") {
  const Pool pool = parse_pool("tls://a:1,b=tls://[::1]:2/?3,c:1");
  CHECK(pool[0] == Server{.host = "a", .port = 1, .tls = true});
  CHECK(pool[1] == Server{.host = "::1", .port = 2, .weight = 3, .name = "b", .tls = true});
  CHECK_FALSE(pool[2].tls);
  CHECK(pool[0].address() == "a:1");
  for (const char* text :
       {"tls://", "tls:a:1", "TLS://a:1", "tls://unix:/x", "tls://tls://a:1", "http://a:1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_pool(text), InvalidInput);
  }
}

TEST_CASE("a name that another program looks up is no host") {
  for (const char* const text :
       {"dns+memcached:11211", "dnssrv+_memcached._tcp.x", "dnssrvnoa+_m._tcp.x", "a+b:1"})
    CHECK_THROWS_AS(parse_pool(text), InvalidInput);
}

TEST_CASE("a login in a server list is refused and not shown") {
  for (const char* text :
       {"app:secret@h:1", "app:se,secret@h", "tls://app:secret@h", "m=app:secret@h", "app:secret=@h:1",
        "a:1;app:secret@h", "memcached://app:secret@h:1", "h:1, secret@h"}) {
    CAPTURE(text);
    try {
      parse_pool(text);
      FAIL("accepted");
    } catch (const InvalidInput& refusal) {
      CHECK(std::string(refusal.what()).find("secret") == std::string::npos);
    }
  }
  CHECK(parse_pool("unix:/run/a@b,m=unix:/c@d,n@1=h:1").size() == 3);
}

TEST_CASE("a server may be listed twice; what that means is the client's") {
  CHECK(first_of_each(parse_pool("a,b,A:11211,unix:/a,unix:/A,b/?2")) ==
        std::vector<std::size_t>{0, 1, 0, 3, 4, 1});
  CHECK(without_repeats(parse_pool("a,b,a")).size() == 2);
  CHECK(parse_pool("a,b:1")[0].has_port == false);
  CHECK(parse_pool("a,b:1")[1].has_port == true);
  CHECK(parse_pool("[::1],[::1]:1")[0].has_port == false);
  CHECK(parse_pool("a/?100000")[0].weight == 100000);
}
