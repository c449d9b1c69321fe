// mcrouter's configurations: each construct is modelled, or refused by name.
#include <doctest/doctest.h>

#include <numeric>

#include "common/base/errors.hpp"
#include "common/placement/mcrouter/routes.hpp"
#include "common/placement/pools/files.hpp"

namespace mcds::mcrouter_test {

namespace {

// Returns a file with the pools A (3 servers), B (2) and C (1). `route` is the rest of the file.
std::string config(const std::string& route) {
  return R"({"pools":{"A":{"servers":["a1:1","a2:1","a3:1"]},"B":{"servers":["b1:1","b2:1"]},"C":{"servers":["c:1"]}},)" +
         route + "}";
}

PoolFile file_of(const std::string& route, const std::string& selection = "") {
  return parse_mcrouter(config(route), selection);
}

std::shared_ptr<const Placement> placement_of(const PoolFile& file) {
  return make_placement(file.profile, file.pool, {.routes = file.routes});
}

// Returns `policy: server server?`. A question mark marks a server that may have the key.
std::string owners(const Placement& placement, std::string_view key) {
  const Owners found = placement.owners_of(key);
  std::string text = std::string(name_of(found.policy)) + ':';
  for (const Owner& owner : found.list) {
    text += ' ' + placement.pool()[owner.server].host + (owner.must ? "" : "?");
    if (!owner.wire_key.empty()) text += '=' + owner.wire_key;
  }
  return text;
}

std::string owners(const std::string& route, std::string_view key, const std::string& selection = "") {
  return owners(*placement_of(file_of(route, selection)), key);
}

std::string refusal(const std::string& route, const std::string& selection = "") {
  try {
    return "accepted: " + file_of(route, selection).profile;
  } catch (const Failure& failure) {
    return failure.what();
  }
}

std::size_t ch3(std::string_view key, std::size_t servers) {
  return RouteHash().child_of(key, servers);
}

std::string with_route(const std::string& json) {
  return R"("route":)" + json;
}

const std::string replicated =
    R"("route":{"type":"OperationSelectorRoute","operation_policies":{"set":"AllSyncRoute|Pool|A","get":"LatestRoute|Pool|A"}})";

}  // namespace

TEST_CASE("mcrouter: a route that is a hash over one pool is a plain profile") {
  const auto profile = [](const std::string& route, const std::string& selection = "") {
    const PoolFile file = file_of(route, selection);
    CHECK(file.routes == nullptr);
    return file.profile;
  };
  CHECK(profile(with_route(R"("PoolRoute|A")")) == "mcrouter-ch3");
  CHECK(profile(with_route(R"({"type":"PoolRoute","pool":"A","hash":"Crc32"})")) == "mcrouter-crc32");
  CHECK(profile(with_route(R"({"type":"PoolRoute","pool":"A","hash":{"hash_func":"Crc32"}})")) ==
        "mcrouter-crc32");
  CHECK(profile(with_route(R"({"type":"HashRoute","children":"Pool|A","hash_func":"Crc32"})")) ==
        "mcrouter-crc32");
  CHECK(profile(with_route(R"({"type":"HashRoute","children":["Pool|A"]})")) == "mcrouter-ch3");
  CHECK(profile(with_route(
            R"({"type":"PoolRoute","pool":{"name":"D","servers":["d:1","e:1"]},"hash":"Crc32"})")) ==
        "mcrouter-crc32");
  CHECK(profile(with_route(R"({"type":"ModifyExptimeRoute","target":"PoolRoute|A","exptime":9})")) ==
        "mcrouter-ch3");
  CHECK(profile(with_route(
            R"({"type":"FailoverRoute","children":["PoolRoute|A",{"type":"PoolRoute","pool":"A"}]})")) ==
        "mcrouter-ch3");
  CHECK(
      profile(
          R"("routes":[{"aliases":["/a/b/"],"route":{"type":"HashRoute","children":"Pool|A","hash_func":"Crc32"}}])") ==
      "mcrouter-crc32");
}

TEST_CASE("mcrouter: comments, trailing commas, protocol suffixes, IPv6, inheritance and port_override") {
  const PoolFile file = parse_mcrouter(R"({
    // one pool
    "pools": { "A": { "servers": [ "10.0.0.1:5001", "10.0.0.2:5002:ascii:plain", "[::1]:5003:ascii", ] },
               "Z": { "inherit": "A", "port_override": 9 }, },
    "route": "PoolRoute|A" /* "Crc32x" */, "note": "// no comment, ]",
  })",
                                       "");
  REQUIRE(file.pool.size() == 3);
  CHECK(file.pool[1].address() == "10.0.0.2:5002");
  CHECK(file.pool[2].address() == "[::1]:5003");
  CHECK(file.profile == "mcrouter-ch3");
  const PoolFile inherited = parse_mcrouter(
      R"({"pools":{"A":{"servers":["a:1","b"]},"Z":{"inherit":"A","port_override":9}},"route":"PoolRoute|Z"})",
      "");
  CHECK(inherited.pool[0].address() == "a:9");
  CHECK(inherited.pool[1].address() == "b:9");
}

