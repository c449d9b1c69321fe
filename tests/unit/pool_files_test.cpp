#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "common/placement/pools/files.hpp"

namespace mcds::pool_files_test {

namespace {

constexpr const char* nutcracker = R"(
alpha:
  listen: 127.0.0.1:22121
  hash: md5
  hash_tag: "{}"
  distribution: ketama
  servers:
   - 10.0.0.1:11211:1
   - 10.0.0.2:11211:2 second
   - /run/m.sock:3
beta:
  listen: 127.0.0.1:22122
  distribution: modula
  servers: [ "10.0.0.9:11212:1" ]
gamma:
  distribution: random
  servers: [ "10.0.0.9:11212:1" ]
)";

}  // namespace

TEST_CASE("nutcracker: servers, weights, names, hash, distribution and hash_tag of the pool asked for") {
  const PoolFile alpha = parse_nutcracker(nutcracker, "alpha");
  REQUIRE(alpha.pool.size() == 3);
  CHECK(alpha.pool[0].address() == "10.0.0.1:11211");
  CHECK(alpha.pool[1].name == "second");
  CHECK(alpha.pool[1].weight == 2);
  CHECK(alpha.pool[2].socket_path == "/run/m.sock");
  CHECK(alpha.pool[2].weight == 3);
  CHECK(alpha.profile == "twemproxy-ketama-md5");
  CHECK(alpha.hash_tag == "{}");
  CHECK(parse_nutcracker(nutcracker, "beta").profile == "twemproxy-modula-fnv1a_64");
}

TEST_CASE("nutcracker: what cannot be used says why") {
  CHECK_THROWS_WITH_AS(parse_nutcracker(nutcracker, "delta"),
                       "no such pool; the file has alpha, beta, gamma (write FILE#POOL)", Failure);
  CHECK_THROWS_AS(parse_nutcracker(nutcracker, ""), Failure);
  CHECK_THROWS_AS(parse_nutcracker(nutcracker, "gamma"), Failure);
  CHECK_THROWS_AS(parse_nutcracker("a: [", ""), Failure);
  CHECK_THROWS_AS(parse_nutcracker("", ""), Failure);
  CHECK_THROWS_AS(parse_nutcracker("a: {servers: [\"10.0.0.1\"]}", ""), Failure);
}

TEST_CASE("nutcracker: an IPv6 host is what stands before port and weight") {
  const PoolFile file = parse_nutcracker("a: {servers: [\"::1:11212:2\", \"fe80::2:11211:1 second\"]}", "");
  CHECK(file.pool[0].address() == "[::1]:11212");
  CHECK(file.pool[0].weight == 2);
  CHECK(file.pool[1].address() == "[fe80::2]:11211");
  CHECK(file.pool[1].name == "second");
}

TEST_CASE("php.ini: both extensions' forms of session.save_path") {
  const PoolFile memcached = parse_php_ini(
      "; c\nsession.save_handler = memcached\nsession.save_path=\"10.0.0.1:11211:2, 10.0.0.2\"\n");
  REQUIRE(memcached.pool.size() == 2);
  CHECK(memcached.pool[0].weight == 2);
  CHECK(memcached.profile == "php-memcached-session");
  const PoolFile memcache = parse_php_ini(
      "session.save_handler=memcache\nsession.save_path = \"tcp://10.0.0.1:11212?persistent=1&weight=3\"");
  REQUIRE(memcache.pool.size() == 1);
  CHECK(memcache.pool[0].weight == 3);
  CHECK(memcache.pool[0].port == 11212);
  CHECK(memcache.profile == "php-memcache-session");
  CHECK_THROWS_AS(parse_php_ini("memory_limit=1"), Failure);
}

TEST_CASE("php.ini: comments after values, and what selects another profile") {
  const std::string memcached =
      "session.save_handler = memcached ; of PECL\nsession.save_path = \"10.0.0.1:11211\" ; one\n";
  CHECK(parse_php_ini(memcached).pool[0].address() == "10.0.0.1:11211");
  CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash = On").profile == "php-memcached-session");
  CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash = Off").profile == "php-memcached-prefix");
  CHECK(parse_php_ini(memcached + ";memcached.sess_consistent_hash = Off").profile ==
        "php-memcached-session");
  CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash_type = ketama_weighted").profile ==
        "php-memcached-ketama-compatible-prefix");
  CHECK(parse_php_ini(memcached).key_prefix == "memc.sess.key.");
  CHECK(parse_php_ini(memcached + "memcached.sess_prefix = \"s:\"").key_prefix == "s:");
  const std::string memcache =
      "session.save_handler = memcache\nsession.save_path = tcp://10.0.0.1:11211, "
      "unix:///run/m.sock:0?weight=2 ; two\n";
  CHECK(parse_php_ini(memcache).pool[1].address() == "unix:/run/m.sock");
  CHECK(parse_php_ini(memcache).profile == "php-memcache-session");
  CHECK(parse_php_ini(memcache + "memcache.hash_strategy = standard\n").profile ==
        "php-memcache-session-standard-crc32");
  CHECK(parse_php_ini(memcache + "memcache.hash_function = \"fnv\"\n").profile ==
        "php-memcache-session-consistent-fnv");
  CHECK(parse_php_ini(memcache + "memcache.session_redundancy = 1\n").profile ==
        "php-memcache-session:copies=1");
  CHECK(parse_php_ini(memcache + "memcache.session_redundancy = 3\n").profile ==
        "php-memcache-session:copies=3");
}

TEST_CASE("what an endpoint names is a host and a port, and nothing of the grammar of lists") {
  for (const char* entry : {"unix:/run/m.sock|ip|1",
                            "a:1,b|ip|1",
                            "name=a||1",
                            "a/?5||1",
                            "tls://a||1",
                            "a||1/?5",
                            "a||0",
                            "a||65536",
                            "a||",
                            "||1",
                            "a b||1",
                            "u@a||1",
                            "[::1]||1",
                            "a..b||1",
                            ".a||1",
                            "-a||1",
                            "a%eth0||1",
                            "12345||1",
                            "127.1||1",
                            "a\x1b[2J||1",
                            "a||1|2",
                            "a||+1",
                            "\xff||1"}) {
    CAPTURE(entry);
    try {
      static_cast<void>(parse_elasticache(std::string("1\n") + entry + '\n'));
      FAIL("taken");
    } catch (const Failure& failure) {
      CHECK(failure.code() == ErrorCode::refused);
    }
  }
  CHECK(parse_elasticache("1\nfd00::1||1 a_b.c.||2 10.0.0.1||3\n").pool.size() == 3);
}

TEST_CASE("elasticache and plain lists") {
  const PoolFile cluster =
      parse_elasticache("12\ncache-1.example|10.0.0.1|11211 cache-2.example|10.0.0.2|11211\n\r\n");
  REQUIRE(cluster.pool.size() == 2);
  CHECK(cluster.pool[1].address() == "cache-2.example:11211");
  CHECK_THROWS_AS(parse_elasticache("12\nbroken\n"), Failure);
  CHECK(parse_elasticache("1\nfd00::1||11211\n").pool[0].address() == "[fd00::1]:11211");
  const PoolFile list = parse_server_list("# pool\n10.0.0.1, 10.0.0.2:11212/?2\n\nweb=10.0.0.3 # last\n");
  REQUIRE(list.pool.size() == 3);
  CHECK(list.pool[1].weight == 2);
  CHECK(list.pool[2].name == "web");
}

}  // namespace mcds::pool_files_test
