// Rules that hold for placements on any pool, and cases in which similar clients differ.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "common/base/errors.hpp"
#include "common/placement/identity.hpp"

namespace mcds::placement_rules_test {

namespace {

std::mt19937 seeded() {
  const char* given = std::getenv("MCDS_TEST_SEED");
  const unsigned seed = given == nullptr ? std::random_device{}() : static_cast<unsigned>(std::atoi(given));
  MESSAGE("MCDS_TEST_SEED=" << seed);
  return std::mt19937(seed);
}

std::string random_key(std::mt19937& random, std::size_t size) {
  std::string key(size, ' ');
  for (char& byte : key)
    byte = static_cast<char>(random() % 4 == 0 ? 128 + random() % 128 : 33 + random() % 94);
  return key;
}

std::vector<std::string> random_keys(std::mt19937& random) {
  std::vector<std::string> keys{random_key(random, 1), random_key(random, 250)};
  for (int i = 0; i < 30; ++i) keys.push_back(random_key(random, 1 + random() % 250));
  return keys;
}

std::string random_server(std::mt19937& random, int number) {
  switch (random() % 5) {
    case 0: return "10.0.0." + std::to_string(number);
    case 1: return "10.0.0." + std::to_string(number) + ":1121" + std::to_string(random() % 10);
    case 2: return "cache-" + std::to_string(number);
    case 3: return "[fe80::" + std::to_string(number) + "]:11211";
    default: return "unix:/run/m" + std::to_string(number) + ".sock";
  }
}

Pool random_pool(std::mt19937& random, int size, unsigned weights) {
  std::string list;
  for (int i = 1; i <= size; ++i) {
    list += (i == 1 ? "" : ",") + random_server(random, i) + "/?" +
            std::to_string(i == 1 ? 1 : 1 + random() % weights);
  }
  return parse_pool(list);
}

const Resolver resolver{[](const std::string& name) {
                          return std::optional<std::string>("10.9.9." + name.substr(name.find('-') + 1));
                        },
                        [](const std::string&) { return std::optional<std::string>(); }};

std::shared_ptr<const Placement> placed(std::string_view profile, const Pool& pool) {
  return make_placement(profile, pool, {resolver, "", ""});
}

// Returns true if the order of the pool does not matter to the client.
bool ignores_order(const Profile& profile) {
  if (needs_source(profile.rule.distribution)) return false;
  const Rule& rule = profile.rule;
  if (profile.name.starts_with("enyim")) return false;          // the first server's first point differs
  if (profile.name.ends_with("-named")) return false;           // node0 is the first server of the list
  if (rule.hash == key_hash::murmur3_of_emcache) return false;  // half of its hashes are one of 128
  if (rule.hash == key_hash::first_crc32_digits) return false;  // points of four digits are often equal
  if (rule.hash == key_hash::crc15 && rule.points != points::ketama)
    return false;  // points of 15 bits are often equal
  if (rule.order != Order::as_given) return true;
  return rule.distribution != Distribution::modulo && rule.distribution != Distribution::mask &&
         rule.distribution != Distribution::jump && rule.distribution != Distribution::furc;
}

std::size_t points_of(std::string_view profile, int servers) {
  std::string list;
  for (int i = 1; i <= servers; ++i) list += (i == 1 ? "10.0.0." : ",10.0.0.") + std::to_string(i);
  return placed(profile, parse_pool(list))->continuum()->points().size();
}

}  // namespace

TEST_CASE(
    "placement: every profile places every key on a server of any pool, and so again when asked again") {
  auto random = seeded();
  const auto keys = random_keys(random);
  for (const int size : {1, 2, 7, 12, 25, 50}) {
    const Pool pool = random_pool(random, size, size % 2 == 0 ? 9 : 1);
    for (const Profile& profile : all_profiles()) {
      if (needs_source(profile.rule.distribution)) continue;  // it needs its routes
      CAPTURE(profile.name);
      const auto placement = placed(profile.name, pool);
      for (const std::string& key : keys) {
        const auto server = placement->server_of(key);
        REQUIRE(server < pool.size());
        REQUIRE(server == placement->servers_of(key, pool.size()).front());
        REQUIRE(server == placement->place_of(key).server);
      }
    }
  }
}

TEST_CASE(
    "placement: a key has plain owners where it is on one server under its own name, and only there "
    "always") {
  auto random = seeded();
  std::vector<std::string> keys = random_keys(random);
  for (const char* key : {"",          ":",           "::",
                          "a::b",      "|",           "|#|",
                          "a|#|b",     "/r/c/k",      "//",
                          "/",         "{",           "{}",
                          "{a}",       "x{tags}y",    "{a}{b}",
                          "}{",        "a%20b",       "%",
                          "%25",       "a b",         " ",
                          "\t",        "a\nb",        "\x7f",
                          "lock.lock", ".lock",       "memc.sess.key.x",
                          "b'x'",      "mc:lock:x",   "\xff\xfe",
                          "\u00e9",    "\u4e2d\u6587"}) {
    keys.emplace_back(key);
  }
  for (const std::size_t size : {249, 250, 251, 300}) keys.emplace_back(size, 'k');
  keys.push_back("{" + std::string(248, 'k') + "}");
  std::set<std::string_view> not_plain;
  for (const int size : {1, 2, 7}) {
    const Pool pool = random_pool(random, size, 1);
    for (const Profile& profile : all_profiles()) {
      if (needs_source(profile.rule.distribution)) continue;
      std::vector<std::string> names{std::string(profile.name)};
      if (profile.rule.replication != Replication::none && profile.rule.copies != every_server) {
        names.push_back(names[0] + ":copies=1");
        names.push_back(names[0] + ":copies=3");
      }
      for (const std::string& name : names) {
        CAPTURE(name);
        CAPTURE(size);
        const auto placement = placed(name, pool);
        bool all_plain = true;
        for (const std::string& key : keys) {
          const Owners owners = placement->owners_of(key);
          all_plain = all_plain && owners.policy == Policy::one &&
                      owners.list == std::vector{Owner{placement->server_of(key)}};
        }
        CHECK(placement->has_plain_owners() == all_plain);
        if (!all_plain) not_plain.insert(profile.name);
      }
    }
  }
  CHECK(not_plain.size() > 5);
  CHECK(not_plain.size() < all_profiles().size() / 2);
}

TEST_CASE("placement: the order of the list counts only for clients that place by index") {
  auto random = seeded();
  const auto keys = random_keys(random);
  Pool pool = random_pool(random, 9, 5);
  Pool other = pool;
  std::shuffle(other.begin(), other.end(), random);
  for (const Profile& profile : all_profiles()) {
    if (!ignores_order(profile)) continue;
    CAPTURE(profile.name);
    const auto before = placed(profile.name, pool);
    const auto after = placed(profile.name, other);
    for (const std::string& key : keys) CHECK(pool[before->server_of(key)] == other[after->server_of(key)]);
  }
}

TEST_CASE(
    "placement: a server of weight 0 gets nothing from clients that heed weights, its share from the "
    "others") {
  const Pool pool = parse_pool("10.0.0.1/?0,10.0.0.2/?1,10.0.0.3/?3");
  const auto uses = [&](std::string_view profile) {
    const auto placement = placed(profile, pool);
    std::set<std::size_t> used;
    for (int i = 0; i < 500; ++i) used.insert(placement->server_of("key:" + std::to_string(i)));
    return used.contains(0);
  };
  for (const char* profile : {"python-memcached", "perl-cache-memcached-fast-ketama", "nginx-hash",
                              "nginx-hash-consistent", "dalli", "twemproxy-default", "php-memcache-default",
                              "uhashring-default", "node-memcached", "libketama", "xmemcached-election"}) {
    CAPTURE(profile);
    CHECK_FALSE(uses(profile));
  }
  for (const char* profile :
       {"ketama", "libmemcached-default", "gomemcache", "pymemcache-rendezvous", "libmc",
        "spymemcached-ketama", "node-memcache-plus", "memcached-proxy-default", "mcrouter-ch3"}) {
    CAPTURE(profile);
    CHECK(uses(profile));
  }
}

TEST_CASE("placement: nothing but weights of 0 is refused where weights count") {
  const Pool pool = parse_pool("10.0.0.1/?0,10.0.0.2/?0");
  for (const char* profile : {"python-memcached", "dalli", "twemproxy-default", "twemproxy-modula-crc16",
                              "libketama", "node-memcached", "uhashring-ketama",
                              "java-memcached-whalin-consistent", "spymemcached-ketama-spyformat-weighted"}) {
    CAPTURE(profile);
    CHECK_THROWS_AS(placed(profile, pool), InvalidInput);
  }
  CHECK_NOTHROW(placed("ketama", pool));
  CHECK_NOTHROW(placed("gomemcache", pool));
}

TEST_CASE("placement: ketama's points are counted in floats by some, in doubles or integers by others") {
  CHECK(points_of("ketama", 24) == 24 * 160);
  CHECK(points_of("ketama", 25) == 25 * 156);
  CHECK(points_of("twemproxy-ketama-md5", 25) == 25 * 156);
  CHECK(points_of("libketama", 25) == 25 * 160);
  CHECK(points_of("libketama", 61) == 61 * 156);
  CHECK(points_of("spymemcached-ketama", 25) == 25 * 160);
  CHECK(points_of("node-memcached", 25) == 25 * 160);
  for (const int servers : {7, 14, 28, 49})
    CHECK(points_of("node-memcached", servers) == static_cast<std::size_t>(servers) * 156);
  CHECK(points_of("dalli", 7) == 7 * 160);
  CHECK(points_of("libmemcached-consistent", 7) == 700);
}

TEST_CASE("placement: a jump over servers sorted as people count") {
  const Pool pool = parse_pool("node-10:1,node-9:1,node-1:1,node-2:1,node-02a:1");
  std::vector<std::string> order;
  for (const Member& member : members_of(profile_named("thanos-jump").rule, pool, {}))
    order.push_back(member.name);
  CHECK(order == std::vector<std::string>{"node-1:1", "node-2:1", "node-02a:1", "node-9:1", "node-10:1"});
}

TEST_CASE("placement: twemproxy sorts its servers, shorter names first") {
  const Pool pool = parse_pool("10.0.0.10:11212,b=10.0.0.7,10.0.0.9,10.0.0.1");
  std::vector<std::string> order;
  for (const Member& member : members_of(profile_named("twemproxy-modula-md5").rule, pool, {}))
    order.push_back(member.name);
  CHECK(order == std::vector<std::string>{"b", "10.0.0.1", "10.0.0.9", "10.0.0.10:11212"});
}

TEST_CASE("placement: of a key with a hash_tag only the tag is hashed, by twemproxy alone") {
  const Pool pool = parse_pool("10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4");
  const auto tagged = make_placement("twemproxy-modula-md5", pool, {{}, "", "<>"});
  const auto other = make_placement("gomemcache", pool, {{}, "", "<>"});
  CHECK(tagged->hash_of("cart<42>:items") == tagged->hash_of("42"));
  CHECK(tagged->hash_of("cart<>:items") != tagged->hash_of(""));
  CHECK(tagged->hash_of("cart>42<") == placed("twemproxy-modula-md5", pool)->hash_of("cart>42<"));
  CHECK(other->hash_of("cart<42>:items") != other->hash_of("42"));
  const auto braces = placed("twemproxy-ketama-hashtag", pool);
  CHECK(braces->hash_of("cart{42}") == braces->hash_of("{42}:items"));
}

TEST_CASE(
    "placement: a prefix that the client adds after placing is not hashed, any other is a part of the key") {
  const Pool pool = parse_pool("10.0.0.1,10.0.0.2,10.0.0.3");
  const auto stripped = make_placement("php-memcached-prefix", pool, {{}, "shop:", ""});
  CHECK(stripped->hash_of("shop:k") == stripped->hash_of("k"));
  CHECK(placed("php-memcached-prefix", pool)->hash_of("app1:k") !=
        placed("php-memcached-prefix", pool)->hash_of("k"));
  const auto session = placed("php-memcached-session", pool);
  CHECK(session->hash_of("memc.sess.key.k") == session->hash_of("k"));
  const auto hashed = make_placement("php-memcached-default", pool, {{}, "shop:", ""});
  CHECK(hashed->hash_of("shop:k") != hashed->hash_of("k"));
}

TEST_CASE("placement: keys that clients rewrite before hashing") {
  const Pool pool = parse_pool("10.0.0.1,10.0.0.2");
  const auto hash = [&](std::string_view profile, std::string_view key) {
    return placed(profile, pool)->hash_of(key);
  };
  CHECK(hash("mcrouter-crc32", "/east/prod/k|#|ignored") == hash("mcrouter-crc32", "k"));
  CHECK(hash("mcrouter-crc32", "/k") != hash("mcrouter-crc32", "k"));
  CHECK(hash("php-memcache-default", "a b\x01") == hash("php-memcache-default", "a_b_"));
  CHECK(hash("memcached-proxy-tags", "x{}y") == hash("memcached-proxy-tags", ""));
  CHECK(hash("pymemcache-rendezvous", "\xd0\xba") ==
        hash("pymemcache-rendezvous", ":"));  // U+043A: only 0x3a counts
  CHECK(hash("pymemcache-rendezvous-bytes", "it's") != hash("pymemcache-rendezvous-bytes", "its"));
}

TEST_CASE("placement: a longer key than servers take is placed and kept as its client does it") {
  const std::string key(301, 'x');
  const Pool pool = parse_pool("10.0.0.1,10.0.0.2,10.0.0.3");
  const auto wire = [&](std::string_view profile, const std::string& text) {
    return placed(profile, pool)->owners_of(text).list.front().wire_key;
  };
  CHECK(wire("node-memcached", key).size() == 32);
  // npm memcached places it by the key, and stores it under the MD5.
  CHECK(placed("node-memcached", pool)->hash_of(key) !=
        placed("node-memcached", pool)->hash_of(wire("node-memcached", key)));
  CHECK(wire("dalli", key).starts_with(std::string(212, 'x') + ":md5:"));
  CHECK(placed("dalli", pool)->hash_of(key) == placed("dalli", pool)->hash_of(wire("dalli", key)));
  CHECK(wire("php-memcache-default", "a b") == "a_b");
  CHECK(wire("node-memcached", "a$$b") == "a$b");
  CHECK(wire("node-memcached", "x$&y$$$&") == "xx$&y$$$&y$x$&y$$$&");
  CHECK(wire("node-memcached", "$").empty());
  CHECK(wire("perl-cache-memcached-fast-safe", "a b\xc3\xaf%") == "a%20b%C3%AF%");
  CHECK(wire("perl-cache-memcached-fast-safe", std::string(200, 'x')).empty());
  CHECK(wire("perl-cache-memcached-fast-safe", std::string(201, 'x')).size() == 40);
  CHECK(make_placement("perl-cache-memcached-fast-safe-namespace", pool, {{}, "shop:"})
            ->owners_of("shop:a b")
            .list.front()
            .wire_key == "shop:a%20b");
  CHECK(wire("dalli", "short").empty());
  CHECK(wire("mcrouter-ch3", "/region/cluster/foo|#|x") == "foo|#|x");
  CHECK(wire("mcrouter-crc32", "/region/foo").empty());
  CHECK(wire("ketama", key).empty());
}

TEST_CASE(
    "placement: a server listed twice counts twice where the list is divided, and is refused elsewhere") {
  const Pool pool = parse_pool("10.0.0.1,10.0.0.2,10.0.0.1");
  const auto placement = placed("gomemcache", pool);
  CHECK(placement->pool().size() == 2);
  std::size_t on_first = 0;
  for (int i = 0; i < 3000; ++i) on_first += placement->server_of("key" + std::to_string(i)) == 0 ? 1 : 0;
  CHECK(on_first > 1900);
  CHECK(on_first < 2100);
  CHECK_THROWS_AS(placed("ketama", pool), Failure);
  CHECK_THROWS_AS(placed("twemproxy-modula-md5", pool), Failure);
  CHECK_THROWS_AS(placed("ketama", parse_pool("x=10.0.0.1,x=10.0.0.2")), InvalidInput);
}

TEST_CASE("placement: an entry without a port is hashed as it is written, by clients that do so") {
  const Pool bare = parse_pool("10.0.0.1,10.0.0.2,10.0.0.3");
  const Pool full = parse_pool("10.0.0.1:11211,10.0.0.2:11211,10.0.0.3:11211");
  const auto moved = [&](std::string_view profile) {
    int count = 0;
    for (int i = 0; i < 300; ++i) {
      const std::string key = "key" + std::to_string(i);
      count += placed(profile, bare)->server_of(key) != placed(profile, full)->server_of(key) ? 1 : 0;
    }
    return count;
  };
  for (const char* profile :
       {"bmemcached-distributed", "node-memcache-plus", "node-memcached-hash_ring", "uhashring-default"}) {
    CAPTURE(profile);
    CHECK(moved(profile) > 100);
  }
  for (const char* profile : {"ketama", "dalli", "pymemcache-rendezvous", "node-memcached", "libketama"}) {
    CAPTURE(profile);
    CHECK(moved(profile) == 0);
  }
}

TEST_CASE("placement: parameters of a profile") {
  const Pool pool = parse_pool("10.0.0.1,10.0.0.2,10.0.0.3");
  CHECK(placed("perl-cache-memcached-fast-ketama:points=200", pool)->continuum()->points().size() == 600);
  CHECK(placed("perl-cache-memcached-fast-ketama", pool)->continuum()->points().size() == 450);
  CHECK(placed("twemproxy-default:tag={}", pool)->hash_of("a{b}c") ==
        placed("twemproxy-default", pool)->hash_of("b"));
  CHECK(placed("mcrouter-ch3:salt=s", pool)->hash_of("a") == placed("mcrouter-ch3", pool)->hash_of("as"));
  CHECK(placed("ketama:copies=2", pool)->owners_of("a").list.size() == 2);
  CHECK(placed("ketama:eject=yes", pool)->server_of_when_down("a", {true, true, false}) == 2);
  CHECK(placed("memcached-proxy-default:seed=failover", pool)->hash_of("a") ==
        placed("memcached-proxy-jump-seed", pool)->hash_of("a"));
  CHECK(placed("memcached-proxy-default:seed=a", pool)->hash_of("a") !=
        placed("memcached-proxy-default:seed=b", pool)->hash_of("a"));
  CHECK(placed("php-memcached-vbucket:buckets=2/2/2/2", pool)->server_of("a") == 2);
  CHECK_THROWS_AS(placed("php-memcached-vbucket:buckets=0/3", pool), InvalidInput);
  CHECK(placed("bmemcached-replicating", pool)->owners_of("a").list.size() == 3);
  CHECK(placed("bmemcached-replicating", pool)->server_of_when_down("a", {true, false, false}) == 1);
  CHECK(placed("node-memcached:algorithm=sha1", pool)->hash_of("a") ==
        placed("node-memcached-sha1", pool)->hash_of("a"));
  PlacementOptions login;
  login.password = "secret";
  const Pool named_so =
      parse_pool("10.0.0.1_app_secret=10.0.0.1,10.0.0.2_app_secret=10.0.0.2,10.0.0.3_app_secret=10.0.0.3");
  for (const char* key : {"a", "b", "c", "d", "e", "f"})
    CHECK(make_placement("bmemcached-distributed:user=app", pool, login)->server_of(key) ==
          placed("bmemcached-distributed", named_so)->server_of(key));
  CHECK(placed("xmemcached-default", pool)->server_of_when_down("a", {true, true, false}) == 2);
  for (const char* profile :
       {"ketama:seed=a", "memcached-proxy-default:seed=", "memcached-proxy-ring-ketama:seed=a",
        "ketama:copies=0", "ketama:copies", "ketama:points=3", "ketama:", "gomemcache:eject=yes",
        "twemproxy-default:tag=x", "mcrouter-ch3:salt=", "ketama:eject=maybe",
        "bmemcached-replicating:copies=2", "node-memcached:hash=md5", "node-memcached:algorithm=crc",
        "node-memcache-modula:hash=", "dalli:user=a", "bmemcached-distributed:user=",
        "php-memcached-vbucket:buckets=", "php-memcached-vbucket:buckets=0/"}) {
    CAPTURE(profile);
    CHECK_THROWS_AS(placed(profile, pool), InvalidInput);
  }
}

TEST_CASE("profiles: each name once, aliases point at profiles, a slip of the finger gets a suggestion") {
  std::set<std::string_view> names;
  for (const Profile& profile : all_profiles()) CHECK(names.insert(profile.name).second);
  for (const Alias& alias : all_aliases()) {
    CAPTURE(alias.name);
    CHECK(names.insert(alias.name).second);
    CHECK(profile_named(alias.name).name == alias.profile);
  }
  CHECK_THROWS_WITH_AS(profile_named("dali"), "no profile 'dali'; did you mean 'dalli'?", InvalidInput);
  CHECK_THROWS_WITH_AS(profile_named("php"),
                       "no profile 'php'; mcds where --profiles lists php-memcache, php-memcached, "
                       "php-memcache-consistent-crc32 and others",
                       InvalidInput);
  CHECK_THROWS_WITH_AS(profile_named("?"), "no profile '?'; see mcds where --profiles", InvalidInput);
}

}  // namespace mcds::placement_rules_test
