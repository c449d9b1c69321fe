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
  const Pool quoted = parse_nutcracker("a: {servers: [\"b:1:1 's1'\"]}", "").pool;
  CHECK(quoted[0].name == "'s1'");  // twemproxy hashes the quotes, too
  CHECK(parse_nutcracker("a: {auto_eject_hosts: true, servers: [\"b:1:1\"]}", "").profile ==
        "twemproxy-ketama-fnv1a_64:eject=yes");
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
  CHECK_THROWS_AS(parse_nutcracker("a: {servers: [\"10.0.0.1:1:0\"]}", ""), Failure);
  CHECK_THROWS_AS(parse_nutcracker("a: {hash_tag: \"{\", servers: [\"10.0.0.1:1:1\"]}", ""), Failure);
  CHECK_THROWS_AS(parse_nutcracker("a: {servers: [\"10.0.0.1:1:1  two words\"]}", ""), Failure);
  for (const char* twice :
       {"a: {servers: [\"b:1:1\"], hash: md5, hash: md5}", "a: {servers: [\"b:1:1\"], servers: [\"c:1:1\"]}",
        "a: {servers: [\"b:1:1\"]}\na: {servers: [\"c:1:1\"]}"})
    CHECK_THROWS_AS(parse_nutcracker(twice, "a"), Failure);
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
  // PHP uses only some of these servers, or none.
  for (const char* const path : {"a:1; b:2; c:3", "a:1 b:1", "a:1:1 b:1:1", "a:1,b:2 c:3", "a:1;b:2",
                                 "a:1:3 ,b:2", "a ,b:2", "PERSISTENT=x a:1", "a:1:1:1", "\u201ca:1", "<a>:1"})
    CHECK_THROWS_AS(
        parse_php_ini("session.save_handler = memcached\nsession.save_path = \"" + std::string(path) + '"'),
        Failure);
  CHECK(parse_php_ini("session.save_handler = memcached\nsession.save_path = \",a:1,, b:2,\"").pool.size() ==
        2);
  CHECK(parse_php_ini("session.save_handler = memcached\nsession.save_path = \"a:1 , b:2, c:3 \"")
            .pool.size() == 3);
  for (const char* const path : {"tcp://a", "a", "tcp://a:1,etc.", "tcp://a:1;tcp://b:1"})
    CHECK_THROWS_AS(
        parse_php_ini("session.save_handler = memcache\nsession.save_path = \"" + std::string(path) + '"'),
        Failure);
  CHECK(parse_php_ini("session.save_handler = memcache\nsession.save_path = \"tcp://a:1 b:2, unix:///c\"")
            .pool.size() == 3);
}

TEST_CASE("php.ini: a value is joined of its pieces, and what PHP cannot parse is refused") {
  const std::string start = "session.save_handler = memcached\nsession.save_path = ";
  for (const char* value : {"\"a:1,\" \"b:2\" ; c", "\"a:1\",b:2", "'a:1',b:2", "a:1,'b:2'", "a:1,\"b:2\""})
    CHECK(parse_php_ini(start + value).pool.size() == 2);
  CHECK(parse_php_ini(start + "php_memcached:1").pool[0].address() == "php_memcached:1");
  for (const char* value : {"a:1|b", "\"a:1", "'a:1", "(a:1)", "\"'a:1','b:2'\"", "'\"a:1\",b:2'", "a::1",
                            "a:1:", "E_ALL", "null"})
    CHECK_THROWS_AS(parse_php_ini(start + value), Failure);
  CHECK_THROWS_AS(
      parse_php_ini("session.save_handler = memcache\nsession.save_path = tcp://a:1?weight=3, tcp://b:1"),
      Failure);
}