TEST_CASE("mcrouter: TLS is understood or refused by name, never read as plain") {
  const auto file = [](const std::string& pool) {
    return parse_mcrouter(R"({"pools":{"A":{)" + pool + R"(}},"route":"PoolRoute|A"})", "");
  };
  CHECK(file(R"("servers":["a:1:ascii:ssl","b:1:ascii:tls","[::1]:1:ascii:tls13_fizz:compressed"])")
            .pool[2]
            .tls);
  CHECK(file(R"("servers":["a:1:ascii:ssl","b:1:ascii:plain"])").pool[0].tls);
  CHECK_FALSE(file(R"("servers":["a:1:ascii:ssl","b:1:ascii:plain"])").pool[1].tls);
  const Pool pool =
      file(R"("security_mech":"tls","servers":["a:1","b:1:ascii:plain"],"port_override":7)").pool;
  CHECK(pool[0].tls);
  CHECK(pool[0].address() == "a:7");
  CHECK_FALSE(pool[1].tls);
  CHECK(file(R"("use_ssl":true,"servers":["a:1"])").pool[0].tls);
  CHECK_FALSE(file(R"("use_ssl":false,"servers":["a:1"])").pool[0].tls);
  for (const char* unknown :
       {R"("servers":["a:1:ascii:tls_to_plain"])", R"("security_mech":"quic","servers":["a:1"])",
        R"("security_mech":true,"servers":["a:1"])", R"("use_ssl":"perhaps","servers":["a:1"])",
        R"("security_mech_cross_dc":"tls","servers":["a:1"])", R"("servers":["a:1:ascii:ssl","a:1"])",
        R"("servers":["a:1,b:1"])"}) {
    CAPTURE(unknown);
    CHECK_THROWS_AS(file(unknown), Failure);
  }
}

TEST_CASE("mcrouter: replication is answered with all its servers, not as a hash") {
  CHECK(owners(with_route(R"("AllSyncRoute|Pool|A")"), "k") == "all: a1 a2 a3");
  for (const char* type : {"AllAsyncRoute", "AllInitialRoute", "AllMajorityRoute", "AllFastestRoute"})
    CHECK(owners(with_route("\"" + std::string(type) + "|Pool|A\""), "k") == "all: a1 a2 a3");
  CHECK(owners(with_route(R"("LatestRoute|Pool|A")"), "k") == "latest: a1? a2? a3?");
  CHECK(owners(with_route(R"({"type":"PoolRoute","pool":"A","hash":"Latest"})"), "k") ==
        "latest: a1? a2? a3?");
  CHECK(owners(with_route(R"("RandomRoute|Pool|A")"), "k") == "random: a1? a2? a3?");
  CHECK(owners(replicated, "k") == "all: a1 a2 a3");
  CHECK(owners(replicated, "k", "A") == "all: a1 a2 a3");
  const std::string pair =
      owners(with_route(R"({"type":"AllSyncRoute","children":["PoolRoute|A","PoolRoute|B"]})"), "k");
  CHECK(pair == "all: a" + std::to_string(ch3("k", 3) + 1) + " b" + std::to_string(ch3("k", 2) + 1));
  CHECK(owners(with_route(R"({"type":"AllSyncRoute","children":["PoolRoute|C","NullRoute"]})"), "k") ==
        "one: c");
}