TEST_CASE("php.ini: comments after values, and what selects another profile") {
  const std::string memcached =
      "session.save_handler = memcached ; of PECL\nsession.save_path = \"10.0.0.1:11211\" ; one\n";
  CHECK(parse_php_ini(memcached).pool[0].address() == "10.0.0.1:11211");
  CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash = On").profile == "php-memcached-session");
  CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash = Off").profile == "php-memcached-prefix");
  const std::string ejects = memcached + "memcached.sess_remove_failed_servers = On\n";
  CHECK(parse_php_ini(ejects).profile == "php-memcached-session:eject=yes");
  CHECK_THROWS_AS(parse_php_ini(ejects + "memcached.sess_consistent_hash = Off"), Failure);
  for (const char* word : {"ON", "True", "Yes", "2"})
    CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash = " + word).profile ==
          "php-memcached-session");
  CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash =").profile == "php-memcached-prefix");
  CHECK(parse_php_ini(memcached + ";memcached.sess_consistent_hash = Off").profile ==
        "php-memcached-session");
  CHECK(parse_php_ini(memcached + "memcached.sess_consistent_hash_type = ketama_weighted").profile ==
        "php-memcached-ketama-compatible-prefix");
  CHECK(parse_php_ini(memcached).key_prefix == "memc.sess.key.");
  CHECK(parse_php_ini(memcached + "memcached.sess_prefix = \"s:\"").key_prefix == "s:");
  CHECK(parse_php_ini(memcached + "memcached.sess_prefix = \"s \"").key_prefix == "memc.sess.key.");
  for (const char* path : {"\"'tcp://a:1'\"", "\"tcp://a:1?weight=0\""})
    CHECK_THROWS_AS(
        parse_php_ini("session.save_handler = memcache\nsession.save_path = " + std::string(path)), Failure);
  const std::string memcache =
      "session.save_handler = memcache\nsession.save_path = \"tcp://10.0.0.1:11211, "
      "unix:///run/m.sock:0?weight=2\" ; two\n";
  CHECK(parse_php_ini(memcache).pool[1].address() == "unix:/run/m.sock");
  CHECK(parse_php_ini(memcache).profile == "php-memcache-session");
  CHECK(parse_php_ini(memcache + "memcache.hash_strategy = standard\n").profile ==
        "php-memcache-session-standard-crc32");
  CHECK(parse_php_ini(memcache + "memcache.hash_function = \"FNV\"\n").profile ==
        "php-memcache-session-consistent-fnv");
  CHECK(parse_php_ini(memcache + "memcache.hash_strategy = best\n").profile == "php-memcache-session");
  CHECK(parse_php_ini(memcache + "memcache.session_redundancy = 0\n").profile == "php-memcache-session");
  CHECK(parse_php_ini(memcache + "memcache.session_redundancy = 1\n").profile ==
        "php-memcache-session:copies=1");
  CHECK(parse_php_ini(memcache + "memcache.session_redundancy = 3\n").profile ==
        "php-memcache-session:copies=3");
}