TEST_CASE("mcrouter: failover routes name the first, and what it gives way to") {
  const std::string route =
      with_route(R"({"type":"FailoverRoute","children":["PoolRoute|C","PoolRoute|B"]})");
  const std::string second = std::to_string(ch3("k", 2) + 1);
  CHECK(owners(route, "k") == "failover: c b" + second + "?");
  CHECK(
      owners(with_route(
                 R"({"type":"FailoverWithExptimeRoute","normal":"PoolRoute|C","failover":["PoolRoute|B"]})"),
             "k") == "failover: c b" + second + "?");
  CHECK(owners(with_route(R"({"type":"MissFailoverRoute","children":["PoolRoute|C","PoolRoute|B"]})"), "k") ==
        "failover: c? b" + second + "?");
  const PoolFile file = file_of(route);
  const auto placement = placement_of(file);
  std::vector<bool> down(file.pool.size());
  for (std::size_t i = 0; i < down.size(); ++i) down[i] = file.pool[i].host == "c";
  CHECK(file.pool[*placement->server_of_when_down("k", down)].host == "b" + second);
  CHECK_FALSE(placement->server_of_when_down("k", std::vector<bool>(down.size(), true)).has_value());
}

TEST_CASE("mcrouter: operations that go different ways are distinguished, or refused") {
  const std::string route =
      R"("route":{"type":"OperationSelectorRoute","default_policy":"PoolRoute|C","operation_policies":{"set":"PoolRoute|A","delete":"AllSyncRoute|Pool|A"}})";
  const PoolFile file = file_of(route);
  CHECK_THROWS_AS(placement_of(file)->owners_of("k"), InvalidInput);
  const auto asked = [&](Operation operation) {
    return owners(*make_routed_placement(file.pool, file.routes, operation), "k");
  };
  CHECK(asked(Operation::get) == "one: c");
  CHECK(asked(Operation::set) == "one: a" + std::to_string(ch3("k", 3) + 1));
  CHECK(asked(Operation::remove) == "all: a1 a2 a3");
  CHECK(
      owners(
          R"("route":{"type":"OperationSelectorRoute","default_policy":"PoolRoute|C","operation_policies":{"delete":"AllSyncRoute|Pool|A"}})",
          "k") == "one: c");
}

TEST_CASE("mcrouter: the longest prefix decides, in any number of them") {
  const std::string route =
      R"("route":{"type":"PrefixSelectorRoute","policies":{"b":"PoolRoute|B","bac":"PoolRoute|C","bb":"PoolRoute|A"},"wildcard":"PoolRoute|C"})";
  CHECK(owners(route, "x") == "one: c");
  CHECK(owners(route, "bacx") == "one: c");
  CHECK(owners(route, "bazz") == "one: b" + std::to_string(ch3("bazz", 2) + 1));
  CHECK(owners(route, "bbq") == "one: a" + std::to_string(ch3("bbq", 3) + 1));
  CHECK(owners(route, "/r/c/bbq") == "one: a" + std::to_string(ch3("bbq", 3) + 1) + "=bbq");
  std::string many;
  for (int i = 0; i < 2000; ++i)
    many += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + R"(:":{"type":"PoolRoute","pool":"A"})";
  CHECK(file_of(R"("route":{"type":"PrefixSelectorRoute","policies":{)" + many + "}}").pool.size() == 3);
}

TEST_CASE("mcrouter: keys that are renamed on their way") {
  const std::string modify =
      R"("route":{"type":"ModifyKeyRoute","ensure_key_prefix":"app:","set_key_suffix":"!","target":"PoolRoute|C"})";
  CHECK(owners(modify, "k") == "one: c=app:k!");
  CHECK(owners(modify, "app:k") == "one: c=app:k!");
  CHECK(
      owners(
          R"("route":{"type":"ModifyKeyRoute","ensure_key_prefix":"new:","replace_key_prefix":"old:","target":"PoolRoute|C"})",
          "old:k") == "one: c=new:k");
  CHECK(owners(R"("route":{"type":"KeySplitRoute","destination":"PoolRoute|C","replicas":3,"all_sync":true})",
               "k") == "all: c c=k::1 c=k::2");
  CHECK(owners(R"("route":{"type":"PoolRoute","pool":"C","shard_splits":{"7":3}})", "u:7:x") ==
        "random: c? c?=u:7aa:x c?=u:7ba:x");
  CHECK(owners(R"("route":{"type":"PoolRoute","pool":"C","shard_splits":{"7":3}})", "u:8:x") == "one: c");
}