TEST_CASE("php.ini: the handler decides, and others are refused by name") {
  const auto refusal = [](const std::string& ini, std::string_view pool = {}) {
    try {
      static_cast<void>(parse_php_ini(ini, pool));
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  for (const std::string handler : {"redis", "files", "user", "rediscluster"}) {
    CAPTURE(handler);
    const std::string ini =
        "session.save_handler = " + handler + "\nsession.save_path = \"tcp://10.0.0.1:6379\"\n";
    CHECK(refusal(ini).find('\'' + handler + '\'') != std::string::npos);
    CHECK(refusal("session.save_handler = " + handler).find('\'' + handler + '\'') != std::string::npos);
  }
  CHECK(
      refusal("session.save_handler = memcached\nsession.save_path = tcp://10.0.0.1:11211").find("scheme") !=
      std::string::npos);
  CHECK(refusal("session.save_handler = memcache\nsession.save_path = \"tcp://${CACHE}\"").find("${CACHE}") !=
        std::string::npos);
  const PoolFile capital =
      parse_php_ini("session.save_handler = Memcache\nsession.save_path = \"10.0.0.1:11212\"\n");
  CHECK(capital.pool[0].port == 11212);
  CHECK(capital.profile == "php-memcache-session");
  CHECK(parse_php_ini("session.save_path = tcp://10.0.0.1:11211").profile == "php-memcache-session");
  CHECK(parse_php_ini("session.save_path = 10.0.0.1").profile == "php-memcached-session");
  CHECK(
      parse_php_ini("session.save_handler = memcached\nsession.save_path = 10.0.0.1\n"
                    "[host = static.example]\nsession.save_handler = files\nsession.save_path = /tmp\n"
                    "[PATH=/srv/old]\nsession.save_handler = files\n[Session]\nmemcached.sess_prefix = s:\n")
          .key_prefix == "memc.sess.key.");
}

TEST_CASE("php.ini: PECL memcache's own path goes before session.save_path") {
  const std::string own = "session.save_handler = memcache\nmemcache.session_save_path = tcp://b:2\n";
  CHECK(parse_php_ini(own).pool[0].address() == "b:2");
  CHECK(parse_php_ini(own + "session.save_path = tcp://a:1").pool[0].address() == "b:2");
  CHECK(parse_php_ini("session.save_handler = memcached\nsession.save_path = a:1\n"
                      "memcache.session_save_path = tcp://b:2")
            .pool[0]
            .address() == "a:1");
}

TEST_CASE("php-fpm: what a pool sets, and its administrator") {
  const std::string www =
      "[global]\npid = run/php-fpm.pid\n[www]\nuser = www-data\nlisten = 9000\n"
      ";php_value[session.save_handler] = files\n"
      "php_value[session.save_handler] = memcache\n"
      "php_value[session.save_path] = tcp://192.168.2.5:11211\n"
      "php_admin_value[memory_limit] = 512M\n";
  CHECK(parse_php_ini(www).pool[0].address() == "192.168.2.5:11211");
  CHECK(parse_php_ini(www).profile == "php-memcache-session");
  CHECK(parse_php_ini(www, "www").profile == "php-memcache-session");
  const std::string admin = www +
                            "php_admin_value[session.save_handler] = memcached\n"
                            "php_admin_value[session.save_path] = \"10.0.0.1:11211,10.0.0.2\"\n"
                            "php_admin_flag[memcached.sess_consistent_hash] = off\n"
                            "php_value[session.save_path] = tcp://10.9.9.9:1\n";
  CHECK(parse_php_ini(admin).pool.size() == 2);
  CHECK(parse_php_ini(admin).profile == "php-memcached-prefix");
  CHECK(parse_php_ini(www + "php_value[session.save_path] = tcp://b:2\n").pool[0].address() ==
        "192.168.2.5:11211");
  CHECK(parse_php_ini(
            "[w]\nphp_value[session.save_path] = a:1\nphp_flag[memcached.sess_consistent_hash] = off\n"
            "php_value[memcached.sess_consistent_hash] = 1")
            .profile == "php-memcached-prefix");
  const std::string two = www + "[api]\nphp_value[session.save_path] = 10.0.0.7\n";
  CHECK(parse_php_ini(two, "api").pool[0].address() == "10.0.0.7:11211");
  CHECK(parse_php_ini(two, "www").pool[0].address() == "192.168.2.5:11211");
  CHECK_THROWS_WITH_AS(parse_php_ini(two), "no such pool; the file has api, www (write FILE#POOL)", Failure);
  CHECK_THROWS_AS(parse_php_ini(two, "shop"), Failure);
  CHECK_THROWS_AS(parse_php_ini("[www]\nphp_value[session.save_handler] = files\n"
                                "php_value[session.save_path] = /var/lib/php/session\n"),
                  Failure);
}

std::string addresses(const PoolFile& file) {
  std::string text;
  for (const Server& server : file.pool) {
    text += (text.empty() ? "" : " ") + std::string(server.tls ? "tls://" : "") + server.address();
    if (server.weight != 1) text += "*" + std::to_string(server.weight);
  }
  return text;
}

TEST_CASE("OpenStack's Swift has a ring of its own") {
  CHECK(parse_oslo("[memcache]\nmemcache_servers = a:1,b:2\n", "").profile == "swift");
  CHECK(parse_oslo("[filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = a:1,b:2\n", "").profile ==
        "swift");
}

TEST_CASE("entries that are no servers are refused in the words of their file") {
  const auto refusal = [](const auto& parse) {
    try {
      parse();
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  CHECK(refusal([] { parse_nutcracker("a: {servers: [\"10.0.0.1:99999:1 web\"]}", ""); }) ==
        "the server '10.0.0.1:99999:1 web' is not host:port:weight [name]: the port must be a number from "
        "1 to 65535");
  CHECK(refusal([] {
          parse_nutcracker("a: {distribution: random, servers: [\"10.0.0.1:99999:1\"]}", "");
        }).starts_with("distribution random"));
  CHECK(refusal([] {
          parse_php_ini("session.save_handler = memcached\nsession.save_path = \"a:1:heavy\"");
        }) == "the server 'a:1:heavy' is not host:port:weight");
  CHECK(refusal([] {
          parse_php_ini("session.save_handler = memcache\nsession.save_path = \"tcp://a:x?weight=2\"");
        }) ==
        "the server 'tcp://a:x?weight=2' is not tcp://host:port?weight=N or unix:///path: the port must be "
        "a number from 1 to 65535");
  CHECK(refusal([] { parse_json_servers("[\"user:secret@h:1\"]", ""); }) ==
        "the server with a login is not HOST:PORT");
  CHECK(refusal([] {
          parse_django("{\"default\": {\"BACKEND\": \"django_elasticache.memcached.ElastiCache\"}}", "");
        }).find("--servers-from elasticache:") != std::string::npos);
  CHECK(refusal([] {
          parse_server_list("pools{\n  main = { backends = { \"127.0.0.1:1\" } } }");
        }).find("built-in proxy") != std::string::npos);
}

TEST_CASE("JSON: an array of servers, where a pointer leads") {
  const auto read = [](const char* json, std::string_view pointer = {}) {
    return addresses(parse_json_servers(json, pointer));
  };
  CHECK(read("[\"10.0.0.1:11212\", \"10.0.0.2\"]") == "10.0.0.1:11212 10.0.0.2:11211");
  CHECK(read("\"10.0.0.1:11212, 10.0.0.2\"") == "10.0.0.1:11212 10.0.0.2:11211");
  CHECK(read("{\"stores\": {\"a/b~c\": [0, [{\"host\": \"10.0.0.1\", \"port\": 11212, \"weight\": 100}, "
             "{\"host\": \"fe80::1\", \"port\": \"11213\"}, {\"host\": \"/run/m.sock\", \"port\": 0}]]}}",
             "/stores/a~1b~0c/1") == "10.0.0.1:11212*100 [fe80::1]:11213 unix:/run/m.sock");
  for (const char* json :
       {"[]", "{}", "7", "[7]", "[[\"a\"]]", "[{\"port\": 1}]", "[{\"host\": \"a\", \"ttl\": 1}]",
        "[\"a:1,b:1\"]", "[\"a b\"]", "[\"dns+a:1\"]", "[{\"host\": \"a:1\", \"port\": 2}]"}) {
    CAPTURE(json);
    CHECK_THROWS_AS(read(json), Failure);
  }
  for (const char* pointer : {"/b", "a", "/a/1", "/a/x", "/a/0/0"}) {
    CAPTURE(pointer);
    CHECK_THROWS_AS(read("{\"a\": [\"h:1\"]}", pointer), Failure);
  }
}

TEST_CASE("libketama's servers file: what libketama reads otherwise is refused") {
  const PoolFile file = parse_libketama("# memory in MB\n10.0.1.1:11211\t600\n\n10.0.1.2:11211   300\r\n");
  CHECK(addresses(file) == "10.0.1.1:11211*600 10.0.1.2:11211*300");
  CHECK(file.profile == "libketama");
  for (const char* text :
       {"", "10.0.1.1:11211\t600", "10.0.1.1:11211 600 \n", "10.0.1.1 600\n", "10.0.1.1:1\n",
        "10.0.1.1:11211 0\n", "a-name-that-is-long.example:1 5\n", " # no\n", "a:1 5 6\n"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_libketama(text), Failure);
  }
}

TEST_CASE("DSNs as Symfony has them") {
  const auto read = [](const char* text) { return addresses(parse_dsn(text)); };
  CHECK(read("memcached://localhost") == "localhost:11211");
  CHECK(read("memcached://example.com:1234") == "example.com:1234");
  // Symfony sets the weight of the path, or 0, before it reads the options.
  CHECK(read("memcached://localhost:11222?weight=25") == "localhost:11222");
  CHECK(read("memcached://127.0.0.1/50") == "127.0.0.1:11211*50");
  CHECK(read("memcached://localhost?weight=0&timeout=5") == "localhost:11211");
  CHECK(read("memcached:///var/run/memcached.sock?weight=25") == "unix:/var/run/memcached.sock");
  CHECK(read("memcached:///var/local/run/memcached.socket/20") == "unix:/var/local/run/memcached.socket*20");
  CHECK(read("memcached:?host[localhost]&host[localhost:12345]&host[/some/memcached.sock:]=3") ==
        "localhost:11211 localhost:12345 unix:/some/memcached.sock*3");
  CHECK(read("memcached:localhost?host[foo.bar]=3") == "localhost:11211 foo.bar:11211*3");
  CHECK(read("memcached://server1 memcached://[::1]:11212") == "server1:11211 [::1]:11212");
  const PoolFile file = parse_dsn("memcached://user:p%40ss%2Fword@127.0.0.1/50 memcached://10.0.0.2");
  CHECK(addresses(file) == "127.0.0.1:11211*50 10.0.0.2:11211");
  CHECK(file.user == "user");
  CHECK(file.password == "p@ss/word");
  CHECK(file.profile == "php-memcached-ketama-compatible");
  for (const char* text :
       {"redis://secret@h", "memcached://", "memcached://u:secret@", "memcached://h?hash=secret",
        "memcached://h?Libketama_Compatible=0", "memcached://a:secret@h memcached://b:secret@i",
        "memcached://u:secret%zz@h", "secret", "memcached:?weight=3"}) {
    CAPTURE(text);
    try {
      static_cast<void>(parse_dsn(text));
      FAIL("was read");
    } catch (const Failure& failure) {
      CHECK(std::string(failure.what()).find("secret") == std::string::npos);
    }
  }
  for (const char* text : {"memcached://u:secret@v:secret@h", "memcached://h1:1,h2:2", "memcached://a=b:1",
                           "memcached://tls://h:1"})
    CHECK_THROWS_AS(parse_dsn(text), Failure);
}

TEST_CASE("dalli's MEMCACHE_SERVERS") {
  const auto read = [](const char* text) { return addresses(parse_dalli(text)); };
  CHECK(read("192.168.0.18:11211") == "192.168.0.18:11211");
  CHECK(read("ca-plug-zammad-memcached:11211") == "ca-plug-zammad-memcached:11211");
  CHECK(read("memcache-01") == "memcache-01:11211");
  CHECK(read("10.0.0.1:11211:3,10.0.0.2:11212,[::1]:11213:2,") ==
        "10.0.0.1:11211*3 10.0.0.2:11212 [::1]:11213*2");
  CHECK(read("/var/run/memcached.sock,/run/m.sock:4") == "unix:/var/run/memcached.sock unix:/run/m.sock*4");
  CHECK(read("a:1:0,/run/m.sock:0,b:1") == "a:1*0 unix:/run/m.sock*0 b:1");
  CHECK(read("memcached://h:1?weight=3,memcached://i/3") == "h:1 i:11211");
  const PoolFile file = parse_dalli("memcached://user:password@mc1.example:11212,memcached://mc2.example");
  CHECK(addresses(file) == "mc1.example:11212 mc2.example:11211");
  CHECK(file.user == "user");
  CHECK(file.profile == "dalli");
  CHECK_THROWS_AS(parse_dalli("memcached://a:b@h,memcached://a:c@i"), Failure);
  CHECK_THROWS_AS(parse_dalli(" , "), Failure);
  CHECK_THROWS_AS(parse_dalli("tls://mc1.example:11211"), Failure);
  for (const char* text : {"a:1, b:2", " a", "'a:1'", "unix:/run/m.sock", "a::2", "a:", "a:011211", "a:1:2:3",
                           "/m:1:2", "a,,b"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_dalli(text), Failure);
  }
}

TEST_CASE("Django's CACHES") {
  const std::string backends = "\"BACKEND\": \"django.core.cache.backends.memcached.";
  const auto read = [](const std::string& json, std::string_view cache = {}) {
    const PoolFile file = parse_django(json, cache);
    return file.profile + " " + addresses(file);
  };
  CHECK(read("{\"default\": {" + backends + "PyMemcacheCache\", \"LOCATION\": \"127.0.0.1:11211\"}}") ==
        "pymemcache-rendezvous 127.0.0.1:11211");
  const std::string two =
      "{\"CACHES\": {\"default\": {" + backends +
      "PyMemcacheCache\", \"LOCATION\": [\"172.19.26.240:11211\", \"172.19.26.242:11212\"], "
      "\"OPTIONS\": {\"no_delay\": true, \"ignore_exc\": true, \"max_pool_size\": 4, "
      "\"use_pooling\": true}}, \"sessions\": {" +
      backends +
      "PyLibMCCache\", \"LOCATION\": \"unix:/tmp/memcached.sock;10.0.0.2\", \"OPTIONS\": {"
      "\"binary\": true, \"username\": \"user\", \"behaviors\": {\"ketama\": true, "
      "\"tcp_nodelay\": true}}}, \"local\": {\"BACKEND\": "
      "\"django.core.cache.backends.locmem.LocMemCache\", \"LOCATION\": \"unique-snowflake\"}}}";
  CHECK(read(two) == "pymemcache-rendezvous 172.19.26.240:11211 172.19.26.242:11212");
  CHECK(read(two, "sessions") == "pylibmc-ketama unix:/tmp/memcached.sock 10.0.0.2:11211");
  CHECK(parse_django(two, "sessions").user == "user");
  const PoolFile memcachier = parse_django(
      "{\"default\": {\"BACKEND\": \"django_bmemcached.memcached.BMemcached\", \"TIMEOUT\": null, "
      "\"LOCATION\": \"mc1.example:11211,mc2.example:11211\", \"OPTIONS\": {\"username\": \"u\", "
      "\"password\": \"p\"}}}",
      "");
  CHECK(memcachier.profile == "bmemcached-replicating");
  CHECK(addresses(memcachier) == "mc1.example:11211 mc2.example:11211");
  CHECK(memcachier.user + memcachier.password == "up");
  CHECK_THROWS_AS(read(two, "local"), Failure);
  CHECK_THROWS_WITH_AS(read(two, "none"),
                       "no such cache; the file has default, local, sessions (write FILE#CACHE)", Failure);
  CHECK(read("{\"default\": {" + backends +
             "MemcachedCache\", \"LOCATION\": [[\"10.0.0.1:11211\", 2], \"10.0.0.2\"]}}") ==
        "python-memcached 10.0.0.1:11211*2 10.0.0.2:11211");
  CHECK(read("{\"default\": {" + backends + "PyLibMCCache\", \"LOCATION\": \"h\"}}") ==
        "pylibmc-default h:11211");
  CHECK(read("{\"default\": {" + backends +
             "PyMemcacheCache\", \"LOCATION\": [[\"10.0.0.1\", 11212], \"10.0.0.2\"]}}") ==
        "pymemcache-rendezvous 10.0.0.1:11212 10.0.0.2:11211");
  CHECK(read("{\"default\": {" + backends + "PyMemcacheCache\", \"LOCATION\": [[\"::1\", 11212]]}}") ==
        "pymemcache-rendezvous [::1]:11212");
  // All OPTIONS of django-pylibmc are behaviors.
  CHECK(read("{\"default\": {\"BACKEND\": \"django_pylibmc.memcached.PyLibMCCache\", \"LOCATION\": \"h\", "
             "\"OPTIONS\": {\"tcp_nodelay\": true, \"ketama\": true}}}") == "pylibmc-ketama h:11211");
  for (const char* rest :
       {"PyMemcacheCache\", \"LOCATION\": [[\"10.0.0.1:11211\", 2]]}}",
        "PyMemcacheCache\", \"LOCATION\": \"h\", \"OPTIONS\": {\"hasher\": \"x\"}}}",
        "PyLibMCCache\", \"LOCATION\": \"h\", \"OPTIONS\": {\"behaviors\": {\"hash\": \"x\"}}}}",
        "PyLibMCCache\"}}", "PyLibMCCache\", \"LOCATION\": [7]}}",
        "PyMemcacheCache\", \"LOCATION\": \"a:1, b:2\"}}", "PyMemcacheCache\", \"LOCATION\": \"a:1,\"}}",
        "PyMemcacheCache\", \"LOCATION\": [\"a:1,b:2\"]}}", "PyLibMCCache\", \"LOCATION\": []}}",
        "PyMemcacheCache\", \"LOCATION\": [[\"tls://h\", 1]]}}",
        "PyMemcacheCache\", \"LOCATION\": [[\"h\", \"1/?3\"]]}}", "RedisCache\", \"LOCATION\": \"h\"}}"}) {
    CAPTURE(rest);
    CHECK_THROWS_AS(read("{\"default\": {" + backends + rest), Failure);
  }
  CHECK_THROWS_AS(read("[]"), Failure);
  CHECK_THROWS_AS(read("{\"default\": 7}"), Failure);
}

TEST_CASE("OpenStack's sections") {
  const auto read = [](const std::string& ini, std::string_view section = {}) {
    const PoolFile file = parse_oslo(ini, section);
    return file.profile + " " + addresses(file);
  };
  const std::string keystone =
      "[DEFAULT]\nuse_syslog = False\n[cache]\nenabled=true\nbackend = dogpile.cache.memcached \n"
      "backend_argument = url:controller1:11211,controller2:11211\n[token]\nprovider = fernet\ncaching = "
      "true\n";
  CHECK(read(keystone) == "python-memcached controller1:11211 controller2:11211");
  CHECK(read("[cache]\nbackend=dogpile.cache.memcached\nenabled=True\n"
             "memcache_servers=undercloud-0.ctlplane.redhat.local:11211\ntls_enabled=False\n[catalog]"
             "\ndriver=sql\n") == "python-memcached undercloud-0.ctlplane.redhat.local:11211");
  CHECK(read("[cache]\nmemcache_servers = a:1,\n  b:2 ,\n# no\n\tc:3\nenabled: true\n") ==
        "python-memcached a:1 b:2 c:3");
  CHECK(read("[cache]\nmemcache_servers: a:1, b:2") == "python-memcached a:1 b:2");
  CHECK_THROWS_AS(read("[cache]\nmemcache_servers = a:1\n  b:2\n"), Failure);
  const std::string nova =
      "[keystone_authtoken]\nauth_url = http://controller:5000/\n# memcached_servers = old:1\n"
      "memcached_servers = inet6:[fd00::5]:11211,10.0.0.2:11211\nmemcache_secret_key = s\n";
  CHECK(read(nova) == "python-memcached [fd00::5]:11211 10.0.0.2:11211");
  CHECK(read(nova + keystone) == "python-memcached controller1:11211 controller2:11211");
  CHECK(read(nova + keystone, "keystone_authtoken") == "python-memcached [fd00::5]:11211 10.0.0.2:11211");
  const PoolFile pooled = parse_oslo(
      "[cache]\nbackend = oslo_cache.memcache_pool\ntls_enabled = true\nmemcache_servers = \"a:11211, "
      "b:11211\"\n"
      "memcache_sasl_enabled = true\nmemcache_username = user\nmemcache_password = secret\n",
      "");
  CHECK(pooled.profile == "bmemcached-replicating");
  CHECK(addresses(pooled) == "tls://a:11211 tls://b:11211");
  CHECK(pooled.user + pooled.password == "usersecret");
  for (const char* word : {"yes", "on", "TRUE"})
    CHECK(read("[cache]\nbackend = oslo_cache.memcache_pool\nmemcache_servers = a\ntls_enabled = " +
               std::string(word) + '\n')
              .ends_with(" tls://a:11211"));
  // Keystone's pool uses another client with a login or TLS; its username is the service's, not memcached's.
  const std::string keystones =
      "[keystone_authtoken]\nusername = nova\npassword = p\nmemcached_servers = a\n";
  CHECK(read(keystones) == "python-memcached a:11211");
  CHECK(read(keystones + "memcache_tls_enabled = true\n") == "bmemcached-replicating tls://a:11211");
  CHECK(read(keystones + "memcache_tls_enabled = true\nmemcache_use_advanced_pool = false\n") ==
        "python-memcached a:11211");
  CHECK(read(keystones + "memcache_sasl_enabled = true\n") == "bmemcached-replicating a:11211");
  CHECK(parse_oslo(keystones + "memcache_sasl_enabled = true\n", "").user.empty());
  CHECK(parse_oslo("[cache]\nbackend = dogpile.cache.bmemcached\nmemcache_servers = a\nusername = u\n", "")
            .user == "u");
  CHECK(parse_oslo(
            "[cache]\nbackend = dogpile.cache.memcached\nmemcache_servers = a\nmemcache_username = u\n", "")
            .user.empty());
  for (const char* text : {"backend_argument = url:a\nmemcache_servers = b\n",
                           "memcache_servers = b\nbackend_argument = url:a\n"})
    CHECK(read("[cache]\nbackend = dogpile.cache.memcached\n" + std::string(text)).ends_with(" a:11211"));
  CHECK_THROWS_AS(read(nova + keystone, "token"), Failure);
  CHECK_THROWS_AS(read("[cache]\nbackend_argument = redis_expiration_time:600\nbackend_argument = db:0\n"
                       "backend_argument = url:redis://localhost:6379\nbackend = dogpile.cache.redis\n"),
                  Failure);
  CHECK(read("[cache]\nbackend = dogpile.cache.bmemcached\nmemcache_servers = a,b\n") ==
        "bmemcached-replicating a:11211 b:11211");
  CHECK_THROWS_AS(read("[cache]\nbackend = dogpile.cache.null\nmemcache_servers = a\n"), Failure);
  CHECK_THROWS_AS(read("[cache]\nenabled = true\n"), Failure);
  CHECK_THROWS_AS(read("[a]\nmemcache_servers = h\n[b]\nmemcache_servers = i\n"), Failure);
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