TEST_CASE("mcrouter: named handles, by list and by object, and routes by alias") {
  const std::string list =
      R"("named_handles":[{"type":"PoolRoute","name":"one","pool":"C"},{"type":"AllSyncRoute","name":"both","children":["one","PoolRoute|A"]}],"route":"both")";
  CHECK(owners(list, "k") == "all: c a" + std::to_string(ch3("k", 3) + 1));
  CHECK(owners(R"("named_handles":{"one":"two","two":"PoolRoute|C"},"route":"one")", "k") == "one: c");
  const std::string routes =
      R"("routes":[{"aliases":["/a/b/","/a/c/"],"route":"PoolRoute|A"},{"aliases":["/x/y/"],"route":"PoolRoute|C"}])";
  CHECK(owners(routes, "k", "/x/y/") == "one: c");
  CHECK(owners(routes, "k", "C") == "one: c");
  CHECK(file_of(routes, "/a/c/").profile == "mcrouter-ch3");
  CHECK(refusal(routes) ==
        "the file's routes place keys differently: write FILE#ROUTE with one of /a/b/, /a/c/, /x/y/");
  CHECK(refusal(routes, "/q/q/") == "the file has no route for /q/q/");
  const PoolFile salted = file_of(
      R"("routes":{"/a/b/":{"type":"PoolRoute","pool":"A","hash":{"salt":"s"}},"/x/y/":"PoolRoute|C"})",
      "/a/b/");
  CHECK_THROWS_AS(placement_of(salted)->server_of("/x/y/k"), InvalidInput);
  CHECK(placement_of(salted)->server_of("/a/b/k") == ch3("ks", 3));
}

TEST_CASE("mcrouter: weights that differ after the sixth decimal are different weights") {
  const auto route = [](const std::string& weights) {
    return R"({"type":"PoolRoute","pool":"A","hash":{"hash_func":"WeightedCh3","weights":)" + weights + "}}";
  };
  const std::string tiny = "[4e-7,1e-9,1e-9]", other = "[1e-9,4e-7,1e-9]";
  const auto file = with_route(R"({"type":"PrefixSelectorRoute","policies":{"a:":)" + route(tiny) +
                               R"(,"b:":)" + route(other) + "}}");
  const auto placement = placement_of(file_of(file));
  const auto alone = placement_of(file_of(with_route(route(other))));
  for (int i = 0; i < 50; ++i) {
    const std::string key = "b:" + std::to_string(i);
    CHECK(placement->server_of(key) == alone->server_of(key));
  }
}

TEST_CASE("mcrouter: salts, weights, tags and shards of the hash") {
  const auto server = [](const std::string& hash, std::string_view key) {
    return placement_of(file_of(R"("route":{"type":"PoolRoute","pool":"A","hash":)" + hash + "}"))
        ->server_of(key);
  };
  CHECK(server(R"({"salt":"x"})", "k") == ch3("kx", 3));
  CHECK(server(R"("ConstShard")", "u:2:k") == 2);
  CHECK(server(R"("ConstShard")", "u:7:k") == ch3("u:7:k", 3));
  CHECK(server(R"({"hash_func":"WeightedCh3","weights":[0,1,0]})", "k") == 1);
  const RouteHash tagged{.function = RouteHash::Function::rendezvous,
                         .tags = {rendezvous_tag("x"), rendezvous_tag("y"), rendezvous_tag("z")}};
  CHECK(server(R"({"hash_func":"Rendezvous","tags":["x","y","z"]})", "k") == tagged.child_of("k", 3));
  const PoolFile weighted = parse_mcrouter(
      R"({"pools":{"W":{"servers":["a:1","b:1"],"weights":[0,1]}},"route":"PoolRoute|W"})", "");
  CHECK(placement_of(weighted)->server_of("k") == 1);
  const PoolFile bucketized = parse_mcrouter(
      R"({"pools":{"W":{"servers":["a:1","b:1"],"weights":[1,1]}},"route":{"type":"PoolRoute","pool":"W","bucketize":true,"total_buckets":9,"bucketization_keyspace":"t"}})",
      "");
  CHECK(placement_of(bucketized)->server_of("k") == ch3(std::to_string(ch3("k", 9)), 2));
}

// The counts and values are those of mcrouter's own unit tests for these functions.
TEST_CASE("mcrouter: WeightedCh3 places as mcrouter does") {
  const RouteHash hash{.function = RouteHash::Function::weighted_ch3,
                       .weights = {0.429, 0.541, 0.117, 0.998, 0.283, 0.065, 0.109, 0.042, 0.676, 0.943}};
  std::vector<int> counts(10);
  for (int i = 0; i < 10000; ++i) ++counts[hash.child_of(std::to_string(i), 10)];
  CHECK(counts == std::vector<int>{1016, 1252, 288, 2354, 661, 195, 247, 122, 1668, 2197});
  CHECK(
      RouteHash{.function = RouteHash::Function::weighted_ch3, .weights = std::vector<double>(100)}.child_of(
          "sample", 100) == 59);
  std::string long_key(256, '\0');
  std::iota(long_key.begin(), long_key.end(), static_cast<char>(-128));
  CHECK(RouteHash{.function = RouteHash::Function::weighted_ch3, .weights = std::vector<double>(99999, 1)}
            .child_of(long_key, 99999) == 31015);
}

TEST_CASE("mcrouter: what is not modelled is refused by its name") {
  CHECK(refusal(with_route(R"({"type":"WarmUpRoute","cold":"PoolRoute|A","warm":"PoolRoute|B"})")) ==
        "the file uses the route 'WarmUpRoute', which is not supported; give the servers and --as");
  for (const char* type : {"L1L2CacheRoute", "L1L2SizeSplitRoute", "MigrateRoute", "LoadBalancerRoute",
                           "HostIdRoute", "SaltedFailoverRoute", "McRefillRoute", "StagingRoute"})
    CHECK(refusal(with_route("{\"type\":\"" + std::string(type) + "\"}"))
              .find('\'' + std::string(type) + '\'') != std::string::npos);
  CHECK(refusal(R"("macros":{},"route":"PoolRoute|A")").find("'macros'") != std::string::npos);
  CHECK(refusal(with_route(R"~("@import(x)")~")).find("the macro call") != std::string::npos);
  CHECK(refusal(with_route(R"({"type":"PoolRoute","pool":"A","hash":"LoadBalancer"})"))
            .find("'LoadBalancer'") != std::string::npos);
  CHECK(refusal(with_route(R"({"type":"PoolRoute","pool":"A","shard_splits":{"1":{"new_split_size":2}}})"))
            .find("shard_splits") != std::string::npos);
  CHECK(
      refusal(
          with_route(
              R"({"type":"FailoverRoute","children":["PoolRoute|A","PoolRoute|B"],"failover_errors":["tko"]})"))
          .find("'failover_errors'") != std::string::npos);
  CHECK(refusal(with_route(R"("PoolRoute|Q")")) ==
        "a route names the pool 'Q', which the file does not have");
  CHECK(refusal(with_route(R"("PoolRoute|A")"), "B") == "no route of the file leads to the pool 'B'");
  CHECK(refusal(with_route(R"("PoolRoute|A")"), "Q") == "the file has no pool 'Q' with servers");
  CHECK(refusal(with_route(R"("NullRoute")")) == "the route leads to no server");
  CHECK(refusal(R"("x":1)") == "the file has no 'route' and no 'routes'; is it an mcrouter config?");
  CHECK_THROWS_AS(parse_mcrouter("no json", ""), Failure);
  CHECK_THROWS_AS(parse_mcrouter("[]", ""), Failure);
}

TEST_CASE("mcrouter: depth and cycles end with a sentence") {
  CHECK_THROWS_AS(parse_mcrouter(std::string(100000, '['), ""), Failure);
  std::string chain;
  for (int i = 0; i < 100000; ++i) chain += "AllSyncRoute|";
  CHECK(refusal(with_route('"' + chain + "PoolRoute|A\"")) == "the routes nest more than 100 deep");
  CHECK(refusal(R"("named_handles":{"a":"b","b":"AllSyncRoute|a"},"route":"a")") ==
        "the route 'a' contains itself");
  const std::string looping = R"({"pools":{"A":{"inherit":"A"}},"route":"PoolRoute|A"})";
  CHECK_THROWS_AS(parse_mcrouter(looping, ""), Failure);
}

}  // namespace mcds::mcrouter_test
